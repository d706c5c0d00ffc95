"""The order of an answer: its file, stdout, figures, and a long last step; all files even if the reader leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from spectheory.answers import Part
from spectheory.cli import answer
from spectheory.reports import Report
from spectheory.reports.table import Column, Table

FIRST = Table("first", [Column("k")], [[1]])
SECOND = Table("second", [Column("k")], [[2]])


class Number(Part):
    """An answer of one number."""

    n: int


SHORT, WHOLE = Report(Number(n=1), [FIRST], "headline"), Report(Number(n=2), [FIRST, SECOND], "headline")
STEPS = Callable[..., list[str]]


@pytest.fixture
def steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> STEPS:
    """Show both reports and note what is there when figures are drawn and when the last step runs."""

    def shown(*, as_json: bool, file: bool = True) -> list[str]:
        noted, out = list[str](), tmp_path / "answer.json"

        def state(what: str) -> None:
            stored = json.loads(out.read_text())["n"] if out.exists() else 0
            noted.append(f"{what}: file {stored}, printed {' '.join(capsys.readouterr().out.split())[:14]!r}")

        def figures(_: Path) -> list[Path]:
            state("figures")
            return []

        def last() -> Report:
            state("last")
            return WHOLE

        question = SimpleNamespace(json=as_json, out=tmp_path if file else None)
        answer.show(SHORT, question, "answer", figures=figures, last=last)
        state("end")
        return noted

    return shown


def test_the_answer_comes_before_its_figures_and_the_last_step(steps: STEPS) -> None:
    assert steps(as_json=False) == [
        "figures: file 1, printed 'headline first'",
        "last: file 1, printed ''",
        "end: file 2, printed 'second k 2'",
    ]


def test_json_is_one_object_with_the_last_step(steps: STEPS) -> None:
    assert steps(as_json=True) == [
        "figures: file 1, printed ''",
        "last: file 1, printed ''",
        "end: file 2, printed '{ \"schema\": 1,'",
    ]
