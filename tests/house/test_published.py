"""docs/published.md, the README and the start page say what follows from the facts in benchmarks/published.json."""

from __future__ import annotations

import copy
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> Iterator[dict[str, Any]]:
    """The script that writes the pages, which imports its neighbours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
        yield runpy.run_path(str(ROOT / "benchmarks" / "published.py"))


def test_the_pages_are_up_to_date(script: dict[str, Any]) -> None:
    """To renew them: `python benchmarks/published.py`. The control: another fact is another page."""
    other = copy.deepcopy(script["facts"]())
    for curve in other["inferencex"]["curves"]:
        curve["tokens_per_call"]["8"] *= 0.97
    for path in script["PAGES"]:
        page = path.read_text(encoding="utf-8")
        assert script["renewed"](page, script["facts"]()) == page, path.name
        assert script["renewed"](page, other) != page, path.name


def test_every_block_is_on_the_page(script: dict[str, Any]) -> None:
    page = script["PAGES"][0].read_text(encoding="utf-8")
    assert [name for name in script["BLOCKS"] if script["_blocks"].begin("published", name) not in page] == []


def test_the_formula_of_independent_acceptances_is_worse(script: dict[str, Any]) -> None:
    """In the median and at worst, whichever of the given k its rate is from, for every source and task."""
    for task in script["ASKED"]:
        row = script["held"](script["facts"](), *task)
        read, *rivals = (sorted(abs(miss) for miss in misses) for misses in (row.misses, row.of_last, row.of_first))
        assert all(median(read) < median(each) for each in rivals), task
        assert all(read[-1] < each[-1] for each in rivals), task


def test_facts_are_possible(script: dict[str, Any]) -> None:
    """Each source says where it is from; lengths are in 1..k + 1; shares of vLLM add up to its lengths, but for one."""
    facts = script["facts"]()
    for name, source in facts.items():
        assert all(source[each] for each in ("repository", "path", "commit", "licence", "unknown")), name
        assert len(source["commit"]) == 40
        assert "curves" in source or "rows" in source or "sweeps" in source
    for name in script["SHORT"]:
        for curve in script["curves"](facts, name):
            assert all(1 <= tokens <= k + 1 for k, tokens in curve.means.items()), curve
    off = [abs(1 + sum(shares) - length) for *_, length, shares in facts["vllm"]["rows"]]
    assert sum(each > 0.006 for each in off) == 1


def test_means_of_lists_are_those_of_the_library(script: dict[str, Any], tmp_path: Path) -> None:
    """Decoding along recorded lengths, against a list whose calls are counted by hand.

    Entries 3 1 2 1 1 (accepted and recovered tokens): k = 1 takes tokens 2, 2, 1, so 3 calls; k = 2 takes 3, 1, 1.
    """
    folder = tmp_path / "data" / "llama3.1-8B"
    folder.mkdir(parents=True)
    one = '{"acc_ngram": {"acc_len": [3, 1, 2, 1, 1]}, "acc_eagle": {"acc_len": [1, 1]}}\n'
    (folder / "combined_toy.jsonl").write_text(one)
    ngram, eagle = (each["tokens_per_call"] for each in script["of_lists"](tmp_path))
    assert ngram["1"] == pytest.approx(5 / 3, abs=1e-4)
    assert ngram["2"] == pytest.approx(5 / 3, abs=1e-4)
    assert set(eagle.values()) == {1.0}
