"""mlx-lm: its logs."""
