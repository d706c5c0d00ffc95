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
    Group("block", "Block verification and its rivals", ("B7", "B10", "B11", "V")),
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
    formal = evidence.kind == "formal"
    where = " [Statements and definitions](../formal.md)." if formal else ""
    yield f"- **{WORDS[evidence.kind]}**: {_sentence(_code(evidence.says))}{where}"
    if len(evidence.steps) > 1:
        for number, step in enumerate(evidence.steps, start=1):
            yield f"  {number}. {_code(step.says)} *[{step.how}]*"
    if refuted and not formal:  # pages do not need Coq
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


# Named statements of three papers by our ids: what could be confirmed of each, and from where.


class Named(NamedTuple):
    """A statement as a paper names it, the ids that state it here, and what of the paper's wording is confirmed."""

    paper: str
    name: str
    ids: tuple[str, ...]
    confirmed: str


NAMED = (
    Named(
        "kobus2025",
        "Lemma 3.1",
        ("A3", "D2"),
        "Acceptance of the race from a harmonic-mean distance. The normalisation is not confirmed; S/2 <= race is the "
        "likely form, and S/(2-S) <= race is false (A3/look-alike).",
    ),
    Named(
        "kobus2025",
        "Theorem 4.1",
        ("T1", "S3"),
        "E[tokens] <= (log A + log(k+1))/H(R), A the size of the alphabet: a public summary of the paper prints this "
        "inequality; its number is as recalled. Sharper here by log((k+1)(A-1)+1).",
    ),
    Named(
        "kobus2025",
        "Lemma 4.2",
        ("H", "S2"),
        "Not confirmed. The summary names two facts beside Theorem 4.1: H(R) lies between KL(P || Q) and a "
        "channel-simulation bound (H), and the best tree takes O(k log k) (S2). Which of them is the lemma is unknown.",
    ),
    Named(
        "kobus2025",
        "Lemma B.1",
        ("A2", "R2", "S2"),
        "Not confirmed. Facts that the paper's appendix must use are stated here: the law of the race (A2, R2) and the "
        "exchange of nodes (S2).",
    ),
    Named(
        "kobus2025",
        "Figure 1",
        ("S1", "R3"),
        "Confirmed from arXiv 2504.15475v1: five draft trees (plain; k = 1; a sequence of 4; a batch of 4; a tree of "
        "6) under the decisions of recursive rejection; the race follows another decision tree.",
    ),
    Named(
        "pankratov2026",
        "Main theorem",
        ("B1",),
        "Confirmed from the abstracts: E[X] <= (mu + mu2) log P/mu^2 + O(1). arXiv v1 calls mu2 the expected second "
        "log-moment, EACL the entropy's second moment; read as E[H^2] it is smaller, and its slope is still above "
        "1/mu, so the bound holds for large P in both readings. Number, constant and base are not confirmed.",
    ),
    Named(
        "pankratov2026",
        "Tightness",
        ("B1", "B3'"),
        "The abstract calls the bounds tight. The true slope is 1/mu (B1, from below); the paper's is 1 + mu2/mu "
        "times as large.",
    ),
    Named(
        "pankratov2026",
        "Determinism and speed-up",
        ("B4", "B5"),
        "The abstract bounds deterministic algorithms, and run time; the forms are ours.",
    ),
    Named(
        "pankratov2026",
        "Further directions",
        ("B8", "B9", "B6"),
        "Imperfect knowledge and text that is not i.i.d.: the statements are ours; the wording is not confirmed.",
    ),
    Named(
        "yin2024",
        "Expected rejections, Theorem 1",
        ("Y1",),
        "The statement is that of the abstract's total variations; the number is as recalled.",
    ),
    Named("yin2024", "Optimality, Theorem 2", ("Y2",), "The class of algorithms and the number are as recalled."),
    Named(
        "yin2024",
        "Theorem 3 and Algorithm 4",
        ("Y3", "Y3/printed", "Y4"),
        "Batches; the algorithm as printed does not have the rejections of the theorem.",
    ),
    Named(
        "yin2024",
        "Bias and the Pareto front, Theorems 4 and 5",
        ("Y5", "Y6"),
        "Least bias for an over-acceptance, and the straight front; the numbers are as recalled.",
    ),
    Named(
        "yin2024",
        "Table 1",
        ("Y5", "Y6"),
        "Confirmed from a public summary: win rate of Decoding-OPT against Decoding-UNO over an over-acceptance "
        "threshold; pythia-70m drafts for pythia-2.8b, 200 prompts of Alpaca-Farm-Eval, 500 comparisons a prompt, one "
        "A100. Its rates, the judges and the formula of the threshold are not confirmed. The same comparison on the "
        "built-in pair: [opt_uno](figures/opt_uno.md).",
    ),
)


def named_statements(links: dict[str, str]) -> Iterator[str]:
    """The table of the page; `links` has the page and anchor of every id."""
    yield "## Named statements of the papers"
    yield ""
    yield "Papers whose bodies were not at hand are read from their abstracts, first pages and public summaries."
    yield "*As recalled*: from notes made with the paper at hand, not confirmed again."
    yield ""
    yield "| paper | named there | here | what is confirmed |"
    yield "|---|---|---|---|"
    for one in NAMED:
        ids = ", ".join(f"[{each}]({links[each]})" for each in one.ids)
        confirmed = one.confirmed.replace("|", r"\|").replace("<", r"\<")
        yield f"| `{one.paper}` | {one.name} | {ids} | {confirmed} |"


if __name__ == "__main__":
    for name, text in pages().items():
        path = Path(sys.argv[1], name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
