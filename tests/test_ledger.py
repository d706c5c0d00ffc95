"""The ledger is complete: every statement and every public calculator has its evidence, and all of it holds.

Each check comes with a negative control, a wrong variant that the same check must reject; one that accepted it would
fail here.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from proofs_check.entries import Entry
from proofs_check.findings import KINDS, Effort
from proofs_check.ledger import ledger
from proofs_check.pages import page
from proofs_check.verify import Key, check_one, keys_of

ROOT = Path(__file__).parent.parent

PROVED = ("A1", "A2", "A3", "A4", "R1", "R4", "S1", "S2", "S3", "Y2", "Y6")
"""Statements that must have a proof in checked steps."""

REFUTED = (
    "A3/look-alike",
    "H/distinct",
    "H/truncated",
    "T1/mixture",
    "§7/product",
    "S4/greedy",
    "Y3/printed",
    "Y3/empty",
    "Y4/support",
    "B4/sampling",
    "B2'/dependent",
    "B1/leading",
    "C4/no-knee",
    "S4/more",
)
"""False statements that must stand beside the true ones they resemble."""

PUBLIC = ("", "verification", "drafting", "limits", "cost", "truncated")
"""Packages whose every public name is backed by an entry."""


def statements() -> list[str]:
    """The ids of the theory page."""
    text = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8").replace("′", "'")
    found = re.findall(r"\*\*(?:B3, )?([DARSTBYC]\d'?|§9)\*\*", text)
    return [*dict.fromkeys(found), "§7", "H"]


def public_names() -> Iterator[str]:
    for package in PUBLIC:
        dotted = f"spectheory.{package}".rstrip(".")
        yield from (f"{dotted}.{name}" for name in importlib.import_module(dotted).__all__)


ENTRIES = list(ledger().values())
KEYS = keys_of(ENTRIES)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: f"{key[0]}-{ledger()[key[0]].evidence[key[1]].kind}-{key[1]}")
def test_the_evidence_holds_and_its_control_is_rejected(key: Key) -> None:
    checked = check_one(key, Effort())
    assert checked.outcome in ("proved", "holds", "refuted"), checked.trouble


def test_every_statement_has_an_entry() -> None:
    assert len(statements()) > 35
    assert set(statements()) | {"B3"} | set(REFUTED) <= set(ledger())


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_every_entry_has_evidence_of_every_kind_that_applies(entry: Entry) -> None:
    have = {evidence.kind for evidence in entry.evidence}
    assert have, "an entry without evidence"
    for kind in KINDS[:4]:
        assert (kind in have) != (kind in entry.without), f"{kind}: evidence, or the reason why there is none"
    assert all(reason.strip() for reason in entry.without.values())
    if entry.id in PROVED:
        assert "symbolic" in have
    if entry.refuted:
        assert have & {"exact", "certified"}, "a counterexample in exact arithmetic"
    for evidence in entry.evidence:
        assert evidence.says
        assert evidence.control.says
        assert bool(evidence.steps) == (evidence.kind == "symbolic")
        cited = [step for step in evidence.steps if step.how.startswith("cited")]
        assert 2 * len(cited) <= len(evidence.steps), "a proof that cites more than it shows"


@pytest.mark.parametrize("name", list(public_names()))
def test_every_public_calculator_is_backed_by_an_entry(name: str) -> None:
    assert any(name in entry.calculators for entry in ENTRIES)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_the_calculators_named_exist(entry: Entry) -> None:
    for name in entry.calculators:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


def test_refuted_entries_are_the_named_ones_and_more() -> None:
    assert set(REFUTED) <= {entry.id for entry in ENTRIES if entry.refuted}
    assert all("/" in entry.id for entry in ENTRIES if entry.refuted)


def test_the_page_of_theorems_is_up_to_date() -> None:
    """Written by ``python -m proofs_check.pages docs/theorems.md``."""
    assert page() == (ROOT / "docs" / "theorems.md").read_text(encoding="utf-8")
