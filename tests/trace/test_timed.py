"""Timed runs: the row of all tools, and the files that hold it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spectheory.errors import SettingError, TextError
from spectheory.trace.timed import TimedRun, timed_runs
from tests.made_up import each

RUN = TimedRun("vllm", 8, 300.0, 3, 0.012, 2.6, 200.0, 201.0, 40, 20.0, "2026-11-27T12:00:00Z")
PLAIN = replace(RUN, k=0, tokens_per_call=None, step_seconds=0.01)


def test_lines_come_back(tmp_path: Path) -> None:
    """Every key of the schema is in a line; what is null is not known."""
    runs = [RUN, PLAIN, replace(RUN, calls=5, survival=(0.75, 0.5, 0.25), ttft=0.1, name="a")]
    (tmp_path / "runs.jsonl").write_text("".join(f"{run.line()}\n" for run in runs))
    assert timed_runs(tmp_path) == timed_runs(tmp_path / "runs.jsonl") == runs
    line = json.loads(PLAIN.line())
    assert line["schema"] == "spectheory-bench/1"
    assert line["tokens_per_call"] is None
    assert (tmp_path / "nested").mkdir() is None
    (tmp_path / "nested" / "more.jsonl").write_text(RUN.line())
    assert len(timed_runs(tmp_path)) == 4


def test_what_follows_from_a_run() -> None:
    assert RUN.token_seconds == pytest.approx(0.012 / 2.6)
    assert (RUN.step.accepted, PLAIN.step.accepted) == (pytest.approx(1.6), 0)
    assert RUN.decoded == 40 * 200
    assert RUN.in_flight == pytest.approx(8000 * 0.012 / 2.6 / 20)
    assert replace(RUN, tokens_per_call=None).token_seconds is None


@each(
    "change, words",
    [
        ({"schema": "spectheory-bench/2"}, "line 1: schema is"),
        ({"k": -1}, "needs batch >= 1"),
        ({"k": "three"}, "line 1 is no timed run"),
        ({"batch": None}, "line 1 is no timed run"),
        ({"tokens_per_call": 4.5}, "tokens_per_call is 4.5: a call of k = 3 gives 1..4"),
        ({"survival": [0.5]}, "needs k = 3 fractions"),
        ({"seconds": -2}, "counts and times are numbers from 0"),
        ({"step_seconds": 0}, "seconds > 0"),
    ],
)
def test_bad_lines_are_named(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    first = json.loads(RUN.line()) | change
    (tmp_path / "runs.jsonl").write_text(f"{json.dumps(first)}\n{RUN.line()}\n")
    with pytest.raises((TextError, SettingError)) as refused:
        timed_runs(tmp_path / "runs.jsonl")
    assert words in str(refused.value)


@each("content, words", [("", "is no file of timed runs"), ("{}", "is no file of timed runs")])
def test_other_files_are_refused(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(TextError, match=words):
        timed_runs(tmp_path)
