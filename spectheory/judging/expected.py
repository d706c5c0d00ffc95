"""Calls and accepted tokens that the path theorem expects of given texts, as an engine counts them (§7, §13).

Counters per position are the survival at the call starts of that very rule and k: the sum over starts of the expected
visits times P(tau >= i). All numbers are exact given the texts, but for tokens past the end of a text: their acceptance
is unknown, and counts that hold them lie in an interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spectheory.judging.comparison import Comparison
from spectheory.judging.counting import Counted, Counting
from spectheory.prediction.law import laws_of_counts, tails, trimmed
from spectheory.prediction.paths import TextSums, sums_of_texts, tokens_left

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Expected:
    """Counts expected of texts: calls, then calls that accept at least 1, ..., k tokens.

    `survival` ``[N, k]`` is P(tau >= i) at each position of the texts, of `lengths` tokens; entries past the end of a
    text are ignored. `low` and `high` are the sums for the fewest and the most tokens counted at the ends of texts.

    Examples
    --------
    Two texts of three tokens, the first from the prompt's pass; every draft is accepted.

    >>> expected = Expected(np.ones((6, 2)), np.array([3, 3]), Counting(2, past_end=False))
    >>> expected.low.expected.sum(axis=0), expected.high.expected.sum(axis=0)
    (array([2., 2., 0.]), array([2., 2., 2.]))
    """

    survival: Floats
    lengths: Integers
    counting: Counting

    @cached_property
    def decoded(self) -> tuple[Floats, Integers]:
        """Survival and lengths without tokens that the prompts' own passes emit."""
        if not self.counting.prefill:
            return self.survival, self.lengths
        kept = np.ones(len(self.survival), bool)
        kept[np.cumsum(self.lengths) - self.lengths] = False
        return self.survival[kept], self.lengths - 1

    @cached_property
    def low(self) -> TextSums:
        """Sums with the fewest tokens counted that the texts allow."""
        return sums_of_texts(self._masked(most=False), self._rewards, self.decoded[1])

    @cached_property
    def high(self) -> TextSums:
        """Sums with the most."""
        return sums_of_texts(self._masked(most=True), self._rewards, self.decoded[1])

    def comparisons(self, found: Counted) -> tuple[Comparison, ...]:
        """Calls, and calls with at least i accepted tokens where they were counted, against expectation."""
        counts = (found.calls - self.counting.prompt_counted * len(self.lengths), *found.accepted)
        names = ("calls", *(f"accepted at {i}" for i in range(1, len(counts))))
        return tuple(
            self._compared(at, name, count) for at, (name, count) in enumerate(zip(names, counts, strict=True))
        )

    def _compared(self, at: int, name: str, count: int) -> Comparison:
        ends = self.low, self.high
        low, high = (float(end.expected[:, at].sum()) for end in ends)
        nearer = ends[int(abs(count - high) < abs(count - low))]
        deviation = float(np.sqrt(max(nearer.covariance[:, at, at].sum(), 0.0)))
        # What is counted lies between both ends whatever the calls do, so each tail is bounded by that of one end.
        below, above = tails(self._laws[0][at], count)[0], tails(self._laws[1][at], count)[1]
        return Comparison(name, count, low, high, deviation, min(1.0, 2 * min(below, above)))

    @cached_property
    def _laws(self) -> tuple[list[list[tuple[int, Floats]]], ...]:
        """For both ends, for each count, the law of each text."""
        lengths = self.decoded[1]
        both = (laws_of_counts(self._masked(most=most), self._rewards, lengths) for most in (False, True))
        return tuple([[trimmed(law) for law in column] for column in laws.swapaxes(0, 1)] for laws in both)

    @cached_property
    def _rewards(self) -> NDArray[np.bool_]:
        """What a call with 0..k accepted tokens adds to each count, ``[..., k + 1, k + 1]``; by start if needed."""
        k = self.counting.k
        counts = np.arange(k + 1)[:, None] >= np.arange(k + 1)
        if not self.counting.skips_undrafted:
            return counts
        drafts = tokens_left(self.decoded[1]) > 1
        every = np.repeat(counts[None], len(drafts), axis=0)
        every[:, :, 0] = drafts[:, None]
        return every

    def _masked(self, *, most: bool) -> Floats:
        """Survival with the entries at the end of each text that count.

        With r tokens to go, the engine drafts r - 1 at least. The r-th is of the text. Later ones are accepted at most
        as often.
        """
        survival, lengths = self.decoded
        left, past = tokens_left(lengths)[:, None], self.counting.past_end
        depth = np.arange(1, survival.shape[1] + 1)
        inside = np.where(depth <= left - (past is not True and not most), survival, 0.0)
        if past is False or not most:
            return inside
        last = np.take_along_axis(survival, np.minimum(left, survival.shape[1]) - 1, axis=1)
        return np.where(depth > left, last, inside)
