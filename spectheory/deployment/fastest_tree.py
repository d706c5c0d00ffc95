"""The draft tree of the largest speed-up: its size and its depth are chosen for seconds, not for calls."""

from __future__ import annotations

from collections.abc import Callable

from spectheory.checks import instance, whole
from spectheory.cost import CostModel
from spectheory.cost.model import a_cost
from spectheory.drafting import Shape, Tree
from spectheory.drafting.tree import MOST_NODES
from spectheory.errors import SettingError
from spectheory.prediction.best_tree import BestTree, scored_parts
from spectheory.prediction.means import columns_of
from spectheory.prediction.over_prompts import Prompts
from spectheory.trace import Trace
from spectheory.trace.record import a_trace
from spectheory.trace.sample import of_texts, spread
from spectheory.verification import RankRule
from spectheory.verification.by_start import within

_DEPTHS = (1, 2, 3, 4, 6, 8, 12)
"""Depths that the first round tries."""
_HALVES = 2
"""Parts of the prompts: trees of one half are scored on the other, which costs no more than one search on all."""
_LEAST = 2
"""A tree of one node is a chain."""

Setting = tuple[int, int]
"""Nodes and largest depth."""


def fastest_tree(
    trace: Trace, rule: RankRule, cost: CostModel, nodes: int, *, drafted_as: Callable[[Tree], Shape] | None = None
) -> BestTree | None:
    """The size and depth limit whose best tree has the largest predicted speed-up (S4, C2; a local search).

    A tree of n nodes and depth d costs d draft passes and a target pass on n + 1 tokens, so the tree that saves the
    most calls is seldom the fastest. Sizes 2, 4, 8, ... up to `nodes` and some depths are tried first, then neighbours
    of the best while the speed-up grows. Trees are scored on other prompts than those they were found on; both are a
    sample of a large trace's texts. Optimality is not guaranteed. `drafted_as` is the shape that an engine drafts for
    a tree, if its passes are not the tree's own.
    The result is smaller than a chain in depth; None if `nodes` is below 2 or the cost knows no such pass.

    Examples
    --------
    Ranks 1 and 2 are equally likely. Where a draft pass costs as much as a call's verification, depth does not pay.

    >>> import numpy as np
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.trace import TextInfo
    >>> from spectheory.verification import RecursiveRejection
    >>> columns = {"log_target": np.full(64, -0.7), "log_draft": np.full(64, -0.7)}
    >>> trace = Trace(columns | {"rejection_rank": np.full((64, 2), 0.45)}, (TextInfo("1", 64),))
    >>> [str(fastest_tree(trace, RecursiveRejection(), ConstantRatio(c), 8)) for c in (0.01, 1.0)]
    ['best tree of 8, depth 3', 'best tree of 2, depth 1']
    """
    a_cost(cost)
    instance("rule", rule, RankRule, remedy="PoissonRace() is one")
    nodes = whole("nodes", nodes, least=0, most=MOST_NODES, remedy="32 is usual")
    tried: dict[Setting, float] = {}
    deepest = within(a_trace(trace).columns, nodes)
    chosen = spread(trace.lengths, Prompts(trace.texts).folds(_HALVES))
    trace = of_texts(trace, chosen, columns_of(rule, [], trace.columns))

    def gain(setting: Setting) -> float:
        size, depth = setting
        if not (_LEAST <= size <= nodes and 1 <= depth < size and depth <= deepest):
            return 0.0
        if setting not in tried:
            tried[setting] = _speedup(trace, rule, cost, BestTree(size, depth, drafted_as))
        return tried[setting]

    sizes = [2**i for i in range(1, nodes.bit_length())]
    first = [(size, depth) for size in sorted({*sizes, nodes}) for depth in _DEPTHS]
    best = max(first, key=gain)
    while gain(better := max(_around(best), key=gain)) > gain(best):
        best = better
    return BestTree(*best, drafted_as) if gain(best) > 0 else None


def _around(setting: Setting) -> list[Setting]:
    size, depth = setting
    steps = sorted({1, max(1, size // 8), max(1, size // 4)})
    beside = [(size + sign * step, depth) for step in steps for sign in (-1, 1)]
    return [*beside, (size, depth - 1), (size, depth + 1), (size - 1, depth - 1), (size + 1, depth + 1)]


def _speedup(trace: Trace, rule: RankRule, cost: CostModel, wanted: BestTree) -> float:
    """The predicted speed-up, 0 where the cost knows no such pass."""
    seconds = 0.0
    for part in scored_parts(trace, rule, wanted, _HALVES):
        calls = float(part.calls.expected.sum())
        shape = wanted.drafted_as(part.tree) if wanted.drafted_as else part.tree
        try:
            seconds += calls * cost.call(shape, float(part.calls.full.sum()) / calls).best
        except SettingError:  # a pass wider than was measured
            return 0.0
    return len(trace) * cost.target_step().best / seconds
