r"""Calls of rules that need full pmfs, from the top-m log-probabilities along a text, as certified ranges (§7, §9).

For each position the lists bound P(R <= r | x), r = 1, 2, ...: two laws of the rank, one with the smallest ranks and
one with the largest. Expected calls lie between their values for these two laws if the shape is *nested*: a chain, a
batch, a k-ary tree whose branching does not grow with depth, and every tree that

- holds with each path all paths of lower ranks (so a lower rank never leaves the tree earlier), and
- holds what hangs below any of its nodes also below its root.

*Proof.* Draw one rank :math:`R_n` per position, independent given the text; a call that starts at n outputs
:math:`\tau+1` tokens, :math:`\tau` the length of the longest path :math:`R_n, R_{n+1}, \dots` in the tree, and the next
starts at :math:`N(n) = n+\tau+1`. A position is judged by one call at most, so these calls have the law of the path
theorem. (i) N falls in every rank, by the first property. (ii) :math:`N(n) \le N(m)` for n < m: either the call from n
ends before m, or it reaches m at a node whose subtree the root has too, so the call from m goes at least as far. By
induction the j-th call starts no later with lower ranks, for each draw of the ranks, so the text ends after no more
calls. Lower ranks and higher ones have draws with :math:`R \le R'` everywhere (quantiles of one uniform number). A
block rule judges positions together, and (i) fails for it; it is exact from two numbers per token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spectheory import truncated
from spectheory.distributions import Array, Floats
from spectheory.drafting import Chain, Shape
from spectheory.errors import TraceError
from spectheory.intervals import Interval
from spectheory.prediction.best_tree import ShapeRequest
from spectheory.trace import Trace
from spectheory.verification import Columns, PathRule, RankRule

ONE = Chain(1)


def by_lists(rule: PathRule, trace: Trace, wanted: ShapeRequest = ONE) -> bool:
    """Whether the trace has no columns for the rule with the shape, but lists that bound the rule."""
    ranked = isinstance(rule, RankRule) and not wanted.is_chain
    read = {*rule.needs, *([rule.recorded_in] if ranked and isinstance(rule, RankRule) else [])}
    return bool(trace.lists) and not read <= set(trace.columns) and truncated.bounds_given(rule) > 0


def _nested(shape: Shape) -> bool:
    """Whether expected calls are monotone in the ranks with this shape."""
    if shape.is_chain:
        return True
    paths = set(shape.tree().paths)
    lower = ((*path[:i], path[i] - 1, *path[i + 1 :]) for path in paths for i in range(len(path)) if path[i] > 1)
    return all(path[1:] in paths for path in paths if len(path) > 1) and all(path in paths for path in lower)


class _LawEnds(NamedTuple):
    """A rule at both ends of its certified law: with the largest ranks (fewest tokens a call), and the smallest."""

    worst: _LawEnd
    best: _LawEnd


@dataclass(frozen=True, eq=False)
class _LawEnd(RankRule):
    """A rule with one end of its certified law ``[N, A]`` in place of what a trace records."""

    rule: PathRule
    law: Floats
    needs: ClassVar[tuple[str, ...]] = ()
    recorded_in: ClassVar[str] = ""

    @property
    def name(self) -> str:  # type: ignore[override]
        """That of the rule."""
        return self.rule.name

    def rank_law(self, columns: Columns, max_rank: int) -> Floats:
        """The certified law, as far as it was asked for."""
        if max_rank > self.law.shape[1]:
            raise TraceError(
                f"rank {max_rank} is asked for", limit=f"{self.law.shape[1]} are bounded", remedy="draft fewer"
            )
        return self.law[:, :max_rank]

    def acceptance_given(self, target: Any, draft: Any) -> Array:
        """That of the rule."""
        return self.rule.acceptance_given(target, draft)

    def rank_pmf(self, target: Any, draft: Any, max_rank: int) -> Array:
        """That of the rule."""
        return self._ranked.rank_pmf(target, draft, max_rank)

    def rank_pmf_given(self, target: Any, draft: Any, token: Any, max_rank: int) -> Array:
        """That of the rule."""
        return self._ranked.rank_pmf_given(target, draft, token, max_rank)

    @property
    def _ranked(self) -> RankRule:
        assert isinstance(self.rule, RankRule)
        return self.rule


def ends_of(rule: PathRule, trace: Trace, max_rank: int) -> _LawEnds:
    """The two laws of the rank along a trace, from P(R <= r | x) at each position (certified)."""
    within = np.empty((2, len(trace), max_rank))
    for row, ((target, draft), token) in enumerate(zip(trace.lists, trace.columns["token"].tolist(), strict=True)):
        bounded = partial(truncated.acceptance_given, rule, target, draft, token)
        for rank in range(max_rank):
            ends = bounded(rank + 1)
            within[:, row, rank] = ends.low, ends.high
    # P(R <= r) rises in r: each end may be tightened to do so.
    low = np.maximum.accumulate(within[0], axis=1)
    high = np.minimum.accumulate(within[1, :, ::-1], axis=1)[:, ::-1]
    return _LawEnds(*(_LawEnd(rule, np.diff(end, axis=1, prepend=0.0)) for end in (low, np.maximum(low, high))))


def hull(intervals: Sequence[Interval]) -> Interval:
    """The range of several intervals, one for each end of what is not known.

    If they are 95% intervals over prompts it is one too, of at least that level: to miss the true value below, the
    interval of a value that is at most the true one must miss it below (2.5%), and likewise above. Without prompts to
    compare, it is certain for the texts of the trace.
    """
    if len(set(intervals)) == 1:
        return intervals[0]
    low, high = min(i.low for i in intervals), max(i.high for i in intervals)
    best = (min(i.best for i in intervals) + max(i.best for i in intervals)) / 2
    kind = "statistical" if any(i.kind == "statistical" for i in intervals) else "bound"
    return Interval(low, best, high, kind)  # type: ignore[arg-type]
