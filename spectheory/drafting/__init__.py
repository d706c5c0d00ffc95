"""Draft shapes (S1)."""

from spectheory.drafting.shapes import Chain

__all__ = ["Chain"]
