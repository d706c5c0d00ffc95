"""docs/results.md and paper.md: their numbers are those of the data, computed again, and their references exist."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proofs_check.run.ledger import ledger
from tests.made_up import each

ROOT = Path(__file__).parents[2]
PAPER = (ROOT / "paper.md").read_text(encoding="utf-8")
RESULTS = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
BIBLIOGRAPHY = (ROOT / "paper.bib").read_text(encoding="utf-8")
KEYS = set(re.findall(r"^@\w+\{(\w+),$", BIBLIOGRAPHY, re.MULTILINE))
KEY = r"[a-z]+(?:19|20)\d\d[a-z0-9]*"
"""An author and a year, as all keys of papers are."""
SECTIONS = (
    "Summary",
    "Statement of need",
    "State of the field",
    "Software design",
    "Research impact statement",
    "Acknowledgements",
    "References",
)


@pytest.fixture(scope="module")
def script() -> Iterator[dict[str, Any]]:
    """The script that writes the numbers, which imports its neighbours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
        yield runpy.run_path(str(ROOT / "benchmarks" / "_results_page.py"))


def cited(text: str) -> set[str]:
    """Keys in backticks, and those of Pandoc's citations in brackets."""
    brackets = " ".join(re.findall(r"\[(@[^\]]*)\]", text))
    return set(re.findall(rf"`({KEY})`", text)) | set(re.findall(r"@(\w+)", brackets))


def words(paper: str) -> int:
    """Words of the text between the metadata and the references, captions with them."""
    body = paper.split("\n---\n", 1)[1].partition("# References")[0]
    body = re.sub(r"<!--.*?-->|\[@[^\]]*\]|\]\([^)]*\)", " ", body, flags=re.DOTALL)
    return sum(any(letter.isalnum() for letter in word) for word in body.split())


# The numbers


@each("page", ["docs/results.md", "paper.md"])
def test_the_numbers_are_those_of_the_data(page: str, script: dict[str, Any]) -> None:
    """To renew them: `python benchmarks/_results_page.py`. The control: a changed digit is seen."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert script["renewed"](text) == text
    assert script["renewed"](text.replace("189 settings", "188 settings")) == text != text.replace("189 s", "188 s")


def test_other_data_are_other_numbers(script: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a setting less, and a statement more, here B10 before it is in the ledger."""
    settings, entries = script["validations"](), script["entries"]()
    more = entries | {"B10": ["[B10](theorems/block.md)", "Cost-optimal drafting", "lower bound", "", "proof"]}
    known = script["decoded"].__globals__
    monkeypatch.setitem(known, "validations", lambda: settings[1:])
    monkeypatch.setitem(known, "entries", lambda: more)
    assert script["decoded"]() not in " ".join(RESULTS.split())
    assert script["ledger"]().startswith(f"The ledger has {len(more)} statements")
    assert script["cost_optimal"]().startswith("[B10](theorems/block.md) (Cost-optimal drafting; lower bound; proof)")


def test_every_block_is_on_a_page(script: dict[str, Any]) -> None:
    assert [
        name for name in script["BLOCKS"] if script["_blocks"].begin("_results_page", name) not in RESULTS + PAPER
    ] == []


@each("rule", ["token", "block"])
def test_tokens_per_call_by_the_recursion_as_written(rule: str, script: dict[str, Any]) -> None:
    """Another route than the library's: loops over the two log-probabilities of each token."""
    trace = script["pair"]("distilled")
    ratios = np.exp(trace.columns["log_draft"] - trace.columns["log_target"])
    ends = np.cumsum(trace.lengths)
    calls = sum(
        expected_calls(rule, ratios[end - length : end], 5) for end, length in zip(ends, trace.lengths, strict=True)
    )
    assert script["tokens"](trace, rule, 5) == pytest.approx(trace.lengths.sum() / calls, rel=1e-9)


