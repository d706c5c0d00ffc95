"""Draft shapes (S1)."""

from spectheory.drafting.shapes import Batch, Chain, KAry, Shape, Tree

__all__ = ["Batch", "Chain", "KAry", "Shape", "Tree"]
