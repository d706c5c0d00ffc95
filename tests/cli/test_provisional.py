"""The provisional answer: from which prompts, when, where it is shown, and that the final answer ignores it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from spectheory.cli import console, main
from spectheory.cli.measure import _Costs, _Pace
from spectheory.cost import ConstantRatio
from spectheory.measure import run as measuring
from spectheory.measure.job import FIRST, _last_complete, stages_of
from spectheory.trace import Trace
from tests.measure.runner_cases import kept

PROMPTS = 16


@pytest.fixture
def tiny(tmp_path: Path, tiny_folders: tuple[Path, Path]) -> list[str]:
    """Options of a tiny pair with more prompts than the first stage has, in two categories."""
    prompts = tmp_path / "question.jsonl"
    rows = [
        {"question_id": i, "category": "one" if i < PROMPTS // 2 else "two", "turns": [f"t{i % 7 + 1} t2 t3"]}
        for i in range(PROMPTS)
    ]
    prompts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    target, draft = map(str, tiny_folders)
    pair = ["--target", target, "--draft", draft, "--device", "cpu", "--prompts", str(prompts)]
    asked = ["--rule", "token", "--shape", "chain", "--k-max", "2", "--c", "0.1"]
    return ["predict", *pair, "--tokens", "4", "--continuations", "1", "--batch", "4", *asked]


@pytest.fixture
def figures() -> None:
    """Figures are drawn."""


@pytest.fixture(autouse=True)
def undrawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures take a second; they are drawn where a test asks for it."""
    if "figures" not in request.fixturenames:
        monkeypatch.setattr("spectheory.cli.predict.write_figures", lambda *_: [])


def undated(file: Path) -> Any:
    """An answer without the date and the machine's state."""
    content = json.loads(file.read_text())
    content["provenance"].pop("date")
    return content


