"""Validation of stopped chains (§11): counted and expected calls of every rule and stop, and the page of results."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import runpy
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch

from spectheory.cli import main
from spectheory.distributions import Sampling
from spectheory.drafting import Chain, read_stop
from spectheory.errors import SettingError
from spectheory.measure import ModelPair
from spectheory.measure.assisted import _seeds_of, generate
from spectheory.measure.validation import FILTERS_JUDGE, JUDGE, Setting, Validation, validate
from spectheory.measure.validation.run import decoded_rounds
from spectheory.measure.validation.runs import Run, compare_runs
from spectheory.reports import validation_report
from tests.made_up import each
from tests.toy_heads import TOYS, with_head
from tests.validation.validation_cases import HOW, PROMPTS, WARM

SHAPES = tuple(Chain(4, stop=read_stop(text)) for text in ("token<0.4", "top<0.6", "entropy>1.5"))
RULES = ("token", "block", "race", "argmax", JUDGE, FILTERS_JUDGE)
QUESTION = Validation(RULES, SHAPES, (WARM,), dataclasses.replace(HOW, tokens=30))
FALSE_ALARM = 1e-9
"""Of each of the twenty-two exact tails below."""


def decoded(
    pair: ModelPair, temperature: float, path: Path, question: Validation = QUESTION, prompts: int = 4
) -> dict[str, list[Run]]:
    """The runs of every setting."""
    question = question.with_draft(pair.draft)
    settings, at = question.settings(temperature), question.at(temperature)
    rounds = decoded_rounds(pair, PROMPTS[:prompts], settings, at, path)
    return {setting.name: [one[setting.name] for one in rounds] for setting in settings}


@pytest.mark.parametrize("prompts", [2, pytest.param(4, marks=pytest.mark.evidence)])
def test_calls_are_those_of_stopped_chains(tiny_pair: ModelPair, tmp_path: Path, prompts: int) -> None:
    """30 tokens a prompt for each rule and stop, exact tails; control: chains that always draft k are refuted."""
    runs = decoded(tiny_pair, WARM, tmp_path / "rounds.jsonl", prompts=prompts)
    assert len(runs) == 4 * 3 + 2
    for name, of_one in runs.items():
        assert compare_runs(of_one).p > FALSE_ALARM, name
        drafted, calls = sum(run.drafted for run in of_one), sum(run.count for run in of_one)
        assert 0 < drafted < 3.5 * calls, name
    certain = [of_one for name, of_one in runs.items() if name.startswith("argmax")]
    assert all(compare_runs(of_one, "fixed").z == math.inf for of_one in certain)
    assert compare_runs([run for of_one in runs.values() for run in of_one], "fixed").p < FALSE_ALARM


def test_greedy_calls_are_equal_to_the_expected_ones(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """At temperature 0 stopping rules compare the plain softmax, in transformers too; counts are exact.

    Control: chains that always draft k, which is what a one-hot confidence would expect, are refuted.
    """
    question = dataclasses.replace(QUESTION, rules=("token", "race", JUDGE, FILTERS_JUDGE), shapes=SHAPES[:2])
    runs = decoded(tiny_pair, 0.0, tmp_path / "rounds.jsonl", question, prompts=2)
    assert len(runs) == 2 * 2 + 2
    assert all(compare_runs(of_one).z == 0 for of_one in runs.values())
    assert all(compare_runs(of_one, "fixed").z == math.inf for of_one in runs.values())
    for run in (run for of_one in runs.values() for run in of_one):
        assert run.expected is not None
        assert run.expected.drafted is not None
        assert run.expected.drafted[0] <= run.drafted <= run.expected.drafted[3]


@pytest.mark.evidence
@pytest.mark.parametrize("toy", TOYS)
def test_heads_stop_too(tiny_pair: ModelPair, toy: Any, tmp_path: Path) -> None:
    """Drafts by start and depth, of an autoregressive and a parallel head; control as above."""
    shapes = [Chain(4, stop=read_stop(text)) for text in ("token<0.4", "top<0.8")]
    question = Validation(("token", "argmax"), tuple(shapes), (WARM,), QUESTION.how)
    runs = decoded(with_head(tiny_pair, toy), WARM, tmp_path / "rounds.jsonl", question)
    assert all(compare_runs(of_one).p > FALSE_ALARM for of_one in runs.values())
    assert compare_runs([run for of_one in runs.values() for run in of_one], "fixed").p < FALSE_ALARM


def test_drafts_of_transformers_are_counted_and_its_threshold_stays(tiny_pair: ModelPair) -> None:
    """Without a threshold every call but the last drafts k; the threshold does not move with scikit-learn."""
    ids, seeds = torch.tensor([1, 2, 3]), _seeds_of(1, 4, [torch.tensor([1])] * 4)
    sampling, stop = Sampling(temperature=WARM), read_stop("token<0.4")
    for seed in seeds:
        fixed = generate(tiny_pair, ids, sampling, 4, 40, seed)
        assert fixed.drafted <= 4 * fixed.calls
    stopped = [generate(tiny_pair, ids, sampling, 4, 40, seed, stop=stop) for seed in seeds]
    assert 0 < sum(one.drafted for one in stopped) < 3.5 * sum(one.calls for one in stopped)
    with patch("transformers.generation.candidate_generator.is_sklearn_available", return_value=True):
        again = [generate(tiny_pair, ids, sampling, 4, 40, seed, stop=stop) for seed in seeds]
    assert [(one.calls, one.drafted) for one in again] == [(one.calls, one.drafted) for one in stopped]


@pytest.mark.evidence
def test_the_answer_names_both_controls(tiny_pair: ModelPair, tmp_path: Path, quick_latencies: None) -> None:
    """A rerun reads what was finished; the report says what was refuted."""
    shape = Chain(4, stop=read_stop("top<0.8"))
    question = Validation(("token", "argmax"), (shape,), (WARM,), QUESTION.how)
    pair = with_head(tiny_pair, TOYS[0])
    first, again = (validate(pair, PROMPTS, question, tmp_path / "v") for _ in range(2))
    assert first["temperatures"] == again["temperatures"]
    assert first["disagreements"] == 0
    assert set(first) >= {"control", "control_of_stopping"}
    assert first["control_of_stopping"]["refuted"]
    record = first["temperatures"][0]["settings"][0]
    assert (record["shape"], set(record["speedup"])) == (str(shape), {"measured", "predicted"})
    report = validation_report(first)
    assert "refute chains that always draft k in " in "\n".join(report.notes)
    assert json.loads(json.dumps(first)) == first


@each("stop", ["top<0.5", "entropy>2", "token<0.4"])
def test_usual_rules_are_those_that_take_the_stopping_rule(stop: str) -> None:
    """Where no rule is named, transformers is left out of rules other than token<."""
    usual = {setting.rule for setting in Validation((), (Chain(2, stop=read_stop(stop)),), (WARM,), HOW).settings(WARM)}
    assert {"token", "block", "race"} < usual
    assert (JUDGE in usual) == stop.startswith("token")


def test_close_thresholds_keep_results_of_their_own() -> None:
    """Results are kept under the name, which is also what a threshold is read from."""
    close = ["token<0.1234567", "token<0.12345674", "token<0.4", "token<9.5e-05", "entropy>2", "top<1"]
    assert [str(read_stop(text)) for text in close] == close
    assert len({Setting("token", Chain(2, stop=read_stop(text))).key for text in close}) == len(close)


def test_what_does_not_stop_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SettingError, match="stops by the probability of the drafted token alone"):
        Setting(JUDGE, SHAPES[1], judged=True)
    with pytest.raises(SettingError, match="its drafts are copied"):
        Setting("lookup", SHAPES[0])
    assert Validation((), SHAPES, (WARM,), HOW).settings(WARM)
    cases = [
        (["--stop", "entropy>2"], "entropy>2 is asked for at temperature 0: the draft's pmf is one token there"),
        (["--stop", "token<2"], "token<"),
        (["--stop", "luck>1"], "the stopping rule is 'luck>1'"),
        (["--stop", "top<0.5", "--shape", "2x2"], "--stop is given with the shape 2x2: a stopping rule ends chains"),
        (["--stop", "top<0.5", "--rule", "lookup"], "its drafts are copied"),
        (["--stop", "top<0.5", "--engine", "vllm"], "--stop is given with an engine"),
    ]
    for words, line in cases:
        assert main(["validate", "--out", str(tmp_path / "no"), *words]) == 2
        assert line in " ".join(capsys.readouterr().err.split())
    assert Chain(4, stop=SHAPES[0].stop) == SHAPES[0] != Chain(4)


ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "benchmarks" / "_stopping_page.py"))


def test_the_page_is_up_to_date() -> None:
    """To renew it: `python benchmarks/_stopping_page.py`, with folders of new validations as arguments."""
    page = (ROOT / "docs" / "figures" / "stopping.md").read_text()
    assert SCRIPT["renewed"](page) == page


def test_counts_agree_and_the_control_is_refuted() -> None:
    """Every draft; a changed count would be seen in the table."""
    answers = SCRIPT["kept"]()
    drafts = {"distilled", "eagle3", "dflash"}
    assert {answer["draft"] for answer in answers} == drafts
    for answer in answers:
        assert (answer["disagreements"], answer["control_of_stopping"]["refuted"]) == (0, True)
    of_draft = {name: [row for a in answers for row in a["rows"] if a["draft"] == name] for name in drafts}
    for rows in of_draft.values():
        assert {row["temperature"] for row in rows} == {0.0, 0.7, 1.0}
        greedy = [row for row in rows if row["temperature"] == 0]
        assert all(row["calls"] == row["expected"]["calls"] and row["fixed"]["p"] == 0 for row in greedy)
        assert all(
            row["drafted"]["certain"][0] <= row["drafted"]["counted"] <= row["drafted"]["certain"][1] + 1e-9
            for row in greedy
        )
    changed = copy.deepcopy(answers)
    changed[0]["rows"][0]["calls"] += 1
    assert SCRIPT["table"](changed) != SCRIPT["table"](answers)
