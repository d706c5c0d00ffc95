"""Validation of draft heads: calls expected by start agree, and the reading per position is refuted."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from spectheory.drafting import Batch, Chain, KAry
from spectheory.errors import SettingError
from spectheory.measure import ModelPair
from spectheory.measure.validation import JUDGE, Validation, validate
from spectheory.reports import validation_report
from tests.toy_heads import TOYS, ToyHead, ToyParallelHead, with_head
from tests.validation.validation_cases import HOW, PROMPTS, WARM

QUESTION = Validation((), (Chain(1), Chain(4), KAry((2, 2, 1))), (0.0, WARM), dataclasses.replace(HOW, tokens=60))
SIGMA = 6.0
"""|z| of a right expectation exceeds this in 2e-9 of all runs (normal limit); some 20 are looked at."""


@pytest.fixture(scope="module", params=TOYS)
def of_head(request: pytest.FixtureRequest, tiny_pair: ModelPair, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A validation of a toy head."""
    pair = with_head(tiny_pair, request.param)
    return validate(pair, PROMPTS, QUESTION, tmp_path_factory.mktemp("head"))


def test_counted_calls_are_those_expected_by_start(of_head: dict[str, Any]) -> None:
    """Every rule at temperature 0 and above; the control is the next test."""
    for found in of_head["temperatures"]:
        rules = {record["rule"] for record in found["settings"]}
        assert rules == {"token", "block", "race", "argmax", "lookup", "recursive", "topk"}
        for record in found["settings"]:
            expected = record["expected"]
            assert expected["z"] is not None, record["name"]
            assert abs(expected["z"]) < SIGMA, record["name"]
            assert expected["p"] > 1e-9, record["name"]
            assert found["temperature"] or expected["z"] == 0, record["name"]
    assert of_head["disagreements"] == 0


def test_the_reading_per_position_is_refuted(of_head: dict[str, Any]) -> None:
    """The same texts; false alarm of the verdict at most 0.001, as of the validation."""
    control = of_head["control"]
    assert control["refuted"]
    records = {(f["temperature"], r["name"]): r for f in of_head["temperatures"] for r in f["settings"]}
    held = {key for key, record in records.items() if "per_position" in record}
    assert {name for _, name in records} - {name for _, name in held} == {
        *(f"{rule}, chain k=1" for rule in ("token", "block", "race", "argmax", "lookup")),
        "lookup, chain k=4",
    }
    assert control["comparisons"] == len(held)
    assert abs(records[control["temperature"], control["name"]]["per_position"]["z"]) == abs(control["z"]) > SIGMA


def test_the_answer_says_so(of_head: dict[str, Any]) -> None:
    report = validation_report(of_head)
    notes = "\n".join(report.notes)
    assert "Control: the same texts refute the reading of this head per position" in notes
    assert "assisted is left out" in notes
    weak = {**of_head, "control": {**of_head["control"], "refuted": False, "refuted_in": 0}}
    assert "The power is too low" in "\n".join(validation_report(weak).notes)
    assert json.loads(json.dumps(of_head)) == of_head


def test_what_a_head_cannot_be_asked_is_one_line(tiny_pair: ModelPair, tmp_path: Path) -> None:
    pair = with_head(tiny_pair, ToyParallelHead)
    cases = [
        ((JUDGE,), Chain(2), {}, "assisted is asked for with the draft head 'toy head': .*draft models alone"),
        (("token",), Chain(7), {}, "token is asked for chain k=7: .* at most 6 tokens deep"),
        (("recursive-distinct",), KAry((2, 2)), {}, "ranks are recorded by start for race and recursive to 4"),
        (("race",), Batch(5), {}, "ranks are recorded by start for race and recursive to 4"),
        (("token",), Chain(3), {"depth": 2}, "--depth is 2: a shape is 3 deep"),
    ]
    for rules, shape, options, line in cases:
        question = Validation(rules, (shape,), (WARM,), dataclasses.replace(HOW, **options))
        with pytest.raises(SettingError, match=line) as caught:
            validate(pair, PROMPTS, question, tmp_path / "no")
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "no").exists()


def test_a_rerun_goes_on(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """What is expected per position is kept with the rounds."""
    question = Validation(("token",), (Chain(3),), (WARM,), HOW)
    first, again = (validate(with_head(tiny_pair, ToyHead), PROMPTS[:3], question, tmp_path) for _ in range(2))
    assert first["temperatures"] == again["temperatures"]
    assert "per_position" in again["temperatures"][0]["settings"][0]
