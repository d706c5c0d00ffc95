"""Predicted against measured: calls, seconds beside tables, reruns, and the command."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spectheory.cli import main
from spectheory.cost import LatencyTable, LoopTime
from spectheory.drafting import Chain, Copied, KAry, Tree
from spectheory.errors import ModelError, SettingError, SpectheoryError, TextError, TraceError
from spectheory.intervals import Interval
from spectheory.measure import Model, ModelPair, Progress, teacher_forced
from spectheory.measure.decoders import Call
from spectheory.measure.tokens import encode_prompt
from spectheory.measure.validation import CHAIN_RULES, JUDGE, TREE_RULES, Setting, Validation, validate
from spectheory.measure.validation.answer import (
    Evidence,
    _answer_at,
    _budget,
    _by_table,
    _CallTime,
    _made_by_table,
    _speedup_of_calls,
    _TraceExpectation,
)
from spectheory.measure.validation.run import _run_once, decoded_rounds
from spectheory.measure.validation.runs import Run, compare_runs, expected_calls
from spectheory.reports import PARTS
from spectheory.trace import TextInfo, Trace
from spectheory.verification import PATH_RULES, IndependentMatch, RaceVerification
from tests.validation.validation_cases import HOW, PROMPTS, QUESTION, WARM

SIGMA = 6.0
"""|z| of a right prediction exceeds this in 2e-9 of all runs (normal limit); some 30 are looked at."""

DISTINCT = "recursive-distinct, k-ary 2x2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the validation leaves behind."""
    return tmp_path_factory.mktemp("validation")


@pytest.fixture(scope="module")
def validation(tiny_pair: ModelPair, folder: Path, quick_latencies: None) -> dict[str, Any]:
    """Every rule with a chain or a tree, at two temperatures."""
    return validate(tiny_pair, PROMPTS, QUESTION, folder)


def records(validation: dict[str, Any], temperature: float) -> list[dict[str, Any]]:
    return next(each["settings"] for each in validation["temperatures"] if each["temperature"] == temperature)


@pytest.mark.evidence
def test_counted_calls_are_those_expected(validation: dict[str, Any]) -> None:
    """8 texts of up to 30 tokens: an expectation off by about 20% would be seen. The control is the next test but one.

    The tests of the decoders look at more rules and texts.
    """
    compared = records(validation, WARM)
    assert {record["rule"] for record in compared} == {*CHAIN_RULES, *TREE_RULES}
    for record in compared:
        assert abs(record["expected"]["z"]) < SIGMA, record["name"]
        assert record["expected"]["p"] > 1e-9, record["name"]
    certain = {record["rule"] for record in compared if record["expected"]["deviation"] < 1e-3}
    assert certain == {"argmax", "topk", "lookup"}
    assert [record["name"] for record in compared if record["expected"]["of_estimates"] > 0] == [DISTINCT]


@pytest.mark.evidence
def test_greedy_calls_are_exact(validation: dict[str, Any]) -> None:
    """All but a tree of distinct candidates: what remains of a draft that has one token is drawn uniformly."""
    for record in records(validation, 0.0):
        if record["name"] != DISTINCT:
            assert record["calls"] == round(record["expected"]["calls"]), record["name"]
            assert record["expected"]["z"] == 0


@pytest.mark.evidence
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
    name: str, rule: Any, k: int, validation: dict[str, Any], tiny_pair: ModelPair, folder: Path
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


@pytest.mark.evidence
def test_the_parts_of_the_budget_add_up(validation: dict[str, Any]) -> None:
    for temperature in (0.0, WARM):
        for record in records(validation, temperature):
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


