"""Means over the positions of a trace, from sums over its blocks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

import numpy as np

from spectheory.distributions import Floats
from spectheory.drafting import Shape
from spectheory.trace import RECORDED_RANKS, Trace
from spectheory.verification import Columns, PathRule, RankRule
from spectheory.verification.by_start import AtDepth, read_as


def columns_of(rule: PathRule, shapes: Sequence[Shape], columns: Columns) -> list[str] | None:
    """The columns that a rule reads for these shapes; None where a stopping rule may read others."""
    if any(shape.stop for shape in shapes):
        return None
    ranked = [rule.recorded_in] if isinstance(rule, RankRule) else []
    return [column for name in (*rule.needs, *ranked) for column in (name, read_as(columns, name))]


def _means_of(
    trace: Trace, names: Collection[str] | None, readings: Sequence[Callable[[Columns], Floats]]
) -> list[Floats]:
    """The means over all positions of what each reading makes of the columns of these names, ``[N, ...]``."""
    sums = [[at(block.columns).sum(axis=0, dtype=np.float64) for at in readings] for block in trace.blocks(names)]
    return [np.asarray(sum(of_blocks[1:], of_blocks[0]) / len(trace)) for of_blocks in zip(*sums, strict=True)]


class MeanLaws:
    """The mean rank laws of rules along a trace; the law of many ranks serves fewer."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._laws: dict[RankRule, dict[int, Floats]] = {}

    def of(self, rule: RankRule, ranks: int) -> Floats:
        """The mean of P(R = r) of a call's first draft, r = 1, ..., ``[ranks]``; one rank may be known by itself.

        The first pass over the trace finds that of one rank too.
        """
        by_ranks = self._laws.setdefault(rule, {})
        for known, law in by_ranks.items():
            if known == ranks or 1 < ranks < known:
                return law[:ranks]
        names = columns_of(rule, [], self._trace.columns)
        asked = [ranks] if by_ranks else sorted({1, ranks})
        laws = [partial(_first_law, rule, ranks=each) for each in asked]
        by_ranks |= zip(asked, _means_of(self._trace, names, laws), strict=True)
        return by_ranks[ranks]

    def known(self, rule: RankRule) -> Floats:
        """The law of all ranks that the trace knows."""
        return self.of(rule, rule.known_ranks(self._trace.columns, RECORDED_RANKS))


def _first_law(rule: RankRule, columns: Columns, ranks: int) -> Floats:
    return rule.rank_law(AtDepth(columns, 1), ranks)
