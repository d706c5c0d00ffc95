"""The claims of docs/gallery_of_claims.md, its table of verdicts, and trials of them.

``python -m tests.docs.gallery`` tries all claims and writes the table into the page; it takes some minutes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from proofs_check import Claim, Trial, try_claim
from tests.docs.outputs import ROOT

PAGE = ROOT / "docs" / "gallery_of_claims.md"
BEGIN, END = "<!-- verdicts -->\n", "<!-- end -->"
HEADING = "| claim | verdict | proved for V | counterexample |\n|---|---|---|---|\n"


class Row(NamedTuple):
    """A claim in the table."""

    claim: str
    verdict: str
    proved_for: str
    counterexample: str


def names() -> dict[str, Any]:
    """What the Python of the page defines."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    defined: dict[str, Any] = {}
    exec("\n".join(blocks), defined)
    return defined


def claims() -> list[Claim]:
    """The claims of the page, in its order."""
    defined = names()
    return [*defined["one_position"], *defined["two_positions"]]


def row(trial: Trial) -> Row:
    """A trial as the table has it."""
    at = trial.counterexample.at if trial.counterexample else ""
    return Row(trial.claim.says, trial.verdict, ", ".join(map(str, trial.proved_for)), at)


def table(rows: Iterable[Row]) -> str:
    """The table in Markdown."""
    return HEADING + "".join(f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in each)}|\n" for each in rows)


def rows() -> list[Row]:
    """The table of the page."""
    text = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    lines = text.removeprefix(HEADING).splitlines()
    return [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]


if __name__ == "__main__":
    before, _, after = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    made = table(row(try_claim(claim)) for claim in claims())
    PAGE.write_text(before + BEGIN + made + END + after.partition(END)[2], encoding="utf-8")
