"""Calls and accepted tokens that the path theorem expects of given texts, as an engine counts them (§7, §13).

Counters per position are the survival at the call starts of that very rule and k: the sum over starts of the expected
visits times P(tau >= i). All numbers are exact given the texts, but for tokens past the end of a text: their acceptance
is unknown, and counts that hold them lie in an interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Floats
from spectheory.judging.comparison import CERTAIN, Comparison
from spectheory.judging.counting import Counted, Counting
from spectheory.prediction.law import law_of_count, log_moment, moves_of, tails, trimmed
from spectheory.prediction.paths import TextSums, sums_of_texts, tokens_left

Integers = NDArray[np.int64]

TINY, SMALL, FEW = 1e-12, 0.1, 3.0
"""Chernoff's bound stands for a p-value below the first, which refutes, and for one above the second, which does not,
unless the count's deviation is below the third. The law takes a hundred times as long."""
_LARGEST_POWER = 600.0
"""Of e, in a moment of a text's count: float64 ends at 709."""


@dataclass(frozen=True)
class ExpectedCounts:
    """Counts expected of texts: calls, then calls that accept at least 1, ..., k tokens.

    `survival` ``[N, k]`` is P(tau >= i) at each position of the texts, of `lengths` tokens; entries past the end of a
    text are ignored. `low` and `high` are the sums for the fewest and the most tokens counted at the ends of texts.
    `undecided` are the survivals with every near-tie rejected, and accepted, where nothing else is random.

    Examples
    --------
    Two texts of three tokens, the first from the prompt's pass; every draft is accepted.

    >>> expected = ExpectedCounts(np.ones((6, 2)), np.array([3, 3]), Counting(2, past_end=False))
    >>> expected.low.expected.sum(axis=0), expected.high.expected.sum(axis=0)
    (array([2., 2., 0.]), array([2., 2., 2.]))
    """

    survival: Floats
    lengths: Integers
    counting: Counting
    undecided: tuple[Floats, Floats] | None = None

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

    @cached_property
    def calls(self) -> TextSums:
        """Those of :attr:`high` for the calls alone."""
        return sums_of_texts(self._masked(most=True), self._rewards[..., :1], self.decoded[1])

    def comparisons(self, totals: Counted) -> tuple[Comparison, ...]:
        """Calls, and calls with at least i accepted tokens where they were counted, against expectation."""
        counts = np.array([totals.calls - self.counting.prompt_counted * len(self.lengths), *totals.accepted])
        names = ("calls", *(f"accepted at {i}" for i in range(1, len(counts))))
        if self.undecided is not None:
            return tuple(self._within(names, counts))
        low, high = (end.expected.sum(axis=0)[: len(counts)] for end in (self.low, self.high))
        spreads = [np.sqrt(end.variance.sum(axis=0)[: len(counts)]) for end in (self.low, self.high)]
        nearer = np.where(abs(counts - high) < abs(counts - low), spreads[1], spreads[0])
        # What is counted lies between both ends whatever the calls do, so each tail is bounded by that of one end.
        p = np.ones(len(counts))
        for most, off, spread in ((False, counts - low, spreads[0]), (True, counts - high, spreads[1])):
            outside = np.flatnonzero(off > 0 if most else off < 0)
            if len(outside):
                p[outside] = self._tails(outside, counts[outside], off[outside], spread[outside], most=most)
        rows = zip(names, counts.tolist(), low.tolist(), high.tolist(), nearer.tolist(), p.tolist(), strict=True)
        return tuple(Comparison(*row) for row in rows)

    def _within(self, names: Sequence[str], counts: Integers) -> Iterator[Comparison]:
        """Counts of which near-ties alone leave an interval: outside it they are impossible."""
        ends = (replace(self, survival=end, undecided=None) for end in self.undecided or ())
        least, most = (end._masked(most=last) for end, last in zip(ends, (False, True), strict=True))
        low, high = (end.sum(axis=0) for end in _extremes(least, most, self.decoded[1], self._rewards))
        for name, count, fewest, largest in zip(names, counts.tolist(), low.tolist(), high.tolist(), strict=False):
            yield Comparison(name, count, fewest, largest, 0.0, float(fewest <= count <= largest))

    def more_calls(self, calls: int) -> float:
        """A p-value, an upper bound, of so many calls or more (Chernoff); 1 below their mean."""
        off, spread = calls - self.calls.expected.sum(axis=0), np.sqrt(self.calls.variance.sum(axis=0))
        if off[0] <= 0:
            return 1.0
        return float(self._chernoff(np.array([0]), np.array([calls]), off, spread, most=True)[0])

    def _chernoff(self, at: Integers, counts: Integers, off: Floats, spread: Floats, *, most: bool) -> Floats:
        """An upper bound of twice the tail."""
        lengths = self.decoded[1]
        largest = _LARGEST_POWER / max(*lengths.tolist(), 1)
        tilts = np.clip(off / np.maximum(spread**2, CERTAIN**2), -largest, largest)
        moves = moves_of(self._masked(most=most))
        of_counts = zip(np.moveaxis(self._rewards[..., at], -1, 0), tilts.tolist(), strict=True)
        moments = np.array([log_moment(moves, each, lengths, tilt).sum() for each, tilt in of_counts])
        return np.asarray(2 * np.exp(np.minimum(moments - tilts * counts, 0.0)))

    def _tails(self, at: Integers, counts: Integers, off: Floats, spread: Floats, *, most: bool) -> Floats:
        """Twice the tail of counts that lie outside one end of their interval, `off` it; exact or an upper bound."""
        moves, lengths = moves_of(self._masked(most=most)), self.decoded[1]
        p = self._chernoff(at, counts, off, spread, most=most)
        for near in np.flatnonzero((p > TINY) & ((p < SMALL) | (spread < FEW))).tolist():
            laws = law_of_count(moves, self._rewards[..., at[near]], lengths)
            p[near] = 2 * tails([trimmed(law) for law in laws], int(counts[near]))[int(most)]
        p[(spread == 0) & (abs(off) > 0.5)] = 0.0
        return np.minimum(p, 1.0)

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


def _extremes(low: Floats, high: Floats, lengths: Integers, rewards: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Least and most of each count ``[texts, A]``, whatever becomes of undecided drafts (exact).

    `low` and `high` ``[N, k]`` are survivals of 0 and 1, with every undecided draft rejected, and accepted; a call of
    accepted length j adds `rewards` ``[..., k + 1, A]``.
    """
    (tokens, k), counts = high.shape, rewards.shape[-1]
    reached = np.concatenate([np.ones((tokens, 1)), high], axis=1) > 0.5
    may_fail = np.concatenate([low[:, 0] < 0.5, np.ones(k, bool)])
    stops = np.concatenate([~reached[:, 1:], np.ones((tokens, 1), bool)], axis=1)
    possible = reached & (stops | may_fail[np.arange(tokens)[:, None] + np.arange(k + 1)])
    ends = np.cumsum(lengths)
    totals = np.zeros((2, len(lengths), counts))
    for text, (start, end) in enumerate(zip(ends - lengths, ends, strict=True)):
        later = np.zeros((2, end - start + k + 1, counts))
        for n in range(end - start - 1, -1, -1):
            may = np.flatnonzero(possible[start + n])
            added = rewards[start + n] if rewards.ndim == 3 else rewards
            options = later[:, n + 1 + may] + added[may]
            later[0, n], later[1, n] = options[0].min(axis=0), options[1].max(axis=0)
        totals[:, text] = later[:, 0]
    return totals[0], totals[1]
