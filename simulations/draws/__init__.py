"""Random numbers that a compiled kernel and its readable twin draw alike."""