@pytest.mark.evidence
@pytest.mark.parametrize("looped", [True, False])
def test_what_is_predicted_is_met_when_the_seconds_are_the_table_s(
    tiny_pair: ModelPair, folder: Path, validation: Any, looped: bool
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
    (record,) = _answer_at(evidence)
    parts = {name: part["best"] for name, part in record["speedup"]["budget"].items()}
    for name in ("drafting", "verifying", "overhead", "plain"):
        assert abs(parts[name]) < 1e-9
    assert math.isclose(record["speedup"]["machine"], 1.0)
    alone, measured = record["speedup"]["passes_alone"]["best"], record["speedup"]["measured"]["best"]
    assert math.isclose(alone, measured) != looped
    assert math.isclose(record["speedup"]["miss"]["best"], record["speedup"]["miss_of_passes"]["best"]) != looped


@pytest.mark.evidence
def test_nothing_is_cut_when_the_trace_is_of_the_texts(tiny_pair: ModelPair, folder: Path, validation: Any) -> None:
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
        (record,) = _answer_at(of)
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


# What is kept


@pytest.mark.evidence
def test_a_rerun_goes_on(validation: dict[str, Any], tiny_pair: ModelPair, folder: Path) -> None:
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
    assert validate(tiny_pair, PROMPTS, QUESTION, folder)["temperatures"] == validation["temperatures"]


@pytest.mark.evidence
def test_a_text_depends_on_its_own_setting_alone(
    validation: dict[str, Any], tiny_pair: ModelPair, folder: Path
) -> None:
    """Not on what is decoded beside it; and settings do not share their randomness."""
    how = QUESTION.at(WARM)
    rounds = decoded_rounds(tiny_pair, PROMPTS, QUESTION.settings(WARM), how, folder / f"rounds-{WARM}.jsonl")
    for setting in (Setting("block", Chain(3)), Setting(JUDGE, Chain(3), judged=True)):
        alone = _run_once(tiny_pair, encode_prompt(tiny_pair.tokenizer, PROMPTS[5]), 5, setting, how)
        assert alone.output == rounds[5][setting.name].output
    assert len({run.output for run in rounds[5].values()}) > len(rounds[5]) / 2


@pytest.mark.evidence
def test_rounds_of_another_run_are_refused(validation: dict[str, Any], tiny_pair: ModelPair, folder: Path) -> None:
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


def test_damaged_rounds_are_decoded_again(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """A number that was changed, or one that is none, is no round of this run."""
    settings, how, few, path = QUESTION.settings(WARM)[:2], QUESTION.at(WARM), PROMPTS[:3], tmp_path / "rounds.jsonl"
    unbroken = decoded_rounds(tiny_pair, few, settings, how, path)
    text = path.read_text()
    moved, no_number = text.replace('"prompt":2,', '"prompt":20,'), text.replace('"count":', '"c":NaN,"x":')
    for damaged, left in ((moved, 2), (no_number, 0)):
        assert damaged != text
        strange, states = tmp_path / "damaged.jsonl", list[Progress]()
        strange.write_text(damaged)
        again = decoded_rounds(tiny_pair, few, settings, how, strange, on_progress=states.append)
        assert states[0].resumed == left
        assert [{n: r.output for n, r in one.items()} for one in again] == [
            {n: r.output for n, r in one.items()} for one in unbroken
        ]


def test_a_part_is_what_it_says() -> None:
    """One cause at a time: only its own part of the budget is not zero."""
    table = _CallTime(np.array([0.5]), np.array([1.1]), np.array([0.1]), 0.05)

    def parts(made: _CallTime = table, timed: _CallTime = table, trace: float = 2.0, counted: float = 2.0) -> list[str]:
        tokens = np.array([[trace], [2.0], [counted]])
        shares = _budget(*tokens, table, made, timed)
        miss = np.log(_speedup_of_calls(tokens[2], timed) / _speedup_of_calls(tokens[0], table))
        assert np.isclose(sum(shares.values()), miss, atol=1e-12)
        return [name for name, part in shares.items() if abs(part[0]) > 1e-12]

    slower = {
        name: dataclasses.replace(table, **{name: np.array([1.3])}) for name in ("drafting", "verifying", "overhead")
    }
    assert parts() == []
    assert parts(trace=2.5) == ["texts"]
    assert parts(counted=2.5) == ["acceptance"]
    for name, timed in slower.items():
        assert parts(timed=timed) == [name]
    assert parts(made=slower["drafting"], timed=slower["drafting"]) == ["cut"]
    assert parts(timed=dataclasses.replace(table, plain=0.2)) == ["plain"]


def test_calls_as_made_by_the_table() -> None:
    """By hand: three drafts in full, then a first pass on two tokens, then a text that ends after one draft."""
    second = Interval.exact
    table = LatencyTable({1: second(2.0), 4: second(5.0)}, {1: second(1.0), 2: second(1.5)}, context=8)
    calls = [Call(3, 3, 3, "bonus", 0, 0, 0), Call(3, 3, 1, "recovered", 0, 0, 0), Call(1, 1, 0, "recovered", 0, 0, 0)]
    made = _made_by_table(table, Chain(3), [Run((0,) * 7, 3, 1.0, tuple(calls))] * 2)
    np.testing.assert_allclose(made.drafting, (3.0 + 3.5 + 1.0) / 3 / 2)
    np.testing.assert_allclose(made.verifying, (5.0 + 5.0 + 3.0) / 3 / 2)
    narrow = _made_by_table(table, KAry((2, 1)), [Run((0,) * 2, 1, 1.0, (Call(2, 2, 1, "recovered", 0, 0, 0),))] * 2)
    np.testing.assert_allclose(narrow.drafting, 2.0 / 2)  # a draft with a single token: both passes are on one
    calls = [Call(3, 3, 3, "bonus", 0, 0, 0), Call(1, 1, 0, "recovered", 0, 0, 0), Call(0, 0, 0, "plain", 0, 0, 0)]
    copied = _made_by_table(table, Chain(3, schedule=Copied()), [Run((0,) * 6, 3, 1.0, tuple(calls))] * 2)
    np.testing.assert_array_equal(copied.drafting, 0.0)
    np.testing.assert_allclose(copied.verifying, (5.0 + 3.0 + 2.0) / 3 / 2)
    one, shares = np.ones(2), np.array([0.0, 1.0])
    shape = _by_table(table, _TraceExpectation(Chain(3, schedule=Copied()), one, shares, {4: shares, 1: 1 - shares}))
    np.testing.assert_array_equal(shape.drafting, 0.0)
    np.testing.assert_allclose(shape.verifying, [1.0, 2.5])
    shape = _by_table(table, _TraceExpectation(Chain(3), one, shares, {4: one}))
    np.testing.assert_allclose(shape.drafting, [1.5, 1.75])
    np.testing.assert_allclose(shape.verifying, 2.5)


KEPT = (("latency", "json"), ("rounds", "jsonl"), ("trace", "parquet"))


def refused(work: Callable[[], object], kind: type[SpectheoryError], words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        work()
    assert "\n" not in str(caught.value)


def test_what_cannot_be_run_is_refused_before_anything_runs(tiny_pair: ModelPair, tmp_path: Path) -> None:
    def asked(*rules: str, shape: Any = Chain(2), **how: Any) -> Validation:  # noqa: B008
        return Validation(rules, (shape,), (WARM,), dataclasses.replace(HOW, **how))

    refused(lambda: asked("best"), SettingError, "rule 'best' is unknown")
    refused(lambda: asked("block", shape=KAry((2, 2))), SettingError, "judges one chain")
    refused(lambda: asked(JUDGE, shape=KAry((2, 2))), SettingError, "judges one chain")
    refused(lambda: asked("recursive", shape=Tree.from_paths([(2,)])), SettingError, "ranks 1, 2")
    refused(lambda: asked("greedy"), SettingError, "temperature 0.8")
    refused(lambda: asked(given_text=True), SettingError, "given text")
    refused(lambda: Validation((), (Chain(1),), (math.nan,), HOW), SettingError, "temperature is nan")
    refused(lambda: Validation((), (Chain(1),), (0.7, 0.7 + 1e-9), HOW), SettingError, "two temperatures have the same")
    meta = torch.nn.Embedding(2, 2, device="meta")
    network = type("Elsewhere", (), {"get_input_embeddings": lambda self: meta, "dtype": torch.float32})()
    elsewhere = ModelPair(tiny_pair.target, Model("far", None, network, 64, 128, ""), tiny_pair.tokenizer, 64)
    cases: list[tuple[ModelPair, Any, Validation, type[SpectheoryError], str]] = [
        (elsewhere, PROMPTS, asked(JUDGE), ModelError, "target is on cpu and the draft on meta"),
        (tiny_pair, PROMPTS, asked("token", tokens=126), TextError, "3 tokens and 126 follow"),
        (tiny_pair, PROMPTS[:1], asked("token"), TextError, "there is 1 prompt"),
        (tiny_pair, (*PROMPTS, PROMPTS[0]), asked("token"), TextError, "two prompts are named '1'"),
        (tiny_pair, PROMPTS, asked("token", shape=Chain(127)), SettingError, "128 tokens.*126 nodes at most"),
    ]
    for pair, prompts, question, kind, words in cases:
        refused(lambda: validate(pair, prompts, question, tmp_path / "no"), kind, words)  # noqa: B023
    assert not (tmp_path / "no").exists()


# The command


@pytest.mark.usefixtures("quick_latencies")
def test_the_command(
    tiny_folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "question.jsonl"
    rows = [{"question_id": p.id, "category": "", "turns": [p.text]} for p in PROMPTS]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out"
    command = [
        *("validate", "--target", str(tiny_folders[0]), "--draft", str(tiny_folders[1]), "--device", "cpu"),
        *("--prompts", str(file), "--first", "3", "--tokens", "8", "--out", str(out)),
        *("--k", "1", "--temperature", "0", "--temperature", "1", "--rule", "token", "--rule", "lookup"),
    ]
    assert main([*command, "--all"]) == 0
    shown = capsys.readouterr().out
    assert "Counted and expected calls agree in all" in shown
    assert "overhead: a call outside the passes" in shown
    assert {path.name for path in out.iterdir()} == {
        *("validation.json", "validation.png", "validation.svg"),
        *(f"{what}-{at}.{kind}" for what, kind in KEPT for at in (0, 1)),
        *("calls-0", "calls-1"),
    }
    pair = ["--target", str(tiny_folders[0]), "--draft", str(tiny_folders[1]), "--device", "cpu"]
    for at, rule in ((0, "greedy"), (1, "token"), (1, "lookup")):
        log = out / f"calls-{at}" / f"{rule.replace('greedy', 'token')}-chain-k=1.jsonl"
        assert main(["judge", str(log), *pair]) == 0
        assert f"Counts fit rule {rule}: " in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    read = capsys.readouterr()
    content = json.loads(read.out)
    assert content == json.loads((out / "validation.json").read_text())
    assert "resumed: 3 of 3" in read.err
    assert str(tmp_path) not in json.dumps(content), "no path of the machine in the answer"
    monkeypatch.setattr("spectheory.measure.validation.answer.FALSE_ALARMS", 1e3)
    assert main(command) == 1
    assert "DISAGREE" in capsys.readouterr().out
