"""The docs' page of theorems, written from the ledger: ``python -m proofs_check.run.pages docs/theorems.md``.

Nothing on it depends on the machine: the counterexamples are worked out anew, times are left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from proofs_check.evidence.entries import Entry, Evidence
from proofs_check.evidence.symbolic import in_parts, parts
from proofs_check.run.ledger import ledger
from proofs_check.run.papers import named_statements
from proofs_check.run.report import WORDS
from proofs_check.statement.findings import KINDS, Effort

HEAD = """\
# Every statement and its evidence

This page is written from the ledger (`python -m proofs_check.run.pages docs/theorems.md`); a test holds it to be up to
date. `spectheory verify` runs every check on it, each with a *negative control*: a wrong variant that the same check
must reject. [theory.md](theory.md) says what the statements mean and shows the calls.

Evidence, strongest first. **proof**: small steps. Each step's formula is checked by algebra (sympy) or by a solver
over the reals (z3: the negation is unsatisfiable); what joins the steps (sums over tokens, expectations, induction)
is stated in words and is for the reader to check. *Proved* in a row of `spectheory verify` means that every such
step of the proof was accepted; cited steps are marked, and nothing is checked there. Steps marked *[words]* have a
formula that is an identity as soon as it is written: nothing is checked there either, and the words are for the
reader. A proof "for every pair of pmfs on 2 tokens" is one for that vocabulary alone; the proof in steps beside it is
the one for any number of tokens. **exact**: fractions, identities with `==`, inequalities without slack.
**certified**: intervals that enclose the value, where logarithms enter; there `<=` and `==` hold up to 1e-30, and "the
library's value" within 1e-12. **search**: drawn cases and an optimiser that walks to the tightest one, judged in
fractions or intervals. A search is no proof. **simulated**: the algorithm as written, run by a kernel that calls no
closed form, against the statement's numbers; each such check finds a disagreement with a statement that is right with
probability 1e-9 at most.

"""


def page() -> str:
    """The whole page."""
    entries = list(ledger().values())
    steps = [step for entry in entries for evidence in entry.evidence for step in evidence.steps]
    counts = f"Steps of all proofs, each counted once: {in_parts(parts(steps))}."
    sections = (line for entry in entries for line in _section(entry))
    papers = named_statements({entry.id: _anchor(entry) for entry in entries})
    return HEAD + "\n".join([counts, "", *_table(entries), "", *papers, "", *sections]) + "\n"


def _table(entries: list[Entry]) -> Iterator[str]:
    yield "| id | statement | side | source | evidence |"
    yield "|---|---|---|---|---|"
    for entry in entries:
        kinds = [WORDS[kind] for kind in KINDS if any(evidence.kind == kind for evidence in entry.evidence)]
        cells = (f"[{entry.id}](#{_anchor(entry)})", entry.title, _side(entry), _source(entry), ", ".join(kinds))
        yield "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _section(entry: Entry) -> Iterator[str]:
    yield f"## {_heading(entry)}"
    yield ""
    yield f"*{_side(entry)}*, {_source(entry)}. {_sentence(_code(entry.plain))}"
    yield ""
    yield f"$${entry.latex}$$"
    yield ""
    if entry.assumptions:
        yield f"Assumes: {_sentence(_code('; '.join(entry.assumptions)))}"
        yield ""
    for evidence in entry.evidence:
        yield from _evidence(evidence, refuted=entry.refuted)
    for kind in KINDS:
        if kind in entry.without:
            yield f"- no *{WORDS[kind]}*: {_sentence(_code(entry.without[kind]))}"
    if entry.calculators:
        yield ""
        yield "Computed by " + ", ".join(f"`{name}`" for name in entry.calculators) + "."
    yield ""


def _evidence(evidence: Evidence, *, refuted: bool) -> Iterator[str]:
    yield f"- **{WORDS[evidence.kind]}**: {_sentence(_code(evidence.says))}"
    if len(evidence.steps) > 1:
        for number, step in enumerate(evidence.steps, start=1):
            yield f"  {number}. {_code(step.says)} *[{step.how}]*"
    if refuted:
        yield f"  - Counterexample: `{evidence.check(Effort()).at}`."
        yield f"  - Similar and true, accepted by the same check: {_sentence(_code(evidence.control.says))}"
    else:
        yield f"  - Negative control, rejected: {_sentence(_code(evidence.control.says))}"


def _heading(entry: Entry) -> str:
    return f"{entry.id}. {entry.title}"


def _anchor(entry: Entry) -> str:
    """The anchor a heading gets: lower case, without punctuation, blanks as hyphens."""
    return re.sub(r"[^\w\- ]", "", _heading(entry).lower()).replace(" ", "-")


def _side(entry: Entry) -> str:
    return "false" if entry.refuted else entry.kind


def _source(entry: Entry) -> str:
    keys = [f"`{key}`" for key in entry.source]
    if keys and entry.number:
        keys[0] += f" {entry.number}"
    return ", ".join(keys) or "derived here"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _code(text: str) -> str:
    """Formulas in plain letters as they are: nothing of them is markup."""
    return re.sub(r"([*_<|])", r"\\\1", text)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
