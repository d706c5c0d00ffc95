"""A log format that an installed package registers: the one of docs/extending.md."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spectheory import extensions
from spectheory.trace.importers import formats
from spectheory.trace.reading import all_formats
from tests.commands import answer, refused

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
ENTRIES = "[spectheory.formats]\ntally = tally:TALLY\n"
LOG = "# tally\na 2 3\na 0 3\nb 3 3\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on Python's path with the page's tally.py as an installed package."""
    (block,) = re.findall(r"```python\n((?:(?!```).)*TALLY = .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "tally.py").write_text(block, encoding="utf-8")
    info = tmp_path / "toys-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.delitem(sys.modules, "tally", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    extensions.installed.cache_clear()
    yield tmp_path
    extensions.installed.cache_clear()


def test_every_command_reads_it(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (package / "run.txt").write_text(LOG)
    content = answer(capsys, "import", package / "run.txt", "--out", package / "out")
    assert (content["format"], content["calls"], content["accepted"], content["drafted"]) == ("tally", 3, 5, 9)
    assert content["lacks"] == ["Does not follow: texts, so nothing is judged."]
    read = answer(capsys, "predict", package / "run.txt", "--c", 0.1)
    assert read["counted_tokens_per_call"] == pytest.approx(1 + 5 / 3)
    again = answer(capsys, "import", package / "run.txt", "--format", "tally", "--out", package / "named")
    assert again["calls"] == 3


def test_its_errors_are_one_line(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (package / "run.txt").write_text(LOG + "c two 3\n")
    assert "has 'c two 3': needs three words; check the log" in refused(["predict", package / "run.txt"], capsys)


def test_without_the_package_it_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Negative control."""
    (tmp_path / "run.txt").write_text(LOG)
    assert "is of an unknown format" in refused(["predict", tmp_path / "run.txt"], capsys)
    line = refused(["import", tmp_path / "run.txt", "--format", "tally", "--out", tmp_path], capsys)
    assert "format 'tally' is unknown" in line


def test_a_broken_or_taken_format_is_left_out_and_doctor_says_why(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (package / "tally.py").read_text(encoding="utf-8")
    (package / "called_calls.py").write_text(code.replace('"tally",\n', '"calls",\n'), encoding="utf-8")
    entries = f"{ENTRIES}gone = nowhere:TALLY\nthief = called_calls:TALLY\nother = tally:read\n"
    (package / "toys-1.dist-info" / "entry_points.txt").write_text(entries)
    assert list(all_formats()) == [*formats(), "tally"]
    assert all_formats()["calls"] is formats()["calls"]
    content = answer(capsys, "doctor")
    states = {each["name"]: each["error"] for each in content["extensions"] if each["group"] == "spectheory.formats"}
    assert states["tally"] is None
    assert "No module named 'nowhere'" in states["gone"]
    assert states["thief"] == "'calls' is built in"
    assert "it is not a Format" in states["other"]
    assert sum("of spectheory.formats is left out" in problem for problem in content["problems"]) == 3
