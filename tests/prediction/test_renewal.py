"""Readings of counts at another k, on texts whose calls are known at every k."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spectheory.judging.counting import Counting
from spectheory.judging.expected import ExpectedCounts
from spectheory.prediction.renewal import Renewal, Summed, spread_of_calls
from spectheory.trace import Trace
from spectheory.verification import PATH_RULES
from tests.made_up import each

PAIR = Path(__file__).parents[2] / "docs" / "figures" / "pair"


def shares(trace: Trace, rule: str, k: int) -> tuple[float, ...]:
    """The shares of calls of k drafts that accept 1..k, as an engine of this rule counts them on the texts (exact)."""
    survival = np.asarray(PATH_RULES[rule].path_survival(trace.columns, k), dtype=float)
    counts = ExpectedCounts(survival, trace.lengths, Counting(k, past_end=False)).low.expected.sum(axis=0)
    return tuple((counts[1:] / counts[0]).tolist())


@each("draft", ["distilled", "draft"])
@each("rule", ["token", "argmax", "race", "independent", "lookup"])
def test_matches_that_renew_give_every_k(rule: str, draft: str) -> None:
    """Within 0.2% at shorter chains and 0.5% at longer ones. Control: the shares summed are off by 0.5% or more."""
    trace = Trace.read(PAIR / draft / "trace.parquet")
    true = {k: 1 + sum(shares(trace, rule, k)) for k in (1, 2, 3, 5, 8)}
    for ran in (8, 3):
        counted = shares(trace, rule, ran)
        for k in true.keys() - {ran}:
            slack = 2e-3 if k < ran else 5e-3
            assert abs(Renewal(counted).tokens(k) / true[k] - 1) < slack
            assert abs(Summed(counted).tokens(k) / true[k] - 1) > 5e-3


def test_counted_shares_spread_as_independent_calls_do() -> None:
    """The covariance of "at least i accepted", i = 1..k, by its definition: over the law of the accepted number."""
    counted, calls = np.array([0.8, 0.5, 0.1]), 70
    law = -np.diff(counted, prepend=1.0, append=0.0)
    reached = np.arange(4)[:, None] >= np.arange(1, 4)
    expected = (reached - counted).T @ (law[:, None] * (reached - counted)) / calls
    np.testing.assert_allclose(spread_of_calls(counted.tolist(), calls), expected, rtol=1e-12)


def test_no_call_and_every_call_have_a_spread() -> None:
    """Counts of 0 or all of 8 calls vary as 1 of 10 and 9 of 10 do."""
    np.testing.assert_allclose(np.diag(spread_of_calls([1.0, 0.0], 8)), [0.09 / 8, 0.09 / 8], rtol=1e-12)
