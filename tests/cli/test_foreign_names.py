"""Names of models, texts and files that steer a terminal, or that matplotlib would read as mathematics."""

from __future__ import annotations

from pathlib import Path

import pytest

from spectheory.cli import main
from spectheory.files import STEERING
from spectheory.trace import TextInfo, Trace
from tests.cli.plan_cases import latencies
from tests.cli.theory_cases import full_trace
from tests.commands import refused
from tests.made_up import each

NAME = "\x1b[2J\x1b]0;title\x07\x9b31m\u202e\u200f\x00\r[bold]$\\frac{$<b>\ud800"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A measurement in which every name is this one."""
    names = {"target": {"name": NAME, "fingerprint": "f"}, "draft": {"name": NAME}, "engine": NAME}
    whole = full_trace(tmp_path / "trace.parquet", **names)
    texts = tuple(TextInfo(f"{NAME}{i}", t.tokens, prompt=f"{NAME}{i // 2}") for i, t in enumerate(whole.texts))
    Trace(whole.columns, texts, whole.provenance).write(tmp_path / "trace.parquet")
    latencies(tmp_path / "latency.json")
    return tmp_path


@each(
    "command, more",
    [
        ("predict", ["--all"]),
        ("predict", ["--where", "--all"]),
        ("predict", ["--report", "FOLDER/page.html"]),
        ("plan", ["--nodes-max", "1", "--all"]),
        ("plan", ["--nodes-max", "1", "--json"]),
        ("plan", ["--nodes-max", "1", "--out", "FOLDER/out", "--report", "FOLDER/page.html"]),
    ],
)
def test_nothing_steers_the_terminal(
    command: str, more: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [word.replace("FOLDER", str(folder)) for word in more]
    assert main([command, str(folder), "--k-max", "2", *asked]) == 0
    said = "".join(capsys.readouterr())
    assert said
    assert not set(map(ord, said)) & set(STEERING)


def test_an_error_does_not_either(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no?[2J is missing" in refused(["predict", "no\x1b[2J"], capsys)
