"""Counts expected of texts, their variances and laws, against an enumeration of every way to decode a text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from spectheory.judging.counting import Counted, Counting
from spectheory.judging.expected import SMALL, TINY, ExpectedCounts
from spectheory.prediction.law import law_of_count, moves_of, tails
from spectheory.prediction.paths import sums_of_texts
from tests.made_up import each

Floats = NDArray[np.float64]
K = 2
ROUNDING = 1e-12
"""Some hundred products and sums of numbers near one."""


def survival_of(texts: tuple[int, ...], seed: int = 0) -> Floats:
    """A survival at every position, falling along its row, also past the ends of texts."""
    return np.minimum.accumulate(np.random.default_rng(seed).random((sum(texts), K)), axis=1)


def decodings(survival: Floats, room: str, n: int = 0) -> Iterator[tuple[float, list[tuple[int, int]]]]:
    """Every sequence of calls (start, accepted) of one text, with its probability.

    With r tokens to go a call drafts r - 1 at most (`spare`), r (`exact`), or k, where those past the end are accepted
    like the last one of the text (`beyond`).
    """
    left = len(survival) - n
    if left <= 0:
        yield 1.0, []
        return
    deepest = {"spare": min(K, left - 1), "exact": min(K, left), "beyond": K}[room]
    reached = [1.0, *(survival[n, min(i, left) - 1] for i in range(1, deepest + 1)), 0.0]
    for accepted in range(deepest + 1):
        for chance, rest in decodings(survival, room, n + accepted + 1):
            yield (reached[accepted] - reached[accepted + 1]) * chance, [(n, accepted), *rest]


def counts(calls: list[tuple[int, int]]) -> list[int]:
    """Calls, and calls that accept at least i tokens."""
    return [len(calls), *(sum(accepted >= i for _, accepted in calls) for i in range(1, K + 1))]


@each(
    "past_end, low, high",
    [(False, "spare", "exact"), (True, "exact", "beyond"), (None, "spare", "beyond")],
)
def test_counts_are_those_of_an_enumeration(past_end: bool | None, low: str, high: str) -> None:
    """Means and variances, for the fewest and the most tokens counted at the end; the first from the prompt."""
    texts = (5, 1, 4)
    survival = survival_of(texts)
    expected = ExpectedCounts(survival, np.array(texts), Counting(K, True, past_end))
    for sums, room in ((expected.low, low), (expected.high, high)):
        for number, (end, length) in enumerate(zip(np.cumsum(texts), texts, strict=True)):
            ways = list(decodings(survival[end - length + 1 : end], room))
            chances, values = np.array([w for w, _ in ways]), np.array([counts(calls) for _, calls in ways])
            assert chances.sum() == pytest.approx(1, abs=ROUNDING)
            mean = chances @ values
            assert sums.expected[number] == pytest.approx(mean, abs=ROUNDING)
            assert sums.variance[number] == pytest.approx(chances @ (values - mean) ** 2, abs=ROUNDING)


def test_p_values_are_tails_of_the_enumerated_law() -> None:
    survival = survival_of((6,))
    expected = ExpectedCounts(survival, np.array([6]), Counting(K, False, False))
    ends = [[(w, counts(calls)) for w, calls in decodings(survival, room)] for room in ("spare", "exact")]
    for calls in range(2, 7):
        (first, *others) = expected.comparisons(Counted(calls, (2, 1)))
        for at, (one, count) in enumerate(zip((first, *others), (calls, 2, 1), strict=True)):
            below = sum(w for w, each in ends[0] if each[at] <= count)
            above = sum(w for w, each in ends[1] if each[at] >= count)
            tail = below if count < one.low else above if count > one.high else 1
            assert one.p == pytest.approx(min(1, 2 * tail), abs=ROUNDING)


def test_bounds_of_p_values_lie_above_the_laws_own() -> None:
    """Of sums with a large deviation: exact in between, a bound below and above."""
    texts = np.full(40, 30)
    expected = ExpectedCounts(survival_of(tuple(texts.tolist())), texts, Counting(K, False, False))
    inside = np.where(np.arange(1, K + 1) < 30 - np.arange(1200)[:, None] % 30, expected.survival, 0.0)
    laws = [(0, law) for law in law_of_count(moves_of(inside), np.ones(K + 1, bool), texts)]
    seen = []
    for off in (0.5, 1, 3, 5, 9, -0.5, -1, -3, -5, -9):
        calls = round(expected.low.expected[:, 0].sum() + off * np.sqrt(expected.low.variance[:, 0].sum()))
        (one,) = expected.comparisons(Counted(calls))
        tail = min(1.0, 2 * tails(laws, calls)[off > 0])
        between = TINY < one.p < SMALL
        seen.append((abs(off), between))
        assert one.p == pytest.approx(tail, rel=1e-9) if between else one.p >= tail
    assert sorted(set(seen)) == [(0.5, False), (1, False), (3, True), (5, True), (9, False)]


def test_texts_of_one_token_from_the_prompt_have_no_calls() -> None:
    for past_end in (True, False, None):
        expected = ExpectedCounts(np.ones((3, K)), np.ones(3, np.int64), Counting(K, True, past_end))
        assert [(one.low, one.high, one.p) for one in expected.comparisons(Counted(0, (0, 0)))] == [(0, 0, 1)] * 3
        assert expected.comparisons(Counted(1))[0].p == 0


def test_an_interval_is_left_on_its_nearer_side_alone() -> None:
    expected = ExpectedCounts(np.ones((5, K)), np.array([5]), Counting(K, False, None))
    for accepted in (1, 2):  # of the second call, which has two tokens to go
        assert [one.z for one in expected.comparisons(Counted(2, (2, accepted)))] == [0, 0, 0]
    assert [one.z for one in expected.comparisons(Counted(3, (3, 3)))] == [np.inf] * 3
    assert [one.z for one in expected.comparisons(Counted(2, (0, 0)))] == [0, -np.inf, -np.inf]


def test_calls_without_drafts_are_left_out_where_they_are_not_counted() -> None:
    """Nothing is accepted: the last of five calls has one token to go."""
    expected = ExpectedCounts(np.zeros((6, K)), np.array([6]), Counting(K, True, skips_undrafted=True))
    assert expected.low.expected.tolist() == [[4, 0, 0]]


def test_texts_of_any_lengths_have_their_own_laws() -> None:
    """Many texts at a time, sorted or not, against each alone; a text that the prompt's pass ends has no call."""
    texts = np.array([3, 0, 7, 1, 70])
    survival, counted = survival_of(tuple(texts.tolist()), 4), np.arange(K + 1)[:, None] >= np.arange(K + 1)
    sums = sums_of_texts(survival, counted, texts)
    for at, of_count in enumerate(counted.T):
        together = law_of_count(moves_of(survival), of_count, texts)
        assert together[1, 0] == 1.0
        for number, (end, length) in enumerate(zip(np.cumsum(texts), texts, strict=True)):
            if not length:
                continue
            inside = survival[end - length : end]
            alone = law_of_count(moves_of(inside), of_count, np.array([length]))[0]
            assert together[number, : len(alone)] == pytest.approx(alone, abs=ROUNDING)
            t = np.arange(len(alone))
            mean = alone @ t
            # The last token of a text leaves nothing that its calls' entries past the end could move.
            assert mean == pytest.approx(sums_of_texts(inside, counted, np.array([length])).expected[0, at], abs=1e-10)
            assert sums.variance[number, at] == pytest.approx(alone @ t**2 - mean**2, abs=1e-9)


def test_tails_of_a_sum() -> None:
    coin = (1, np.array([0.5, 0.5]))
    assert tails([coin, coin], 3) == (0.75, 0.75)
    assert tails([coin, coin], 5) == (1.0, 0.0)
