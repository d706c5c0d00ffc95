"""Fast loops for float64 theory on one core: compiled where numba is installed, plain Python otherwise."""
