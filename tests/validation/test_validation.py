"""Predicted against measured: calls at a stated false-alarm rate, seconds, and what a validation leaves behind."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spectheory.cost import LatencyTable, LoopTime
from spectheory.drafting import Chain
from spectheory.errors import TraceError
from spectheory.measure import ModelPair, Progress, teacher_forced
from spectheory.measure.tokens import encode_prompt
from spectheory.measure.validation import CHAIN_RULES, JUDGE, TREE_RULES, Setting, validate
from spectheory.measure.validation.answer import Evidence, answer_at
from spectheory.measure.validation.rounds import decoded_rounds
from spectheory.measure.validation.runs import Run, compare_runs, expected_calls, run_once
from spectheory.plots.style import new_figure
from spectheory.plots.validation import draw
from spectheory.reports import PARTS
from spectheory.trace import TextInfo, Trace
from spectheory.verification import PATH_RULES, IndependentMatch, RaceVerification
from tests.validation.validation_cases import PROMPTS, QUESTION, WARM

SIGMA = 6.0
"""|z| of a right prediction exceeds this in 2e-9 of all runs (normal limit); some 30 are looked at."""


DISTINCT = "recursive-distinct, k-ary 2x2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the validation leaves behind."""
    return tmp_path_factory.mktemp("validation")


@pytest.fixture(scope="module")
def found(tiny_pair: ModelPair, folder: Path, quick_latencies: None) -> dict[str, Any]:
    """Every rule with a chain or a tree, at two temperatures."""
    return validate(tiny_pair, PROMPTS, QUESTION, folder)


def records(found: dict[str, Any], temperature: float) -> list[dict[str, Any]]:
    return next(each["settings"] for each in found["temperatures"] if each["temperature"] == temperature)


@pytest.mark.evidence
def test_counted_calls_are_those_expected(found: dict[str, Any]) -> None:
    """8 texts of up to 30 tokens: an expectation off by about 20% would be seen. The control is the next test but one.

    The tests of the decoders look at more rules and texts.
    """
    compared = records(found, WARM)
    assert {record["rule"] for record in compared} == {*CHAIN_RULES, *TREE_RULES}
    for record in compared:
        assert abs(record["expected"]["z"]) < SIGMA, record["name"]
        assert record["expected"]["p"] > 1e-9, record["name"]
    certain = {record["rule"] for record in compared if record["expected"]["deviation"] < 1e-3}
    assert certain == {"argmax", "topk", "lookup"}
    assert [record["name"] for record in compared if record["expected"]["of_estimates"] > 0] == [DISTINCT]


def test_greedy_calls_are_exact(found: dict[str, Any]) -> None:
    """All but a tree of distinct candidates: what remains of a draft that has one token is drawn uniformly."""
    for record in records(found, 0.0):
        if record["name"] != DISTINCT:
            assert record["calls"] == round(record["expected"]["calls"]), record["name"]
            assert record["expected"]["z"] == 0


@pytest.mark.parametrize(
    ("name", "rule", "k"),
    [
        ("race, chain k=3", IndependentMatch(), 3),
        ("race, chain k=3", RaceVerification(), 1),
        ("lookup, chain k=3", PATH_RULES["argmax"], 3),
        ("argmax, chain k=3", PATH_RULES["argmax"], 1),
    ],
)
def test_a_wrong_expectation_is_seen(
    name: str, rule: Any, k: int, found: dict[str, Any], tiny_pair: ModelPair, folder: Path
) -> None:
    """Negative control: the expectation of another rule, and of another number of drafts."""
    settings = QUESTION.settings(WARM)
    rounds = decoded_rounds(tiny_pair, PROMPTS, settings, QUESTION.at(WARM), folder / f"rounds-{WARM}.jsonl")
    runs = []
    for prompt, one in zip(PROMPTS, rounds, strict=True):
        run = one[name]
        wrong = expected_calls(
            tiny_pair, encode_prompt(tiny_pair.tokenizer, prompt), torch.tensor(run.output), QUESTION.at(WARM).sampling,
            rule, Chain(k),
        )  # fmt: skip
        runs.append(dataclasses.replace(run, expected=wrong))
    assert abs(compare_runs(runs).z) > SIGMA
    assert compare_runs(runs).p < 1e-9


# Seconds


