"""Bad input of calculators: each line of refusals.txt is a call, and the error with a part of its message."""

from __future__ import annotations

import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import spectheory
from spectheory import cost, drafting, errors, limits, truncated, verification
from spectheory.distributions import Sampling, validate_pmf
from spectheory.limits import StepLaw, branching_bound_from_text
from spectheory.logit_statistics import pair_statistics
from spectheory.prediction.best_tree import BestTree
from spectheory.truncated import TopLogProbs
from tests.api.calculators import DISTINCT
from tests.cost.roofline_cases import CARD, LARGE
from tests.made_up import each, one_line

FAIR = [0.5, 0.5]


def log(*values: float) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(values)


def bent(step: int, row: int, value: float) -> Any:
    """Four steps of fair rows, one entry changed."""
    chain = np.full((4, 2, 2), 0.5)
    chain[step, row, 0] = value
    return chain


def of_text(*surprisals: Any, capacity: Any = 1, t: Any = 0.7) -> float:
    return branching_bound_from_text(list(surprisals), capacity, t)


NAMES: dict[str, Any] = {
    **{
        name: getattr(room, name)
        for room in (spectheory, verification, drafting, cost, limits)
        for name in room.__all__
    },
    **{"inf": math.inf, "nan": math.nan, "np": np, "torch": torch, "truncated": truncated, "TopLogProbs": TopLogProbs},
    **{"BestTree": BestTree, "Sampling": Sampling, "validate_pmf": validate_pmf, "pair_statistics": pair_statistics},
    **{"log": log, "bent": bent, "of_text": of_text, "drawn": lambda _, n: [FAIR] * n, "DISTINCT": DISTINCT},
    **{"FAIR": FAIR, "LEAN": [0.75, 0.25], "FAIRS": [FAIR] * 2, "ONES": [1.0, 0.0], "LACKING": (FAIR, [1.0, 0.0])},
    **{"SURE": StepLaw.from_pmfs([1.0]), "LAW": StepLaw.from_pmfs(FAIR), "HUGE": 10**400, "CARD": CARD, "LARGE": LARGE},
    "TINY": {"num_hidden_layers": 3, "hidden_size": 48, "intermediate_size": 80, "num_attention_heads": 6}
    | {"num_key_value_heads": 2, "vocab_size": 101},
    "LISTS": (TopLogProbs([0], log(0.5), 5), TopLogProbs([0], log(0.5), 5)),
    "ONE_OF_EACH": (TopLogProbs([0], log(0.5), 5), TopLogProbs([0], log(0.5), 6)),
    "LACKS_ONE": (TopLogProbs([0, 1], log(1.0, 0.0), 5), TopLogProbs([0], log(0.5), 5)),
}
REFUSED = Path(__file__).with_name("refusals.txt").read_text(encoding="utf-8").splitlines()
ALLOCATED = 40 * 2**20
"""Bytes that a refusal may take: the largest input here has 2 MB; what is refused would take gigabytes."""


def check(call: str, expected: str) -> None:
    """The call is refused with the error, in one short line, and before anything large is allocated."""
    name, _, fragment = expected.partition(": ")
    tracemalloc.start()
    try:
        with pytest.raises(getattr(errors, name)) as caught:
            eval(call, NAMES)
        assert tracemalloc.get_traced_memory()[1] < ALLOCATED
    finally:
        tracemalloc.stop()
    assert type(caught.value).__name__ == name
    assert fragment in one_line(caught)
    assert len(str(caught.value)) < 300


@each("row", REFUSED)
def test_bad_input_is_refused_in_one_line(row: str) -> None:
    call, _, expected = row.partition(" -> ")
    check(call, expected)


OF_RULES = """
rule.acceptance(FAIR, FAIR, 0) -> SettingError: is 0: must be >= 1
rule.acceptance(FAIR, FAIR, 1.5) -> SettingError: is 1.5: must be a whole number
"""
OF_RANKS = """
rule.rank_pmf(FAIR, FAIR, 0) -> SettingError: max_rank is 0: must be >= 1
rule.rank_pmf_given(FAIR, FAIR, 0, 0) -> SettingError: max_rank is 0: must be >= 1
rule.rank_pmf_given(FAIR, FAIR, 2, 2) -> ShapeError: token is 2: ids are 0..1
rule.rank_pmf_given(FAIR, FAIR, -1, 2) -> ShapeError: token is -1: ids are 0..1
"""
OF_SINGLES = """
rule.acceptance(FAIR, FAIR, 2) -> SettingError: takes one candidate
"""
EVERY = (*verification.RULES.values(), DISTINCT, verification.KSeq(), verification.GumbelList())


@each("rule", EVERY)
def test_rules_refuse_alike(rule: verification.Rule) -> None:
    rows = (
        OF_RULES + (OF_RANKS if isinstance(rule, verification.RankRule) else "") + ("" if rule.several else OF_SINGLES)
    )
    for row in filter(None, rows.splitlines()):
        call, _, expected = row.partition(" -> ")
        NAMES["rule"] = rule
        check(call, expected)
    if isinstance(rule, verification.PathRule):
        with pytest.raises(errors.TraceError, match=f"rule {rule.name!r} cannot be predicted"):
            rule.require({})


def test_what_is_accepted_or_refused_otherwise_is_seen() -> None:
    """Negative control: a call that is fine, another error, and another message."""
    for call, expected in (
        ("entropy(FAIR)", "PmfError: pmf"),
        ("entropy([])", "ShapeError: pmf"),
        ("entropy([])", "PmfError: sums"),
    ):
        with pytest.raises((AssertionError, pytest.fail.Exception, errors.SpectheoryError)):
            check(call, expected)
