"""Draft shapes, what they give, and the best of them (S1-S3)."""

from spectheory.drafting.copied import Copied
from spectheory.drafting.optimal import optimal_tree
from spectheory.drafting.shapes import Batch, Chain, KAry, Shape, Tree
from spectheory.drafting.weights import exit_law, expected_tokens, node_weights, survival

__all__ = [
    "Batch",
    "Chain",
    "Copied",
    "KAry",
    "Shape",
    "Tree",
    "exit_law",
    "expected_tokens",
    "node_weights",
    "optimal_tree",
    "survival",
]
