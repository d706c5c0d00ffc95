"""Finished validations of several pairs on one page: what it says is what the answers say, and nothing is decoded."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from spectheory.cli import main
from spectheory.drafting import Chain, KAry
from spectheory.measure import MeasureSettings, ModelPair
from spectheory.measure.validation import Validation, validate
from spectheory.plots.style import MARKERS, _new_figure
from spectheory.plots.validation import _draw_pairs
from spectheory.prompts import Prompt
from spectheory.reports import page

PROMPTS = tuple(Prompt(str(i), "", f"t{i % 60 + 1} t9") for i in range(1, 4))


@pytest.fixture(scope="module")
def validation(tiny_pair: ModelPair, tmp_path_factory: pytest.TempPathFactory, quick_latencies: None) -> dict[str, Any]:
    """A chain by token and by argmax verification, a tree by races, at two temperatures."""
    question = Validation(
        ("token", "argmax", "race"), (Chain(2), KAry((2, 1))), (0.0, 0.8), MeasureSettings(tokens=10, seed=1, count=1)
    )
    return validate(tiny_pair, PROMPTS, question, tmp_path_factory.mktemp("page"))


def rows(text: str) -> list[list[str]]:
    """Cells of every line of every table."""
    lines = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").replace(r"\|", "¦").split("|")] for line in lines]


def test_the_page_says_what_the_answers_say(validation: dict[str, Any]) -> None:
    other = copy.deepcopy(validation)
    other["provenance"]["draft"]["name"] = "another"
    changed = other["temperatures"][1]["settings"][0]["expected"]
    changed["z"], changed["p"] = 4.5, 1e-9
    said = rows(page([validation, other]))
    summary = {(row[0], row[1]): row for row in said if len(row) == 9 and row[1] in ("0", "0.8")}
    assert len(summary) == 4
    names = [
        f"{one['provenance']['target']['name']} with {one['provenance']['draft']['name']}"
        for one in (validation, other)
    ]
    settings = validation["temperatures"][1]["settings"]
    largest = max(abs(record["expected"]["z"]) for record in settings)
    assert summary[names[0], "0.8"][2:6] == [str(len(settings)), f"{largest:.2f}", "0", "0"]
    assert summary[names[1], "0.8"][3:6] == ["4.50", "1", "1"], "a refuted comparison is counted"
    record = settings[0]
    line = [row for row in said if row[0] == record["name"]][1]
    assert line[1] == f"{record['tokens_per_call']['best']:.3f}"
    assert line[2] == f"{record['expected']['tokens_per_call']:.3f}"
    assert line[5] == f"{record['speedup']['measured']['best']:.2f}"


def test_the_command_joins_folders(
    validation: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "validation.json").write_text(json.dumps(validation))
    out = tmp_path / "all"
    assert main(["validations", str(tmp_path / "one"), str(tmp_path / "two"), "--out", str(out)]) == 0
    assert {path.name for path in out.iterdir()} == {
        f"{stem}.{suffix}" for stem in ("validation", "validation-pairs") for suffix in ("png", "svg")
    } | {"validation.md"}
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count("Counted and expected calls agree") == 2


def test_a_pair_that_disagrees_gives_the_status(
    validation: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spectheory.cli.validations._figures", lambda *_: [])
    for name, disagreements in (("right", 0), ("wrong", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "validation.json").write_text(json.dumps({**validation, "disagreements": disagreements}))
    right, wrong = (str(tmp_path / name) for name in ("right", "wrong"))
    assert main(["validations", right, "--out", str(tmp_path / "one")]) == 0
    assert main(["validations", right, wrong, "--out", str(tmp_path / "both")]) == 1


def test_a_filling_is_a_temperature_and_no_pair_is_left_out(validation: dict[str, Any]) -> None:
    warm = {**validation, "temperatures": validation["temperatures"][1:]}
    assert [each["temperature"] for each in validation["temperatures"]] == [0.0, 0.8]
    figure = _new_figure((12, 4))
    _draw_pairs(figure, [validation, *[warm] * 7])
    left, right, _ = figure.axes
    assert "temperature: open 0, half-filled 0.8" in [text.get_text() for text in right.texts]
    (key,) = figure.legends
    assert len(key.get_texts()) == 8
    dots = [line.get_fillstyle() for line in left.get_lines() if line.get_marker() in MARKERS]
    settings = [len(each["settings"]) for each in validation["temperatures"]]
    assert (dots.count("none"), dots.count("bottom")) == (settings[0], settings[1] * 8)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is no finished validation (No such file"),
        ("{", "is no finished validation"),
        ('{"schema": 99}', "schema 99"),
        ('{"schema": 1}', "is no finished validation"),
    ],
)
def test_bad_folders_are_one_line(
    content: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / "validation.json").write_text(content)
    assert main(["validations", str(tmp_path), "--out", str(tmp_path / "all")]) == 2
    err = capsys.readouterr().err
    assert message in " ".join(err.split())
    assert len(err.strip().splitlines()) == 1
