"""Calls along a text: the path theorem and what follows."""