def test_the_parts_of_the_budget_add_up(found: dict[str, Any]) -> None:
    for temperature in (0.0, WARM):
        for record in records(found, temperature):
            speedup = record["speedup"]
            if record["judged"]:
                assert "budget" not in speedup
                continue
            assert set(speedup["budget"]) == set(PARTS)
            total = sum(part["best"] for part in speedup["budget"].values())
            assert math.isclose(total, speedup["miss"]["best"], abs_tol=1e-9)
            miss = 100 * math.log(speedup["measured"]["best"] / speedup["predicted"]["best"])
            assert math.isclose(miss, speedup["miss"]["best"], abs_tol=1e-9)
            assert speedup["largest"] in PARTS


@pytest.mark.parametrize("looped", [True, False])
def test_what_is_predicted_is_met_when_the_seconds_are_the_table_s(
    tiny_pair: ModelPair, folder: Path, found: Any, looped: bool
) -> None:
    """Runs whose seconds are those of the table: drafting, verifying and overhead are no part of the miss."""
    settings, how = QUESTION.settings(WARM), QUESTION.at(WARM)
    table = LatencyTable.read(folder / f"latency-{WARM}.json")
    step = table.target_pass(1).best
    loop = LoopTime(plain=0.2 * step, call=0.3 * step, draft_pass=0.1 * step, node=0.01 * step, tree=0.0)
    table = dataclasses.replace(table, loop=loop if looped else None)
    rounds = decoded_rounds(tiny_pair, PROMPTS, settings, how, folder / f"rounds-{WARM}.jsonl")
    token = Setting("token", Chain(3))
    for one in rounds:
        for name, setting in (("plain", None), (token.name, token)):
            one[name] = _timed_by(table, one[name], step, setting)
    evidence = Evidence(
        (token,),
        tuple(p.id for p in PROMPTS),
        rounds,
        Trace.read(folder / f"trace-{WARM}.parquet"),
        table,
    )
    (record,) = answer_at(evidence)
    parts = {name: part["best"] for name, part in record["speedup"]["budget"].items()}
    for name in ("drafting", "verifying", "overhead", "plain"):
        assert abs(parts[name]) < 1e-9
    assert math.isclose(record["speedup"]["machine"], 1.0)
    alone, measured = record["speedup"]["passes_alone"]["best"], record["speedup"]["measured"]["best"]
    assert math.isclose(alone, measured) != looped
    assert math.isclose(record["speedup"]["miss"]["best"], record["speedup"]["miss_of_passes"]["best"]) != looped


def test_nothing_is_cut_when_the_trace_is_of_the_texts(tiny_pair: ModelPair, folder: Path, found: Any) -> None:
    """Prompt lookup: given the texts, the predicted calls are those that were made. The control: drafts in full."""
    how, lookup = QUESTION.at(WARM), Setting("lookup", Chain(3))
    rounds = decoded_rounds(tiny_pair, PROMPTS, QUESTION.settings(WARM), how, folder / f"rounds-{WARM}.jsonl")
    outputs = [torch.tensor(one[lookup.name].output) for one in rounds]
    asked = [encode_prompt(tiny_pair.tokenizer, prompt) for prompt in PROMPTS]
    read = [teacher_forced(tiny_pair, *ids, how.sampling) for ids in zip(asked, outputs, strict=True)]
    columns = {name: np.concatenate([one[name] for one in read]) for name in read[0]}
    texts = tuple(
        TextInfo(prompt.id, len(text), prompt.id, ended=int(text[-1]) in tiny_pair.end_of_text)
        for prompt, text in zip(PROMPTS, outputs, strict=True)
    )
    full = columns | {"lookup_drafted": np.full(len(columns["token"]), 3)}
    cut = []
    for known in (columns, full):
        trace = Trace(known, texts, {"settings": {"tokens": how.tokens}})
        table = LatencyTable.read(folder / f"latency-{WARM}.json")
        of = Evidence((lookup,), tuple(p.id for p in PROMPTS), rounds, trace, table)
        (record,) = answer_at(of)
        cut.append(record["speedup"]["budget"]["cut"])
        assert abs(record["speedup"]["budget"]["texts"]["best"]) < 1e-9
    assert max(abs(cut[0][end]) for end in ("low", "best", "high")) < 1e-9
    assert abs(cut[1]["best"]) > 1e-2


def _timed_by(table: LatencyTable, run: Run, step: float, setting: Setting | None) -> Run:
    calls, full, around = [], False, 0.0
    if table.loop:
        around = table.loop.of(setting.drafts) if setting else table.loop.plain
    for call in run.calls:
        drafting = sum(table.draft_pass(1 + (full and i == 0)).best for i in range(call.depth))
        verifying = table.target_pass(call.drafted + 1).best if setting else step
        timed = {"draft_seconds": drafting, "target_seconds": verifying, "seconds": drafting + verifying + around}
        calls.append(dataclasses.replace(call, **timed))
        full = call.last == "bonus"
    return dataclasses.replace(run, calls=tuple(calls), seconds=sum(call.seconds for call in calls))


