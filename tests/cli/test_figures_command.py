"""`spectheory figures`: pictures, data and results, and a wrong theory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simulations.counts import Share
from simulations.verdicts import predictions
from simulations.verdicts.predictions import Predicted
from spectheory.cli import main
from tests.cli.simulate_cases import ask
from tests.commands import refused


def test_a_figure_leaves_pictures_data_and_results(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {"race.json", "race.png", "race.svg", "results.jsonl"}
    made = json.loads((folder / "race.json").read_text())
    assert (made["setting"], made["seed"], made["alarm"]) == ("quick", 0, 1e-6)
    assert {row["label"] for row in made["results"]} == {"race", "race-dense"}
    assert all(row["agrees"] for row in made["comparisons"])


def test_a_figure_is_a_pure_function_of_what_is_saved(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Drawn again it is the same to the byte; made again from the results file too."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    ask(capsys, "figures", "race", "--out", folder, "--redraw")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    ask(capsys, "figures", "race", "--out", folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    "damage",
    [{"data": {}}, {"data": None}, {"comparisons": [{}]}, {"figure": "gain"}, {"alarm": None, "data": {"tokens": 1}}],
)
def test_damaged_data_are_one_line(
    damage: dict[str, Any], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = json.loads((folder / "race.json").read_text())
    (tmp_path / "race.json").write_text(json.dumps(whole | damage))
    assert "race.json cannot be read" in refused(["figures", "race", "--redraw", "--out", tmp_path], capsys)


def test_a_figure_whose_theory_is_wrong_is_told(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results.jsonl").write_bytes((folder / "results.jsonl").read_bytes())
    wrong = Predicted("acceptance rate", "A1", Share("rank", 1), 0.76)
    monkeypatch.setitem(predictions._predictors, "race", lambda parameters: [wrong])
    content = ask(capsys, "figures", "race", "--out", tmp_path, status=1)
    (disagreement,) = content["figures"][0]["disagreements"]
    assert disagreement["predicted"] == 0.76
    assert main(["figures", "race", "--out", str(tmp_path)]) == 1
    assert "disagree in 1 comparisons" in " ".join(capsys.readouterr().out.split())
