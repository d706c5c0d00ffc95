"""Closed forms in any arithmetic, so that they are judged in fractions, by intervals and by a solver."""
