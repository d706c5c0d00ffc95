"""Rules and draft shapes as they are written on the command line."""

from __future__ import annotations

from collections.abc import Sequence

from spectheory.cli.console import remarks
from spectheory.drafting.shapes import read_shape
from spectheory.drafting.stopping import StoppingRule, read_stop
from spectheory.prediction.best_tree import BestTree, ShapeRequest
from spectheory.prediction.whole import tree_sizes
from spectheory.verification import PathRule
from spectheory.verification.registry import left_out, path_rule

SEARCHED = "tree"
"""How the best tree of each size is written."""
SWEPT = "best"
"""How a sweep over stopping rules is written."""


def read_rules(names: Sequence[str] | None) -> list[PathRule] | None:
    """The rules that the names stand for; None where none is named.

    Examples
    --------
    >>> [rule.name for rule in read_rules(["race", "lookup", "race"])]
    ['race', 'lookup']
    """
    remark_left_out()
    return [path_rule(name) for name in dict.fromkeys(names)] if names else None


def remark_left_out() -> None:
    """Say which rules of installed packages cannot be used."""
    for reason in left_out():
        remarks.print(reason, markup=False)


def read_stops(names: Sequence[str] | None) -> tuple[list[StoppingRule], bool]:
    """The stopping rules that the names stand for, and whether thresholds are to be swept.

    Examples
    --------
    >>> stops, swept = read_stops(["token<0.4", "best"])
    >>> [str(stop) for stop in stops], swept
    (['token<0.4'], True)
    """
    found = dict.fromkeys(names or ())
    return [read_stop(name) for name in found if name != SWEPT], SWEPT in found


def read_shapes(names: Sequence[str], k_max: int, deepest: int | None = None) -> list[ShapeRequest]:
    """The shapes that the names stand for, up to `k_max` nodes and a depth of `deepest` where a name leaves the size
    open.

    Examples
    --------
    >>> [str(shape) for shape in read_shapes(["batch", "2x2", "1,2,1-1"], 2)]
    ['batch k=1', 'batch k=2', 'k-ary 2x2', 'tree 1 2 1-1']
    """
    shapes: list[ShapeRequest] = []
    for name in dict.fromkeys(names):
        if name == SEARCHED:
            shapes += [BestTree(k) for k in tree_sizes(k_max)]
        else:
            found = read_shape(name, range(1, k_max + 1), SEARCHED)
            shapes += [shape for shape in found if shape.depth <= (deepest or shape.depth)] or found
    return shapes
