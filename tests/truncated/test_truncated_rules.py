"""Certified intervals of a rule, by the rule: each holds the value of full pmfs; rules without an entry are named."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from spectheory import truncated
from spectheory.errors import SettingError
from spectheory.truncated import TopLogProbs
from spectheory.truncated.rules import TABLE
from spectheory.verification import (
    PATH_RULES,
    BiasedVerification,
    GumbelList,
    KSeq,
    PathRule,
    RankRule,
    Rule,
)

V = 40
LISTED = (1, 5, 20, V)
EVERY = (*PATH_RULES.values(), KSeq(), GumbelList(), BiasedVerification(0.1))
WITHOUT = {"lookup", "suffix", "grown", "biased"}
ROUNDING = 1e-9


def a_pair(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = 2 * rng.standard_normal(V)
    p, q = (np.exp(x) / np.exp(x).sum() for x in (logits, logits + rng.standard_normal(V)))
    return p, q


def test_rules_without_an_entry_are_named_and_refused() -> None:
    top = TopLogProbs.from_pmf(a_pair(0)[0], 5)
    assert {rule.name for rule in EVERY if rule not in TABLE} == WITHOUT
    for rule in (rule for rule in EVERY if rule.name in WITHOUT):
        with pytest.raises(SettingError, match=f"rule '{rule.name}' has no certified interval") as caught:
            truncated.acceptance(rule, top, top)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rule", list(TABLE), ids=lambda rule: rule.name)
def test_the_interval_holds_the_value_and_closes(rule: Rule) -> None:
    """With 1, 5, 20 and all tokens listed; the interval of another pair's lists does not hold it (control)."""
    missed = 0
    for seed in range(6):
        p, q = a_pair(seed)
        widths = []
        for m in LISTED:
            target, draft = (TopLogProbs.from_pmf(pmf, m) for pmf in (p, q))
            certified, value = truncated.acceptance(rule, target, draft), float(rule.acceptance(p, q))
            assert certified.low - ROUNDING <= value <= certified.high + ROUNDING
            widths.append(certified.high - certified.low)
        assert widths[-1] <= ROUNDING
        assert all(b <= a + ROUNDING for a, b in pairwise(widths))
        other = truncated.acceptance(rule, *(TopLogProbs.from_pmf(pmf, 20) for pmf in a_pair(seed + 100)))
        missed += not other.low <= value <= other.high
    assert missed > 0


GIVEN = [
    (rule, k)
    for rule, known in TABLE.items()
    if known.given and isinstance(rule, PathRule)
    for k in (1, 3)
    if k <= known.most_given
]


@pytest.mark.parametrize(("rule", "k"), GIVEN, ids=lambda value: getattr(value, "name", str(value)))
def test_given_the_output_the_interval_holds_the_value(rule: PathRule, k: int) -> None:
    p, q = a_pair(3)
    for token in (int(np.argmax(p)), int(np.argsort(-p)[10]), int(np.argmin(p))):
        value = float(np.asarray(rule.acceptance_given(p, q))[token])
        if k > 1:
            assert isinstance(rule, RankRule)
            value = float(np.sum(rule.rank_pmf_given(p, q, token, k)))
        for m in LISTED:
            certified = truncated.acceptance_given(rule, *(TopLogProbs.from_pmf(pmf, m) for pmf in (p, q)), token, k)
            assert certified.low - ROUNDING <= value <= certified.high + ROUNDING
        assert certified.high - certified.low <= ROUNDING