def test_stages_are_spread_over_the_file_and_grow() -> None:
    for total in (1, 11, 12, 13, 20, 48, 100, 481):
        for batch in (1, 5, 10, 12, 16, 64):
            stages = stages_of(total, batch)
            by_stage = [[place for places in stage.batches for place in places] for stage in stages]
            assert sorted(place for places in by_stage for place in places) == list(range(total))
            assert len(by_stage[0]) == min(total, FIRST), "a larger file has a provisional answer, whatever the batch"
            for stage, places in zip(stages, by_stage, strict=True):
                sizes = [len(one) for one in stage.batches]
                assert len(sizes) == -(-len(places) // batch)
                assert max(sizes) <= batch
            for before, stage in pairwise(stages[:-1]):
                more = len(stage.places) - len(before.places)
                assert len(before.places) <= more < len(before.places) + batch
                assert all(len(one) == batch for one in stage.batches)
            gaps = [b - a for a, b in pairwise(by_stage[0])]
            assert not gaps or max(gaps) - min(gaps) <= 1


def test_a_stage_is_complete_with_all_its_prompts() -> None:
    stages = stages_of(30)
    first, second = stages[0].places, stages[1].places
    assert _last_complete(stages, first - {min(first)}) is None
    assert _last_complete(stages, first) is stages[0]
    assert _last_complete(stages, second - first) is None
    assert _last_complete(stages, second) is stages[1]


def test_the_answer_does_not_depend_on_what_was_shown(
    tiny: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [*tiny, "--out"]
    assert main([*command, str(tmp_path / "shown")]) == 0
    out, err = capsys.readouterr()
    assert err.count(f"Provisional, from {FIRST} of {PROMPTS} prompts") == 1
    assert re.search(r"The rest takes about \d+ s\.", err)
    assert "Provisional" not in out
    monkeypatch.setattr("spectheory.cli.measure._show_briefly", lambda *_: None)
    assert main([*command, str(tmp_path / "silent")]) == 0
    assert "Provisional" not in capsys.readouterr().err, "the control: nothing was shown"
    shown, silent = (undated(tmp_path / name / "prediction.json") for name in ("shown", "silent"))
    assert json.dumps(shown) == json.dumps(silent)
    assert "provisional" not in shown
    assert shown["prompts"] == PROMPTS


@pytest.mark.evidence
def test_quick_stops_and_a_later_run_goes_on(
    tiny: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, out = [*tiny, "--json", "--out"], tmp_path / "out"
    assert main([*command, str(out), "--quick"]) == 0
    quick = json.loads(capsys.readouterr().out)
    assert quick["provisional"] == {"prompts": FIRST, "of": PROMPTS}
    assert quick["prompts"] == FIRST
    assert quick["headline"].startswith(f"Provisional, from {FIRST} of {PROMPTS} prompts")
    assert kept(out / "trace.parquet") == stages_of(PROMPTS)[0].places
    assert main([*command, str(out)]) == 0
    answer, err = capsys.readouterr()
    assert f"resumed: {FIRST} of {PROMPTS} prompts" in err
    assert "Provisional" not in json.loads(answer)["headline"]
    assert main([*command, str(tmp_path / "unbroken")]) == 0
    one, other = (undated(tmp_path / name / "prediction.json") for name in ("out", "unbroken"))
    assert one == other
    capsys.readouterr()
    assert main([*command, str(out), "--quick"]) == 0
    assert "provisional" not in json.loads(capsys.readouterr().out), "everything is measured already"


def test_a_quick_answer_is_that_of_its_prompts_alone(
    tiny: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The prompts of the first stage, cut out of the whole trace, predict the same."""
    command = [*tiny, "--json"]
    assert main([*command, "--quick", "--out", str(tmp_path / "quick")]) == 0
    quick = json.loads(capsys.readouterr().out)
    assert main([*command, "--out", str(tmp_path / "whole")]) == 0
    whole = json.loads(capsys.readouterr().out)
    trace = Trace.read(tmp_path / "whole" / "trace.parquet")
    first = {str(place) for place in stages_of(PROMPTS)[0].places}
    kept = [text.prompt in first for text in trace.texts]
    rows = [here for text, here in zip(trace.texts, kept, strict=True) for _ in range(text.tokens)]
    columns = {name: column[rows] for name, column in trace.columns.items()}
    texts = tuple(text for text, here in zip(trace.texts, kept, strict=True) if here)
    Trace(columns, texts, trace.provenance).write(tmp_path / "cut.parquet")
    recorded = ["predict", str(tmp_path / "cut.parquet"), "--c", "0.1", "--k-max", "2", "--rule", "token"]
    assert main([*recorded, "--shape", "chain", "--json"]) == 0
    cut = json.loads(capsys.readouterr().out)
    assert cut["predictions"] == quick["predictions"]
    assert cut["predictions"] != whole["predictions"]


@pytest.mark.usefixtures("figures")
def test_latencies_come_first_and_the_check_last(
    tiny: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of the work, and an answer that stands on stdout and on disk before the check runs."""
    order, out = list[str](), tmp_path / "out"
    seen: dict[str, Any] = {}

    @contextmanager
    def costs(*_: Any) -> Iterator[_Costs]:
        order.append("latencies")
        yield _Costs.known(ConstantRatio(0.1))

    def check(*_: Any) -> list[dict[str, Any]]:
        order.append("check")
        seen["out"] = capsys.readouterr().out
        seen["json"] = json.loads((out / "prediction.json").read_text())
        seen["figures"] = {path.suffix for path in out.glob("tokens_per_call.*")}
        return []

    def stage(*_: Any) -> Any:
        return lambda trace: order.append(f"stage of {trace.provenance['provisional']['prompts']}")

    monkeypatch.setattr("spectheory.cli.measure.costs", costs)
    monkeypatch.setattr("spectheory.cli.measure.Session.check", check)
    monkeypatch.setattr("spectheory.cli.measure._show_briefly", stage)
    assert main([*tiny, "--check", "--out", str(out)]) == 0
    assert order == ["latencies", f"stage of {FIRST}", "check"]
    assert "Tokens per target call" in seen["out"]
    assert seen["json"]["prompts"] == PROMPTS
    assert seen["figures"] == {".png", ".svg"}


def test_a_terminal_shows_it_in_place(
    tiny: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands above the bar, wrapped to its width, and the lines are erased before the answer is printed."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    terminal = console._Remarks(stderr=True, soft_wrap=True, force_terminal=True)
    for file in ("progress", "measure"):
        monkeypatch.setattr(f"spectheory.cli.{file}.remarks", terminal)
    assert main([*tiny, "--out", str(tmp_path / "out")]) == 0
    err = capsys.readouterr().err
    shown = err.index("Provisional, from")
    assert "measuring prompts" in err[shown:], "the bar is below"
    assert "\x1b[2K" in err[shown:], "transient: its lines are erased"
    lines = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", err[shown:]).splitlines()]
    assert re.search(r"The rest takes about \d+ s\.", " ".join(lines)), "nothing is cut off"


def test_an_interrupt_while_it_is_shown_keeps_the_prompts(
    tiny: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr("spectheory.cli.predict.provisional_report", interrupt)
        assert main([*tiny, "--out", str(out)]) == 130
    assert capsys.readouterr().err.count("interrupted") == 1
    assert len(kept(out / "trace.parquet")) == FIRST
    assert main([*tiny, "--out", str(out)]) == 0
    assert f"resumed: {FIRST} of {PROMPTS}" in capsys.readouterr().err


def test_parts_of_another_measurement_are_refused_before_anything_is_measured(
    tiny: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(*_: Any, **__: Any) -> None:
        raise AssertionError("measured all the same")

    command = [*tiny, "--out", str(tmp_path / "out")]
    assert main([*command, "--quick"]) == 0
    monkeypatch.setattr("spectheory.cli.measure.costs", measured)
    assert main([*command, "--seed", "1"]) == 2
    assert "with other settings" in capsys.readouterr().err


def test_the_rest_takes_as_long_as_the_prompts_measured_here(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("spectheory.cli.measure.time.monotonic", lambda: now[0])
    pace = _Pace()
    assert pace.left is None
    pace.at(measuring.Progress(4, 10, 4))
    assert pace.left is None
    now[0] += 6.0
    pace.at(measuring.Progress(7, 10, 4))
    assert pace.left == pytest.approx(6.0)


@pytest.mark.parametrize("costs", [["--c", "-1"], ["--latency", "missing.json"]])
def test_bad_costs_are_refused_before_models_are_loaded(
    costs: list[str],
    tiny: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def loaded(*_: Any, **__: Any) -> None:
        raise AssertionError("loaded all the same")

    monkeypatch.setattr("spectheory.cli.measure.Session.load", loaded)
    assert main([*tiny[:-2], *costs, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "out").exists()
