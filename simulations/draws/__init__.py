"""Random numbers of the kernels and of the readable algorithms."""
