"""Positions that listed calls verified, in the order of the text: each has one coin, accepted or not.

An engine that changes the text still verifies position by position: a token has some law given the text before it, and
was accepted with some probability given the token. In this order both are revealed one after the other, so sums of
either are martingales, whatever the engine does later. The recursion over starts would be exact for right output only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectheory.judging.starts import Calls, tilted

Floats = NDArray[np.float64]
SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.95)
"""Shares of tokens of another law that bets are on."""
_TINY = 1e-300


@dataclass(frozen=True)
class Verified:
    """Rows ``[M]`` of the texts that calls verified, and whether the draft there was accepted."""

    rows: NDArray[np.int64]
    accepted: NDArray[np.bool_]

    @classmethod
    def of(cls, calls: Calls) -> Verified:
        """Of each call its accepted drafts, and the one that was rejected if one was."""
        rejected = (calls.accepted < calls.judged).astype(np.int64)
        counts = calls.accepted + rejected
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return cls(np.repeat(calls.rows, counts) + within, within < np.repeat(calls.accepted, counts))

    def coins(self, chance: Floats) -> float:
        """A p-value, an upper bound, if each draft is accepted with this chance ``[M]`` given its token."""
        return tilted(self.accepted.astype(np.int64), np.stack([1 - chance, chance], axis=1), np.ones(len(chance)))


def bets(logs: Sequence[Floats]) -> float:
    """Log evidence against a law of tokens: bets that a share of them is drawn from others instead.

    `logs` are log-ratios ``[M]`` of the other laws to it. Each factor 1 - e + e r has mean 1 at most, so this is a test
    martingale.
    """
    each = [
        np.log(np.maximum(1 - share + share * np.exp(np.minimum(log, 27.0)), _TINY)).sum()
        for log in logs
        for share in SHARES
    ]
    return float(np.logaddexp.reduce(each) - math.log(len(each)))
