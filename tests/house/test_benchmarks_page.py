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
