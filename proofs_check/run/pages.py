"""The docs' pages of theorems, written from the ledger: ``python -m proofs_check.run.pages docs``.

Nothing on them depends on the machine: the counterexamples are computed anew, times are left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from proofs_check.evidence.entries import Entry, Evidence
from proofs_check.evidence.symbolic import in_parts, parts
from proofs_check.run.ledger import ledger
from proofs_check.run.papers import named_statements
from proofs_check.run.report import WORDS
from proofs_check.statement.findings import KINDS, Effort

HEAD = """\
# Every statement and its evidence

Each statement of [the theory](theory.md) has an id and its evidence, which `spectheory verify` runs: for A3 by
`spectheory verify A3`. The pages:

{contents}

The kinds of evidence, and what each is worth, are on [the page of `verify`](verifying.md#the-kinds-of-evidence). A
proof "for every pair of pmfs on 2 tokens" holds for that vocabulary size; a proof for any number of tokens says so. In
steps marked *[words]* the argument is in words; their formula is an identity as written and checks nothing. Steps
marked *[cited]* are taken from a paper and are not checked.

In the table, *side* is what the statement gives, *false* for a refuted one. *Source* is the
[reference](bibliography.md) that states it. *Evidence* lists the kinds that are run. Each check has a negative control,
a wrong variant that it must reject; `spectheory verify` runs both.

"""

NOTE = "[All statements](../theorems.md) lists the ids; [verifying](../verifying.md) defines the kinds of evidence."


class Group(NamedTuple):
    """The statements of one page: the file, its title, and how their ids begin."""

    name: str
    title: str
    ids: tuple[str, ...]

    def has(self, entry: Entry) -> bool:
        """Whether the entry stands on this page."""
        return entry.id.startswith(self.ids)


GROUPS = (
    Group("one_draft", "One draft token: divergences and acceptance", ("D", "A")),
    Group("candidates", "Several candidates: the law of the rank", ("R", "H")),
    Group("trees", "Draft trees and the channel limit", ("S", "T")),
    Group("block", "Block verification and its rivals", ("B7", "V")),
    Group("branching", "Limits of drafts that do not sample", ("B",)),
    Group("rejections", "Rejections and bias", ("Y",)),
    Group("path", "Calls along a text: the path theorem and what follows", ("§",)),
    Group("time", "Time", ("C",)),
)
"""A statement stands on the first page that has its id."""


def pages() -> dict[str, str]:
    """Every page by its path in the docs."""
    entries = list(ledger().values())
    return {"theorems.md": _overview(entries)} | {
        f"theorems/{group.name}.md": _page(group, [entry for entry in entries if _group(entry) == group])
        for group in GROUPS
    }


def _overview(entries: list[Entry]) -> str:
    steps = [step for entry in entries for evidence in entry.evidence for step in evidence.steps]
    counts = f"Steps of all proofs, each counted once: {in_parts(parts(steps))}."
    contents = "\n".join(f"- [{group.title}](theorems/{group.name}.md)" for group in GROUPS)
    toctree = ["```{toctree}", ":hidden:", *(f"theorems/{group.name}" for group in GROUPS), "```"]
    papers = named_statements({entry.id: _link(entry) for entry in entries})
    lines = [counts, "", "## Statements", "", *_table(entries), "", *papers, "", *toctree]
    return HEAD.format(contents=contents) + "\n".join(lines) + "\n"


def _page(group: Group, entries: list[Entry]) -> str:
    sections = (line for entry in entries for line in _section(entry))
    return "\n".join([f"# {group.title}", "", NOTE, "", *sections]).rstrip() + "\n"


def _group(entry: Entry) -> Group:
    return next(group for group in GROUPS if group.has(entry))


def _link(entry: Entry) -> str:
    return f"theorems/{_group(entry).name}.md#{_anchor(entry)}"


def _table(entries: list[Entry]) -> Iterator[str]:
    yield "| id | statement | side | source | evidence |"
    yield "|---|---|---|---|---|"
    for entry in entries:
        kinds = [WORDS[kind] for kind in KINDS if any(evidence.kind == kind for evidence in entry.evidence)]
        cells = (f"[{entry.id}]({_link(entry)})", entry.title, _side(entry), _source(entry), ", ".join(kinds))
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
    for name, text in pages().items():
        path = Path(sys.argv[1], name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
