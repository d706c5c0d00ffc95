"""LM Studio: its logs."""
