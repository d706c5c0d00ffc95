"""Rules are asked for in one way everywhere: a name, a rule, a list of both, or all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spectheory
from spectheory import deployment
from spectheory.cost import ConstantRatio
from spectheory.drafting import Chain
from spectheory.errors import SpectheoryError
from spectheory.trace import Trace
from spectheory.trace.calls import CallLog, Request
from spectheory.verification import BlockVerification, TokenVerification
from tests.cli.theory_cases import full_trace
from tests.commands import answer
from tests.made_up import each, one_line

TRACE = Trace.from_log_probabilities([([-1.0] * 9, [-1.2] * 9)])
COST = ConstantRatio(0.1)
PMFS = {"target_pmf": [0.5, 0.5], "draft_pmf": [0.25, 0.75]}
REQUESTS = (Request("a", output=(3, 1, 4), accepted=(1, 0), drafted=(1, 1)),)
LOG = CallLog(REQUESTS, k=1, temperature=1.0, prefill_emits_token=False, provenance={"rule": "block"})
TEXT = Trace.from_logits([[0.0] * 5] * 3, [[0.1] * 4 + [0.0]] * 3, [3, 1, 4])
BOTH = {"token", "block"}
ASKS: list[tuple[Callable[[Any], set[str]], set[str]]] = [
    (lambda rules: {p.rule.name for p in spectheory.plan(TRACE, rules=rules, k_max=1).predictions}, BOTH),
    (
        lambda rules: {
            c.prediction.rule.name
            for c in deployment.plan([deployment.Draft("a", TRACE, COST)], rules=rules, k_max=1).ranking.candidates
        },
        BOTH,
    ),
    (lambda rules: {row.rule for row in spectheory.rules(**PMFS, rules=rules).rows}, BOTH | {"kseq", "race", "topk"}),
    (lambda rules: {*spectheory.judge(LOG, TEXT, rules=rules).stated}, set()),
]
"""What answers, as the names of its rules, and names that all has."""
FORMS: list[tuple[Any, set[str]]] = [
    ("token", {"token"}),
    (TokenVerification(), {"token"}),
    (["token", "block", "token"], BOTH),
]


@each("ask, every", ASKS)
def test_a_name_a_rule_a_list_and_all(ask: Callable[[Any], set[str]], every: set[str]) -> None:
    for rules, names in (*FORMS, ([TokenVerification(), BlockVerification()], BOTH)):
        assert ask(rules) == names
    for rules in ("all", ["all"]):
        assert every <= ask(rules)
    for wrong in ("tokens", 3, [3], ["token", "tokens"]):
        with pytest.raises(SpectheoryError, match="rule"):
            ask(wrong)


def test_all_leaves_out_what_the_trace_does_not_know(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Named, such a rule is refused; rules that change the output are in no answer to all."""
    assert "race" not in {p.rule.name for p in spectheory.plan(TRACE, rules="all", k_max=1).predictions}
    with pytest.raises(SpectheoryError) as caught:
        spectheory.plan(TRACE, rules=["token", "race"], k_max=1)
    assert "rule 'race' cannot be predicted" in one_line(caught)
    full_trace(tmp_path / "trace.parquet")
    content = answer(capsys, "predict", tmp_path, "--rule", "all", "--k-max", "1")
    python = spectheory.plan(Trace.read(tmp_path / "trace.parquet"), rules="all", k_max=1)
    names = {one.rule.name for one in python.predictions}
    assert {one["rule"] for one in content["predictions"]} == names >= {"token", "race", "recursive", "argmax"}
    assert "greedy" not in names


def test_without_rules_the_log_is_believed() -> None:
    assert spectheory.judge(LOG, TEXT).stated == ("block",)
    assert spectheory.judge(LOG, TEXT, rules=[]).stated == ("block",)


def test_one_rule_has_a_name_too() -> None:
    assert spectheory.predict(TRACE, "token", Chain(2)) == spectheory.predict(TRACE, TokenVerification(), Chain(2))
