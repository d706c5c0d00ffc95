"""Draft shapes, what they give, and the best of them (S1-S3).

What a call drafts is one description: a tree (:class:`Chain`, :class:`Batch`, :class:`KAry`, :class:`Tree`,
:class:`Grown`), its `schedule` (:class:`Sequential`, :class:`Parallel`, :class:`Copied`) and, of a chain, its `stop`.

A shape is checked when it is made: a ``ShapeError`` says that a tree is none; a ``PmfError`` that the law of a rank has
a negative entry or a sum above 1.
"""

from spectheory.drafting.optimal import exit_law, expected_tokens, node_weights, optimal_tree, survival
from spectheory.drafting.schedules import Copied, Parallel, Schedule, Sequential
from spectheory.drafting.shapes import Batch, Chain, Grown, KAry
from spectheory.drafting.stopping import StoppingRule, read_stop
from spectheory.drafting.tree import Shape, Tree

__all__ = [
    "Batch",
    "Chain",
    "Copied",
    "Grown",
    "KAry",
    "Parallel",
    "Schedule",
    "Sequential",
    "Shape",
    "StoppingRule",
    "Tree",
    "exit_law",
    "expected_tokens",
    "node_weights",
    "optimal_tree",
    "read_stop",
    "survival",
]
