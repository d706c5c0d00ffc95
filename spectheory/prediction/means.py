"""Means over the positions of a trace, from sums over its blocks."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
from numpy.typing import NDArray

from spectheory.prediction.block_calls import columns_of
from spectheory.trace import RECORDED_RANKS, Trace
from spectheory.verification import Columns, RankRule
from spectheory.verification.by_start import AtDepth

Floats = NDArray[np.float64]


def mean_of(trace: Trace, names: Collection[str] | None, at: Callable[[Columns], Floats]) -> Floats:
    """The mean over all positions of what `at` makes of the columns of these names, ``[N, ...]``."""
    sums = [at(block.columns).sum(axis=0, dtype=np.float64) for block in trace.blocks(names)]
    return np.asarray(sum(sums[1:], sums[0]) / len(trace))


class MeanLaws:
    """The mean rank laws of rules along a trace; the law of many ranks serves fewer."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._found: dict[RankRule, dict[int, Floats]] = {}

    def of(self, rule: RankRule, ranks: int) -> Floats:
        """The mean of P(R = r) of a call's first draft, r = 1, ..., ``[ranks]``; one rank may be known by itself."""
        found = self._found.setdefault(rule, {})
        for known, law in found.items():
            if known == ranks or 1 < ranks < known:
                return law[:ranks]
        names = columns_of(rule, [], self._trace.columns)
        found[ranks] = mean_of(self._trace, names, lambda columns: rule.rank_law(AtDepth(columns, 1), ranks))
        return found[ranks]

    def known(self, rule: RankRule) -> Floats:
        """The law of all ranks that the trace knows."""
        return self.of(rule, rule.known_ranks(self._trace.columns, RECORDED_RANKS))
