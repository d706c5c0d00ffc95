"""Rules by the order of tokens: ties and rounded log-probabilities leave the order open (R7, A4, §9)."""

from __future__ import annotations

import numpy as np
import pytest

from spectheory import truncated
from spectheory.intervals import Interval
from spectheory.truncated import TopLogProbs
from spectheory.verification import ArgmaxDraft, GreedyMatch, TopKMatch

OPEN = Interval(0.0, 0.5, 1.0, "bound")
ROUNDED = 6e-4


def printed(pmf: list[float], m: int, error: float = ROUNDED) -> TopLogProbs:
    """The m first tokens of a pmf with three digits."""
    top = np.argsort(-np.array(pmf), kind="stable")[:m]
    return TopLogProbs(top, np.round(np.log(np.array(pmf)[top]), 3), len(pmf), error=error)


def test_rounded_equals_are_not_ordered() -> None:
    """Two draft masses print as -0.916: either may be the first choice."""
    target, draft = printed([0.2, 0.5, 0.3], 3), printed([0.39999, 0.40001, 0.2], 3)
    for rule in (ArgmaxDraft(), TopKMatch()):
        for token in (0, 1):
            assert truncated.acceptance_given(rule, target, draft, token) == OPEN
        assert truncated.acceptance_given(rule, target, draft, 2) == Interval.exact(0.0)
        ends = truncated.acceptance(rule, target, draft)
        assert (ends.low, ends.high) == pytest.approx((0.2, 0.5), abs=0.01)
    assert truncated.acceptance(GreedyMatch(), target, draft) == OPEN
    assert truncated.acceptance_given(TopKMatch(), target, draft, 1, 2) == Interval.exact(1.0)


@pytest.mark.parametrize(("apart", "kind"), [(0.0009, "bound"), (0.0021, "exact")])
def test_masses_further_apart_than_the_error_are_ordered(apart: float, kind: str) -> None:
    first = 0.4 * np.exp(apart)
    draft = TopLogProbs([0, 1, 2], np.log([0.4, first, 0.6 - first]), 3, error=5e-4)
    assert truncated.acceptance_given(ArgmaxDraft(), draft, draft, 1).kind == kind
    assert truncated.acceptance(GreedyMatch(), draft, draft).kind == kind


def test_an_unlisted_token_may_tie_with_the_last_listed_one() -> None:
    """Token 0 may have 1/4 like the listed token 2, and then comes before it; token 3 comes after."""
    target = TopLogProbs.from_pmf([0.25, 0.25, 0.25, 0.25], 4)
    tied, ordered = TopLogProbs([1, 2], np.log([0.5, 0.25]), 4), TopLogProbs([0, 1], np.log([0.5, 0.25]), 4)
    assert truncated.acceptance_given(TopKMatch(), target, tied, 2, 2) == OPEN
    assert truncated.acceptance_given(TopKMatch(), target, tied, 0, 2) == OPEN
    assert truncated.acceptance_given(TopKMatch(), target, tied, 3, 2) == Interval.exact(0.0)
    assert truncated.acceptance_given(TopKMatch(), target, ordered, 1, 2) == Interval.exact(1.0)
    assert truncated.acceptance_given(TopKMatch(), target, ordered, 2, 2) == Interval.exact(0.0)


def test_full_lists_without_ties_decide_everything() -> None:
    p, q = [0.2, 0.5, 0.3, 0.0], [0.39, 0.41, 0.2, 0.0]
    with np.errstate(divide="ignore"):
        target, draft = (TopLogProbs(range(4), np.log(pmf), 4, error=1e-6) for pmf in (p, q))
    for k in (1, 2, 3):
        within = [truncated.acceptance_given(TopKMatch(), target, draft, token, k) for token in range(3)]
        assert [each.kind for each in within] == ["exact"] * 3
        ends = truncated.acceptance(TopKMatch(), target, draft, k)
        assert ends.high - ends.low < 1e-5
        assert ends.low <= float(np.sum(TopKMatch().rank_pmf(p, q, k))) <= ends.high
    assert truncated.acceptance(GreedyMatch(), target, draft) == Interval.exact(1.0)
