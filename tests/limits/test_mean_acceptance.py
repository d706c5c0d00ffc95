"""C6 against the exact expected calls of texts whose acceptances are anything, and the texts that reach its ends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectheory.cost import iid_tokens_per_call
from spectheory.drafting import Chain
from spectheory.limits.mean_acceptance import least_tokens_per_call, most_tokens_per_call, tokens_per_call_between
from spectheory.prediction.from_acceptance import from_acceptance
from spectheory.prediction.prediction import planned
from spectheory.reports.bounds import acceptance_report
from spectheory.reports.table import Table
from spectheory.trace import Trace
from spectheory.verification import PATH_RULES

ROOT = Path(__file__).parents[2]
ROUNDING = 1e-9


def expected_calls(acceptances: list[float], k: int) -> float:
    """Calls of a text, from the definition: a call tests up to k positions and outputs one token more than it accepts.

    The text may end within a call, which counts.
    """
    tokens = len(acceptances)
    calls = [0.0] * (tokens + k + 2)
    for start in reversed(range(tokens)):
        reach, value = 1.0, 1.0
        for depth in range(k):
            at = start + depth
            refused = 1 - acceptances[at] if at < tokens else 0.0
            value += reach * refused * calls[at + 1]
            reach *= 1 - refused
        calls[start] = value + reach * calls[start + k + 1]
    return calls[0]


texts = st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]) | st.floats(0, 1), min_size=1, max_size=40)
lengths = st.integers(1, 8)


@given(texts, lengths)
def test_every_text_lies_between(acceptances: list[float], k: int) -> None:
    """Up to the call that the end cuts short, which is less than one call."""
    mean, calls = float(np.mean(acceptances)), expected_calls(acceptances, k)
    tokens = len(acceptances)
    assert calls <= tokens / least_tokens_per_call(mean, k) + k / (k + 1) + ROUNDING
    assert calls >= tokens / most_tokens_per_call(mean, k) - ROUNDING


@given(texts, lengths, lengths)
def test_a_count_at_another_k_says_more(acceptances: list[float], counted_k: int, k: int) -> None:
    """The same with tokens per call at one k known, on a text that is repeated so that its ends hardly count."""
    repeats = 50
    whole = acceptances * repeats
    tokens = len(whole)
    counted, there = (tokens / expected_calls(whole, each) for each in (counted_k, k))
    low, high = tokens_per_call_between(min(counted, counted_k + 1), counted_k, k)
    # A call cut short changes each count of calls by less than one, so a ratio by less than this share.
    slack = 1 + 4 * (max(k, counted_k) + 1) ** 2 / tokens
    assert low / slack <= there <= high * slack


@pytest.mark.parametrize("k", [1, 3, 7])
def test_both_ends_are_reached(k: int) -> None:
    """Refusals that follow each other reach the lower end; spread so that each ends a call they reach the upper one.

    The formula of i.i.d. acceptances lies between, and fails as a bound on either side.
    """
    tokens, refused = 4000, 800
    mean, apart = 1 - refused / tokens, min(k + 1, tokens // refused)
    clustered = [0.0] * refused + [1.0] * (tokens - refused)
    spread = (([1.0] * (apart - 1) + [0.0]) * refused + [1.0] * tokens)[:tokens]
    low, high = (tokens / expected_calls(text, k) for text in (clustered, spread))
    assert low == pytest.approx(least_tokens_per_call(mean, k), rel=2e-3)
    assert high == pytest.approx(most_tokens_per_call(mean, k), rel=2e-3)
    assert low < iid_tokens_per_call(mean, k) < high


def test_numbers_of_the_page() -> None:
    """K = 7 and an acceptance of .8: at least 3.33 where i.i.d. says 4.16."""
    row = from_acceptance(0.8, 0.05, k_max=8).rows[6]
    assert [round(end, 2) for end in (row.tokens_per_call.low, row.tokens_per_call.best, row.tokens_per_call.high)] == [
        3.33,
        4.16,
        5.0,
    ]
    assert [round(speedup.low, 2) for speedup in row.speedups] == [2.84, 2.47, 1.96]


def test_numbers_of_the_built_in_pair() -> None:
    """What docs/numbers.md says: the range holds the exact value; the formula lies beside it."""
    trace = Trace.read(ROOT / "docs" / "figures" / "pair" / "distilled")
    (predicted,) = planned(trace, None, [PATH_RULES["token"]], [Chain(5)]).predictions
    ratios = np.exp(trace.columns["log_draft"].astype(float) - trace.columns["log_target"].astype(float))
    mean, exact = float(np.minimum(1, ratios).mean()), predicted.tokens_per_call.best
    low, high = least_tokens_per_call(mean, 5), most_tokens_per_call(mean, 5)
    assert low < exact < high
    said = (
        f"a = {mean:.3f} and k = 5: {low:.2f} to {high:.2f}; token verification has {exact:.2f}, "
        f"the i.i.d. formula says {iid_tokens_per_call(mean, 5):.2f}."
    )
    assert said in " ".join((ROOT / "docs" / "numbers.md").read_text(encoding="utf-8").split())


def test_free_drafts_have_one_cost() -> None:
    answer = from_acceptance(0.5, 0.0, k_max=3)
    assert answer.cs == (0.0,)
    assert [answer.gain(row) for row in answer.rows] == [row.tokens_per_call for row in answer.rows]


def test_accepted_over_drafted() -> None:
    """Engines print accepted over drafted tokens of k > 1: exact at that k, and not the acceptance of a position."""
    answer = from_acceptance(0.4, 0.1, counted_k=5)
    assert answer.rows[4].tokens_per_call.kind == "exact"
    assert answer.rows[4].tokens_per_call.best == pytest.approx(3.0)
    assert all(row.tokens_per_call.low <= row.tokens_per_call.best <= row.tokens_per_call.high for row in answer.rows)
    lows = [row.tokens_per_call.low for row in answer.rows]
    assert lows == sorted(lows)


@pytest.mark.parametrize("counted_k", [None, 5])
def test_the_notes_claim_no_more_than_the_theorem(counted_k: int | None) -> None:
    """Block verification is covered in the mean, by B7, and not from counts; the error of the rate is not covered."""
    report = acceptance_report(from_acceptance(0.6, 0.1, counted_k=counted_k))
    notes = " ".join(report.notes)
    assert ("block verification too in the mean over texts that the target samples" in notes) is (counted_k is None)
    assert ("Block verification is not covered" in notes) is (counted_k is not None)
    assert "error of the rate itself comes on top" in notes
    assert "ertain" not in " ".join([notes, report.headline, *(report.brief.verdict if report.brief else [])])


def test_a_range_whose_idealised_value_is_its_end_is_shown_by_both_ends() -> None:
    """At rate 1 for k = 5, bonus tokens may all be refused as drafts: k = 6 is sure of no more than k = 5."""
    answer = from_acceptance(1.0, 0.05, counted_k=5, k_max=7)
    report = acceptance_report(answer)
    assert report.brief is not None
    for table in (*report.pieces, *report.brief.pieces):
        assert isinstance(table, Table)
        rows = {row[0]: row for row in table.texts}
        assert (rows["5"][1], rows["6"][1]) == ("6.00", "6.00..7.00")
        assert "..".join(
            f"{end:.2f}" for end in (answer.gain(answer.rows[5]).low, answer.gain(answer.rows[5]).high)
        ) in (rows["6"][4].removesuffix("x"))
