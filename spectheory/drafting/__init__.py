"""Draft shapes, what they give, and the best of them (S1-S3).

A shape is checked when it is made: a ``ShapeError`` says that a tree is none; a ``PmfError`` that the law of a rank has
a negative entry or a sum above 1.
"""

from spectheory.drafting.copied import Copied
from spectheory.drafting.grown import Grown
from spectheory.drafting.optimal import optimal_tree
from spectheory.drafting.parallel import Parallel, in_one_pass
from spectheory.drafting.shapes import Batch, Chain, KAry, Shape, Tree
from spectheory.drafting.stopped import Stopped
from spectheory.drafting.stopping import StoppingRule, read_stop
from spectheory.drafting.weights import exit_law, expected_tokens, node_weights, survival

__all__ = [
    "Batch",
    "Chain",
    "Copied",
    "Grown",
    "KAry",
    "Parallel",
    "Shape",
    "Stopped",
    "StoppingRule",
    "Tree",
    "exit_law",
    "expected_tokens",
    "in_one_pass",
    "node_weights",
    "optimal_tree",
    "read_stop",
    "survival",
]
