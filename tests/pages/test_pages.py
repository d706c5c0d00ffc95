"""Pages as files: whole, escaped, without a network; the command that writes them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from spectheory.cli import main
from spectheory.pages.coloured import Coloured, colour
from tests.pages.page_cases import HOSTILE, made_up_trace, written

LARGEST = 6_000_000
"""Bytes of a page at most."""


def test_a_page_stands_alone(tmp_path: Path) -> None:
    """One file of a few megabytes: no address is loaded, and the answer stands in it as data."""
    report = written(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert len(page.encode()) < LARGEST
    assert not re.findall(r"<(?:script|link|iframe)[^>]+(?:src|href)=", page.replace(HOSTILE, ""))
    answer = re.search(r'<script type="application/json" id="answer">(.*?)</script>', page, re.S)
    assert answer
    assert json.loads(answer[1]) == report.as_dict()
    assert report.headline in page


def test_what_is_not_ours_is_escaped(tmp_path: Path) -> None:
    written(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert HOSTILE not in page
    assert page.count("&lt;/script&gt;&lt;script&gt;") >= 3
    assert 'onerror="document' not in page


def test_colours_run_from_orange_over_white_to_blue() -> None:
    assert [colour(share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)] == [
        "#d55e00",
        "#eaae80",
        "#ffffff",
        "#aadaf4",
        "#56b4e9",
    ]


def test_the_command_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up_trace().write(tmp_path / "trace.parquet")
    page = tmp_path / "new" / "page.html"
    assert main(["predict", str(tmp_path), "--c", "0.2", "--k-max", "4", "--report", str(page)]) == 0
    said = capsys.readouterr()
    assert str(page) in said.err
    headline = said.out.splitlines()[0]
    assert headline[:40] in page.read_text()


def test_a_page_that_cannot_be_written_is_refused_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up_trace().write(tmp_path / "trace.parquet")
    (tmp_path / "file").write_text("")
    assert main(["predict", str(tmp_path), "--c", "0.2", "--report", str(tmp_path / "file" / "page.html")]) == 2
    said = capsys.readouterr()
    assert not said.out
    assert re.fullmatch(r"spectheory: .*page.html cannot be written .*choose another --report\n", said.err)
    assert Coloured("", [], 0).cut == 0
