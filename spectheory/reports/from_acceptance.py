"""What an acceptance rate alone says, as a table of lengths with the ranges of all texts."""

from __future__ import annotations

from collections.abc import Sequence

from spectheory.answers.theory import AcceptanceJson
from spectheory.intervals import Interval
from spectheory.prediction.from_acceptance import AtLength, FromAcceptance
from spectheory.reports.base import Brief, Report, sizes_shown
from spectheory.reports.notes import NO_COST
from spectheory.reports.table import Column, Table

_CERTAIN = (
    "Ranges hold for every text with exactly this acceptance, whichever way it is spread (C6), if the rule decides "
    "each position alone, in the same way at every depth of a call: token verification or matching of a draft model, "
    "not of a head whose later drafts are worse. The error of the rate itself comes on top, and a text's last call is "
    "left out, which matters for short texts."
)
_FOR = "Ranges are for a draft model that is verified token by token; a head, worse at later drafts, may get less."
_COUNTED = "Block verification is not covered, as the rate was counted in calls of one k."
_BLOCK = (
    "Lower ends hold for block verification too in the mean over texts that the target samples (B7), not for each text."
)
_IDEALISED = "i.i.d.: the idealised value if every draft is accepted with the same chance, independently (C1)."
_GIVEN = "Given this c, and beside it half and twice as much: c is seldom known better until it is timed."
_FREE = "Drafts that cost nothing: the speed-up is the number of tokens per call."
_NEXT = (
    "Counts by position or a measured pair narrow the range: spectheory import LOG --out DIR, or spectheory measure."
)


def acceptance_report(answer: FromAcceptance) -> Report:
    """The range of every length; first the safest."""
    best = answer.safest
    content = AcceptanceJson.view(answer, source="acceptance")
    cost = (_GIVEN if answer.c else _FREE) if answer.cs else NO_COST
    notes = [_CERTAIN, _BLOCK if answer.counted_k is None else _COUNTED, _IDEALISED, cost, _NEXT]
    lines = _lines(answer)
    shown = sizes_shown((row.k for row in answer.rows), best.k)
    tables = [_table(answer, [row for row in answer.rows if row.k in shown])]
    brief = Brief.of(lines, tables, [_FOR, cost, _NEXT])
    return Report(content, [_table(answer, answer.rows)], "; ".join(lines), notes, brief)


def _lines(answer: FromAcceptance) -> list[str]:
    """Whether it pays, and the range at the safest length."""
    best = answer.safest
    if not answer.cs:
        return [f"From this acceptance alone: {_tokens(best)}"]
    given, most = answer.gain(best), max(answer.rows, key=lambda row: answer.gain(row).high)
    highest = answer.gain(most)
    if given.low > 1:
        verdict = f"Pays at k = {best.k}: speed-up {_ends(given, 'x')}, given c = {answer.c:g}"
    elif highest.high > 1:
        verdict = f"May pay: speed-up {_ends(highest, 'x')} at k = {most.k}, given c = {answer.c:g}"
    else:
        tried = f"No k up to {answer.rows[-1].k} pays"
        verdict = f"{tried}: at most {highest.high:.2f}x, at k = {most.k}, given c = {answer.c:g}"
    return [verdict, _tokens(best if given.low > 1 else most)]


def _tokens(row: AtLength) -> str:
    tokens = row.tokens_per_call
    return f"{_ends(tokens)} tokens per call at k = {row.k}; i.i.d. {tokens.best:.2f}"


def _table(answer: FromAcceptance, rows: Sequence[AtLength]) -> Table:
    costs = [
        Column(f"speed-up\nc = {c:g}", "x", at=lambda row, i=i: row.speedups[i], aside=c != answer.c)  # type: ignore[misc]
        for i, c in enumerate(answer.cs)
    ]
    columns = [
        Column("k"),
        Column("tokens per call", meaning="range over all texts with this acceptance"),
        Column("i.i.d.", at="tokens_per_call.best", meaning="C1: idealised"),
        *costs,
    ]
    return Table.of(f"Chains of k drafts at acceptance {answer.acceptance:g}", columns, rows, best=answer.safest)


def _ends(value: Interval, unit: str = "") -> str:
    """Both ends, or the value if they are one."""
    low, high = (f"{end:.2f}{unit}" for end in (value.low, value.high))
    return low if low == high else f"{low} to {high}"
