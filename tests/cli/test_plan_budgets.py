"""``spectheory plan --steps`` and ``--bench --budget``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spectheory.cli import main
from spectheory.deployment.budgets import plan_budgets
from spectheory.deployment.step_times import StepTable
from spectheory.trace import Trace
from tests.cli.plan_cases import asked, measured
from tests.toy_server import affine, sweep

TABLE = "tokens,seconds,drafting\n1,0.010,0.001\n64,0.012,0.001\n"


def test_a_table_of_steps_gives_budgets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer of the function, in JSON, as a file and as a picture; the first line says it."""
    folder, steps, out = measured(tmp_path / "small"), tmp_path / "steps.csv", tmp_path / "out"
    steps.write_text(TABLE)
    words = [str(folder), "--steps", str(steps), "--k-max", "3", "--out", str(out), "--tpot", "6"]
    content = asked(words, capsys)
    assert json.loads((out / "plan.json").read_text()) == content
    assert {file.name for file in out.iterdir()} == {"plan.json", "budgets.png", "budgets.svg"}
    table = StepTable((1, 64), (0.010, 0.012), ((1, 0.001), (64, 0.001)))
    answer = plan_budgets(Trace.read(folder), table, k_max=3, tpot=6.0)
    assert [choice["limit"] for choice in content["choices"]] == [choice.limit for choice in answer.choices]  # type: ignore[attr-defined]
    assert answer.goodput is not None
    assert content["goodput"]["per_second"]["best"] == answer.goodput.per_second.best  # type: ignore[index]
    assert answer.goodput.tpot <= 6
    assert f"{answer.goodput.per_second.best:.0f} tokens/s" in content["headline"]  # type: ignore[operator]
    assert main(["plan", *words[:5], "--tpot", "0.001"]) == 0
    assert capsys.readouterr().out.startswith("Out of reach: 0.001 ms per token (at least ")


def test_a_timed_server_gives_budgets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its concurrencies between the runs, its context by default the first, its longest chain the deepest."""
    law = affine(8e-3, 2e-4, 2e-7, 4e-4, 6e-4, 2.5e-4, 2e-8)
    (tmp_path / "runs").mkdir()
    runs = sweep(tmp_path / "runs", law, (0, 1, 3), survival=(0.8, 0.6, 0.4), output=33)
    folder = measured(tmp_path / "small")
    content = asked([str(folder), "--bench", str(runs), "--budget", "--rule", "block"], capsys)
    choices: list[dict[str, object]] = content["choices"]  # type: ignore[assignment]
    assert [choice["batch"] for choice in choices] == [1, 2, 4, 8, 16]
    assert content["k_max"] == 3
    assert content["rule"] == "block"
    plain = [choice["plain"]["per_second"]["best"] for choice in choices]  # type: ignore[index]
    assert plain == pytest.approx([b / law(b, 116.5, 0) for b in (1, 2, 4, 8, 16)], rel=0.05)