def expected_calls(rule: str, ratios: np.ndarray, k: int) -> float:
    """C(0) of one text: C(n) = 1 + the mean of C(n + tau + 1)."""
    calls = [0.0] * (len(ratios) + k + 2)
    for start in reversed(range(len(ratios))):
        survival, product = [1.0], 1.0
        for ratio in ratios[start : start + k]:
            product *= ratio
            survival.append(survival[-1] * min(1.0, ratio) if rule == "token" else min(survival[-1], product))
        stops = [a - b for a, b in zip(survival, [*survival[1:], 0.0], strict=True)]
        calls[start] = 1 + sum(stop * calls[start + i + 1] for i, stop in enumerate(stops))
    return calls[0]


def test_what_the_text_says_of_the_table_holds(script: dict[str, Any]) -> None:
    """The i.i.d. formula is too high for token verification, L is no lower than B7, and token lies in C6's range."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in script["along_texts"]().splitlines()[2:]]
    for _, race, token, block, _, by_start, c6, iid in rows:
        low, high = map(float, c6.split(" to "))
        assert low <= float(race) <= float(token) <= float(block) <= float(by_start)
        assert low <= float(token) <= high
        assert float(iid) > float(token)


def test_one_reading_is_close_by_position_and_both_ends_hold_block(script: dict[str, Any]) -> None:
    readings = script["readings"]().splitlines()[2:]
    *by_position, block = ([float(x) for x in re.findall(r"[+-][\d.]+(?=%)", line)] for line in readings)
    assert len(by_position) == len(script["BY_POSITION"])
    for low, high, low_sum, high_sum, up_low, up_high, up_low_sum, up_high_sum in by_position:
        assert max(map(abs, (low, high))) < min(map(abs, (low_sum, high_sum)))
        assert max(map(abs, (up_low, up_high))) < min(map(abs, (up_low_sum, up_high_sum)))
    assert min(block[:2]) > 0 > max(block[2:4])


def test_the_statements_are_those_of_the_ledger(script: dict[str, Any]) -> None:
    assert script["entries"]().keys() == ledger().keys()
    assert [name for name, row in script["entries"]().items() if row[2] == "false"] == [
        name for name, entry in ledger().items() if entry.refuted
    ]
    assert set(script["NAMED"]) - ledger().keys() <= {"B10"}


# The references


PAGES = sorted((ROOT / "docs").glob("*.md"))


@each("page", [ROOT / "paper.md", ROOT / "README.md", *PAGES])
def test_every_key_that_a_page_names_is_in_the_bibliography(page: Path) -> None:
    assert cited(page.read_text(encoding="utf-8")) - KEYS == set()


def test_every_key_of_the_ledger_is_in_the_bibliography() -> None:
    assert {key for entry in ledger().values() for key in entry.source} - KEYS == set()


def test_papers_of_the_citation_file_are_in_the_bibliography() -> None:
    eprints = set(re.findall(r"^  eprint += \{([\d.]+)\},$", BIBLIOGRAPHY, re.MULTILINE))
    named = set(re.findall(r"arXiv:([\d.]+)", (ROOT / "CITATION.cff").read_text(encoding="utf-8")))
    assert len(named) >= 3
    assert named <= eprints


def test_a_missing_key_would_be_seen() -> None:
    """Negative control, in both forms."""
    text = "`nobody2031` and [@leviathan2023; @nowhere], @staticmethod"
    assert cited(text) - KEYS == {"nobody2031", "nowhere"}
    assert len(cited(PAPER)) > 20
    assert len(cited(RESULTS)) > 8


# The paper's form


def test_the_paper_is_as_long_as_wanted() -> None:
    assert 1300 <= words(PAPER) <= 1700
    assert words("---\n---\n# A\n\n<!-- no -->\ntwo words [@a; @b] ![cap](no.png)\n# References\nno") == 4


def test_the_paper_has_the_sections_and_the_fields_of_the_journal() -> None:
    head, body = PAPER.removeprefix("---\n").split("\n---\n", 1)
    assert tuple(re.findall(r"^# (.+)$", body, re.MULTILINE)) == SECTIONS
    assert re.findall(r"^(\w+):", head, re.MULTILINE) == [
        "title", "tags", "authors", "affiliations", "date", "bibliography"
    ]  # fmt: skip
    assert all((ROOT / name).exists() for name in re.findall(r"\]\(([^)#:]+)\)", body))
