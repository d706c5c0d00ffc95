"""Calls with known starts: p-values that hold at any size, by enumeration, and what becomes of the ends of texts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from spectheory.judging.counting import Counting, past_end, starts_of, torn
from spectheory.judging.starts import Calls, tilted
from spectheory.trace.calls import CallLog, Request
from tests.made_up import each

Floats = NDArray[np.float64]
LAW = np.array([0.5, 0.3, 0.2])


def test_the_p_value_of_a_sum_is_one() -> None:
    """P(p <= a) <= a for every a, over all outcomes of six counts; small where the counts are extreme."""
    weights = np.linspace(-1, 1, 6)
    outcomes = [np.array(counts) for counts in product(range(3), repeat=6)]
    chances = np.array([LAW[counts].prod() for counts in outcomes])
    for weight in (np.ones(6), weights):
        p = np.array([tilted(counts, np.tile(LAW, (6, 1)), weight) for counts in outcomes])
        assert all(chances[p <= level].sum() <= level for level in np.unique(p))
    many = np.tile(LAW, (400, 1))
    assert tilted(np.full(400, 1), many, np.ones(400)) < 1e-6, "expected 280, deviation 16"
    assert tilted(np.repeat([0, 1, 2], [200, 120, 80]), many, np.ones(400)) == 1


def survival_of(law: Floats, calls: int) -> Floats:
    return np.tile(1 - np.cumsum(law)[:-1], (calls, 1))


def test_the_p_value_against_other_rules_is_one() -> None:
    """P(p <= a) <= a under each of three laws, over all outcomes of five calls."""
    rules = [LAW, np.array([0.2, 0.2, 0.6]), np.array([0.8, 0.1995, 0.0005])]
    read = [survival_of(rule, 5) for rule in rules]
    outcomes = [np.array(counts) for counts in product(range(3), repeat=5)]
    for number, rule in enumerate(rules):
        others = read[:number] + read[number + 1 :]
        p = np.array([calls_of(counts).likelihood(read[number], others) for counts in outcomes])
        chances = np.array([rule[counts].prod() for counts in outcomes])
        assert all(chances[p <= level].sum() <= level + 1e-12 for level in np.unique(p))
    assert calls_of(np.full(5, 2)).likelihood(read[0], read[1:]) < 0.05


def test_rounding_makes_a_few_calls_rare_and_refutes_nothing() -> None:
    """An engine rejects what it is certain to accept in 1 of 1000 calls; in 10 of 1000 it runs another rule."""
    survival = np.where(np.arange(2000)[:, None] % 2, [[1.0, 1.0]], [[0.6, 0.3]])
    others = [np.full((2000, 2), 0.5)]
    for rejected, refuted in ((2, False), (20, True)):
        counts = np.tile([0, 2, 1, 2, 2, 2, 0, 2, 1, 2], 200)
        counts[1 : 2 * rejected : 2] = 0
        calls = calls_of(counts)
        assert calls.likelihood(survival, others) == 1
        comparison = calls.rarities(survival)
        assert comparison is not None
        assert (comparison.counted, comparison.p < 1e-6) == (rejected, refuted)


def test_what_a_certain_law_excludes_is_refuted() -> None:
    for count, law in ((1, [1.0, 0.0]), (0, [0.0, 1.0])):
        assert tilted(np.array([count]), np.array([law]), np.ones(1)) == 0
        assert tilted(np.array([1 - count]), np.array([law]), np.ones(1)) == 1
    assert calls_of(np.array([1, 0])).likelihood(np.ones((2, 1)), []) == 0
    assert calls_of(np.array([1, 1])).rarities(np.ones((2, 1))) is None


def calls_of(counts: NDArray[np.int64]) -> Calls:
    """Calls at starts of their own, with room for two drafts."""
    two = np.full(len(counts), 2)
    return Calls(np.arange(len(counts)), counts, two, two, two + 1, np.zeros(len(counts), np.int64))


def log(output: int, accepted: tuple[int, ...], drafted: tuple[int, ...] = (), k: int = 2) -> CallLog:
    return CallLog((Request("a", (1,), tuple(range(output)), accepted=accepted, drafted=drafted),), k=k)


@each(
    "output, accepted, prefill, starts",
    [
        (6, (1, 2), True, [1, 3]),
        (6, (2, 2), False, [0, 3]),
        (6, (2, 1), True, [1, 4]),  # the last accepted token ends the text
        (6, (2, 2), True, [1, 4]),  # one lies past the end
        (6, (1, 1), True, None),  # one token is missing
        (6, (2, 2, 0), False, None),  # a call too many
    ],
)
def test_starts_of_calls_that_make_up_a_text(
    output: int, accepted: tuple[int, ...], prefill: bool, starts: list[int] | None
) -> None:
    counts = log(output, accepted)
    got = starts_of(counts.requests[0], Counting(2, prefill))
    assert (None if got is None else got.tolist()) == starts
    assert torn(counts, Counting(2, prefill)) == (("a",) if starts is None else ())


def test_tokens_past_the_end_are_counted_and_not_judged() -> None:
    counts = log(6, (2, 2), (2, 2))
    assert past_end(counts, Counting(2)) == 0, "the text's last token is accepted"
    counts = log(5, (2, 2), (2, 2))
    calls = Calls.of(counts, Counting(2, past_end=True))
    assert past_end(counts, Counting(2)) == 1
    assert calls is not None
    assert (calls.accepted.tolist(), calls.judged.tolist(), calls.left.tolist()) == ([2, 1], [2, 1], [4, 1])


def test_a_draft_that_may_not_have_been_made_is_left_out() -> None:
    """Without drafted lengths, the last draft that a text has room for is not judged.

    Nor is it with them, unless counts go on past the end: some engines count a call's tokens that are output, less one.
    """
    calls = Calls.of(log(6, (2, 1), (2, 2)), Counting(2))
    assert calls is not None
    assert (calls.accepted.tolist(), calls.judged.tolist()) == ([2, 1], [2, 1])
    calls = Calls.of(log(6, (1, 2)), Counting(2))
    assert calls is not None
    assert calls.judged.tolist() == [2, 2]
    calls = Calls.of(log(5, (1, 1)), Counting(2))
    assert calls is not None
    assert calls.judged.tolist() == [2, 1]


def test_calls_and_positions_at_their_own_starts() -> None:
    survival = np.array([[0.9, 0.5], [0.8, 0.4], [0.7, 0.3], [0.6, 0.2], [0.5, 0.1], [0.4, 0.05]])
    calls = Calls.of(log(6, (1, 2), (2, 2)), Counting(2))
    assert calls is not None
    assert calls.laws(survival) == pytest.approx(np.array([[0.2, 0.4, 0.4], [0.4, 0.4, 0.2]]))
    (first, second) = calls.comparisons(survival)
    assert (first.counted, first.low) == (2, pytest.approx(0.8 + 0.6))
    assert (second.counted, second.low) == (1, pytest.approx(0.4 + 0.2))


def test_one_request_that_does_not_fit_leaves_the_starts_of_all_unknown() -> None:
    """Which requests fit depends on what was accepted, so judging them alone is biased."""
    whole, short = log(6, (1, 2)).requests[0], log(6, (1, 1)).requests[0]
    assert Calls.of(CallLog((whole, whole), k=2), Counting(2)) is not None
    assert Calls.of(CallLog((whole, short), k=2), Counting(2)) is None
