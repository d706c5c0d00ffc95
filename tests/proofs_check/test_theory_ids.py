"""The theory page states every statement; each id stands in a docstring that names its source, and has evidence."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from proofs_check.run.ledger import ledger
from tests.made_up import each

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")

IDS = (
    *(f"D{i}" for i in range(1, 4)),
    *(f"A{i}" for i in range(1, 5)),
    *(f"R{i}" for i in range(1, 9)),
    *(f"S{i}" for i in range(1, 5)),
    "T1",
    *("B1", "B2", "B2'", "B3", "B3'", "B4", "B5", "B6", "B7", "B8", "B9"),
    *(f"Y{i}" for i in range(1, 8)),
    "§7",
    *(f"C{i}" for i in range(1, 6)),
    "C5/text",
    "C5/ahead",
    "§9",
    "§10",
    "§11",
    "§12/L",
    "§12/chains",
    "§12-lock-step",
    "§13",
)
"""Every statement of the theory."""

SOURCES = {
    "A1": "leviathan2023",
    "A2": "kobus2025",
    "A3": "kobus2025",
    "R1": "li2018",
    "R2": "kobus2025",
    "R3": "miao2024specinfer",
    "R4": "khisti2025",
    "R5": "sun2023spectr",
    "R6": "rowan2025",
    "S1": "kobus2025",
    "S2": "tunstall1967",
    "S3": "tunstall1967",
    "S4": "kobus2025",
    "T1": "kobus2025",
    "B1": "pankratov2026",
    "B5": "pankratov2026",
    "C1": "leviathan2023",
    "C5": "timor2025",
    "C5/text": "timor2025",
    **{f"Y{i}": "yin2024" for i in range(1, 7)},
}
"""Whose statement it is, where it is one of a paper's."""

SIDES = ("exact", "upper bound", "lower bound", "estimate", "bound", "refuted", "optimal", "identity", "escapes")


def docstrings() -> Iterator[str]:
    """Every docstring of a class or function of the library."""
    for path in sorted((ROOT / "spectheory").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                yield ast.get_docstring(node) or ""


def mentions(text: str, identifier: str) -> bool:
    """Whether the id stands in the text by itself; B2 is neither B2' nor B21, ranges (Y1-Y4) count."""
    if re.search(rf"(?<![A-Za-z0-9]){re.escape(identifier)}(?![0-9'′])", text.replace("′", "'")):
        return True
    letter, number = identifier[0], identifier[1:]
    ranges = re.findall(rf"{letter}(\d+)\s*[-–]\s*{letter}?(\d+)", text)
    return number.isdigit() and any(int(a) <= int(number) <= int(b) for a, b in ranges)


DOCSTRINGS = list(docstrings())
TESTS = {
    path: path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "tests").rglob("test_*.py"))
    if path.name != Path(__file__).name
}


def states(text: str, identifier: str) -> bool:
    """Whether a docstring states what the id says: with a formula, the side it is on, and the paper it comes from."""
    formula = ":math:" in text or ".. math::" in text
    side = any(side in text.lower() for side in SIDES)
    return mentions(text, identifier) and formula and side and SOURCES.get(identifier, "") in text


@each("identifier", IDS)
def test_every_statement_is_on_the_page_and_in_a_docstring_and_has_evidence(identifier: str) -> None:
    heading = "## 7." if identifier == "§7" else identifier
    assert heading in PAGE.replace("′", "'"), "the theory page"
    assert any(states(text, identifier) for text in DOCSTRINGS), "no docstring has formula, side and source"
    tested = any(mentions(text, identifier) for text in TESTS.values())
    assert identifier in ledger() or tested, "no entry of the ledger, and no test names it"


def test_the_page_shows_calls() -> None:
    assert PAGE.count(">>> ") > 50
    sections = re.split(r"^## ", PAGE, flags=re.M)[1:]
    assert all(">>> " in section for section in sections), "a section without a call"


def test_ids_are_told_apart() -> None:
    """Negative controls."""
    assert not mentions("B2' alone", "B2")
    assert mentions("limits (B1-B6)", "B4")
    assert not mentions("B21 and AB2", "B2")
    assert not mentions("(Y1-Y4)", "Y5")
    assert states(":math:`x` (R1, exact; ``li2018``)", "R1")
    for text in ("x (R1, exact; ``li2018``)", ":math:`x` (R1; ``li2018``)", ":math:`x` (R1, exact)"):
        assert not states(text, "R1")
