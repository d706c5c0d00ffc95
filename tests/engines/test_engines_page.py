"""The page of engines is the one that the saved answers give, and its table says what a run says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from spectheory.reports.engines_page import engines_table, figure_rows, rule_that_runs

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "_engines_page.py"


@pytest.fixture
def script() -> Any:
    spec = importlib.util.spec_from_file_location("engines_page", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(k: int | None, *, fits: bool = True, right: bool = True, fitting: tuple[str, ...] = (), **found: Any) -> Any:
    """A run at temperature 1 as `engines.json` has it."""
    calls = {"counted": 10, "expected": {"low": 12.2, "high": 12.2}, "deviation": 1.0, "z": -2.2}
    counts = {"counts": {"rule": "token", "fits": fits, "calls": calls}, "fitting": fitting, "causes": ()} if k else {}
    return {"temperature": 1.0, "k": k, "drafts": "sampled" if k else None, "output": {"right": right}} | counts | found


def of(*runs: Any) -> list[Any]:
    return [{"engines": [{"engine": "toy", "version": "1", "date": "2026-01-02T00:00", "runs": list(runs)}]}]


def test_the_page_is_that_of_the_saved_answers(script: Any) -> None:
    """To renew it: `python benchmarks/_engines_page.py`."""
    page = script.PAGE.read_text(encoding="utf-8")
    assert script.renewed(page) == page
    assert len(script.answers()) == len(script.ORDER)


def test_a_row_for_each_way_to_draft() -> None:
    rows = engines_table(of(run(None), run(1), run(3, fits=False, right=False, fitting=("race",)))).texts
    assert rows == [
        ["toy 1, 2026-01-02", "1", "none", "", "", "", "", "right"],
        ["", "1", "sampled", "token", "10 / 12 (-2.2)", "10 / 12 (-2.2)", "not token: none fits", "WRONG at k = 3"],
    ]


def test_a_text_that_the_settings_exclude_has_no_counts() -> None:
    impossible = run(3, right=False) | {"output": {"right": False, "impossible": "token 3"}}
    del impossible["counts"]
    (row,) = engines_table(of(impossible)).texts
    assert row == ["toy 1, 2026-01-02", "1", "sampled", "", "", "", "WRONG"]
    assert list(figure_rows(of(impossible), 3)) == []


def test_the_rule_that_runs_fits_at_every_k() -> None:
    bad = {"fits": False, "fitting": ("race", "block")}
    assert rule_that_runs([run(1), run(3)]) == "token"
    assert rule_that_runs([run(1, fitting=("token", "race")), run(3, **bad)]) == "not token: race"
    assert rule_that_runs([run(1, **bad, causes=({"cause": "draft cut"},))]) == "not token: draft cut"


def test_the_figure_has_the_runs_of_one_k() -> None:
    (row,) = figure_rows(of(run(None), run(1), run(3, right=False)), 3)
    assert (row["engine"], row["k"], row["output_refuted"]) == ("toy", 3, True)