def test_the_figure_has_a_row_per_pair(found: dict[str, Any]) -> None:
    figure = new_figure((8, 8))
    assert draw(figure, [found, found])
    assert len(figure.axes) == 4
    (key,) = figure.legends
    assert {text.get_text() for text in key.get_texts()} >= {"token", "block"}


# What is kept


def test_a_rerun_goes_on(found: dict[str, Any], tiny_pair: ModelPair, folder: Path) -> None:
    """After a kill in the middle of a line: the finished rounds as they were, the others with the same texts."""
    settings, how, path = QUESTION.settings(WARM), QUESTION.at(WARM), folder / f"rounds-{WARM}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 9
    torn = folder / "torn.jsonl"
    torn.write_bytes(b"".join(lines[:7]) + lines[7][:100])
    states: list[Progress] = []
    again = decoded_rounds(tiny_pair, PROMPTS, settings, how, torn, on_progress=states.append)
    assert [state.done for state in states] == [6, 7, 8]
    assert torn.read_bytes().splitlines(keepends=True)[:7] == lines[:7]
    unbroken = decoded_rounds(tiny_pair, PROMPTS, settings, how, path)
    assert again[:6] == unbroken[:6]
    for one, other in zip(again, unbroken, strict=True):
        assert {n: (r.output, r.count, r.expected) for n, r in one.items()} == {
            n: (r.output, r.count, r.expected) for n, r in other.items()
        }
    assert validate(tiny_pair, PROMPTS, QUESTION, folder)["temperatures"] == found["temperatures"]


def test_a_text_depends_on_its_own_setting_alone(found: dict[str, Any], tiny_pair: ModelPair, folder: Path) -> None:
    """Not on what is decoded beside it; and settings do not share their randomness."""
    how = QUESTION.at(WARM)
    rounds = decoded_rounds(tiny_pair, PROMPTS, QUESTION.settings(WARM), how, folder / f"rounds-{WARM}.jsonl")
    for setting in (Setting("block", Chain(3)), Setting(JUDGE, Chain(3), judged=True)):
        alone = run_once(tiny_pair, encode_prompt(tiny_pair.tokenizer, PROMPTS[5]), 5, setting, how)
        assert alone.output == rounds[5][setting.name].output
    assert len({run.output for run in rounds[5].values()}) > len(rounds[5]) / 2


def test_rounds_of_another_run_are_refused(found: dict[str, Any], tiny_pair: ModelPair, folder: Path) -> None:
    swapped = ModelPair(tiny_pair.draft, tiny_pair.target, tiny_pair.tokenizer, tiny_pair.vocabulary)
    others = dataclasses.replace(QUESTION, rules=("race",))
    for pair, question in ((swapped, QUESTION), (tiny_pair, others)):
        with pytest.raises(TraceError, match="another"):
            validate(pair, PROMPTS, question, folder)
    strange = folder / "strange.jsonl"
    for content in ('{"text": 1}\n', "notes, no line of them whole"):
        strange.write_text(content)
        with pytest.raises(TraceError, match="holds no rounds"):
            decoded_rounds(tiny_pair, PROMPTS, QUESTION.settings(WARM), QUESTION.at(WARM), strange)
        assert strange.read_text() == content, "nothing was cut"


def test_damaged_rounds_are_decoded_again(found: dict[str, Any], tiny_pair: ModelPair, folder: Path) -> None:
    """A number that was changed, or one that is none, is no round of this run."""
    settings, how, path = QUESTION.settings(WARM), QUESTION.at(WARM), folder / f"rounds-{WARM}.jsonl"
    own = path.read_text()
    unbroken = decoded_rounds(tiny_pair, PROMPTS, settings, how, path)
    moved, no_number = own.replace('"prompt":7,', '"prompt":70,'), own.replace('"count":', '"c":NaN,"x":')
    for damaged, left in ((moved, 7), (no_number, 0)):
        assert damaged != own
        strange, states = folder / "damaged.jsonl", list[Progress]()
        strange.write_text(damaged)
        again = decoded_rounds(tiny_pair, PROMPTS, settings, how, strange, on_progress=states.append)
        assert states[0].resumed == left
        assert [{n: r.output for n, r in one.items()} for one in again] == [
            {n: r.output for n, r in one.items()} for one in unbroken
        ]
