"""What docs/benchmarks.md says is what the saved results say, and every row names the equality that came first."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> Iterator[dict[str, Any]]:
    """The script that writes the page, which imports its neighbours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
        yield runpy.run_path(str(ROOT / "benchmarks" / "_benchmarks_page.py"))


def test_the_page_is_up_to_date(script: dict[str, Any]) -> None:
    """To renew it: `python benchmarks/_benchmarks_page.py`."""
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert script["renewed"](page) == page


def test_every_row_was_equal_first(script: dict[str, Any]) -> None:
    results = script["results"]()
    assert len(results) > 10
    for name, result in results:
        assert result["title"], name
        for row in result["rows"]:
            assert row["equal"], (name, row["work"])
            assert row["ours"] > 0, (name, row["work"])
            assert bool(row["peer"]) == bool(row["peer_is"]), (name, row["work"])
            assert bool(row["limit"]) == bool(row["limit_is"]), (name, row["work"])


ROW = {"work": "w", "unit": "s", "ours": 2.0, "peer": 8.0, "peer_is": "numpy", "limit": 1.0, "limit_is": "a sort"}
ROW |= {"wanted": None, "at": None, "curve": ""}


def test_a_missed_goal_is_said(script: dict[str, Any]) -> None:
    assert script["_line"](ROW | {"wanted": 1.5}) == "| w | 2 s (goal of 1.5 missed) | 4 (numpy) | 2 (a sort) |"
    assert script["_line"](ROW | {"wanted": 2.0}) == "| w | 2 s | 4 (numpy) | 2 (a sort) |"


def test_the_fastest_peer_and_the_largest_size_are_shown(script: dict[str, Any]) -> None:
    slow, fast = ROW | {"work": "w (numpy: wide)"}, ROW | {"work": "w (numpy: narrow)", "peer": 3.0}
    curve = [ROW | {"work": str(n), "curve": "c", "at": {"n": n}, "peer": n < 3 and 1.0} for n in (2, 1, 3)]
    neither = ROW | {"work": "alone", "peer": None, "limit": None}
    shown = list(script["_shown"]([slow, fast, *curve, neither]))
    assert [(row["work"], row["peer"]) for row in shown] == [("w", 3.0), ("2", 1.0)]


def test_exponents_are_of_times(script: dict[str, Any]) -> None:
    """A rate that does not change is a time that is linear in the size."""
    curve = script["Curve"]
    sizes = (10.0, 100.0, 1000.0)
    assert curve("V", "rate", tuple((size, 3.0) for size in sizes), rate=True).exponent == pytest.approx(1)
    assert curve("V", "time", tuple((size, size**2) for size in sizes)).exponent == pytest.approx(2)
