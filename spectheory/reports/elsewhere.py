"""Drafts that are made elsewhere: the fastest k of each placement, every k, and how calls end."""

from __future__ import annotations

from spectheory.answers.prediction import ElsewhereJson
from spectheory.prediction.elsewhere import Elsewhere, Placed
from spectheory.prediction.over_prompts import few_prompts
from spectheory.prediction.placement import Parallel
from spectheory.reports.base import Brief, Report, point
from spectheory.reports.table import Column, Table

_DEVICE = "The draft has a device of its own, but in turn. Speed-ups are of latency; devices are not counted."
_AHEAD = (
    "ahead: after a predicted outcome the next drafts are there. Its range also spans whether the refused draft was "
    "among the predicted tokens, where the trace does not say."
)
_CHOSEN = "Outcomes of ahead:N are chosen on these very texts: on others slightly fewer are hit."
_PARALLEL = "parallel: k is the lookahead, drafts between two passes; hits are tokens whose draft is right."


def elsewhere_report(answer: Elsewhere) -> Report:
    """The fastest placement first."""
    best = max(answer.best, key=lambda row: row.speedup.best)
    lines = [f"{best.where}, k = {best.k}: {point(best.speedup, 'x')} under {answer.rule} verification"]
    turn = next((row for row in answer.best if str(row.where) == "in-turn"), None)
    if turn is not None and turn is not best:
        lines.append(f"In turn at best {point(turn.speedup, 'x')}, at k = {turn.k}")
    notes = [_DEVICE]
    if answer.outcomes:
        notes += [_AHEAD, _CHOSEN]
    if any(isinstance(row.where, Parallel) for row in answer.rows):
        notes.append(_PARALLEL)
    few = few_prompts(answer.prompts)
    tables = [
        _placements("The fastest k of each placement", answer.best, best),
        *([_outcomes(answer)] if answer.outcomes else []),
        _placements("Every k", answer.rows, best),
    ]
    content = ElsewhereJson.view(answer)
    return Report(content, tables, "; ".join(lines), [*few, *notes], Brief.of(lines, tables[:-1], few))


def _placements(title: str, rows: tuple[Placed, ...], best: Placed) -> Table:
    columns = [
        Column("drafting", kind="names", at=lambda row: str(row.where), meaning="where drafts are made"),
        Column("k", meaning="drafts of a call; of parallel drafting those between two passes"),
        Column("tokens per call", at="tokens_per_call", aside=True),
        Column("hits", digits=3, meaning="share of calls whose outcome was predicted; parallel: right drafts"),
        Column("speed-up", "x", at="speedup", meaning="over plain decoding on the same target"),
    ]
    return Table.of(title, columns, rows, best=best)


def _outcomes(answer: Elsewhere) -> Table:
    columns = [
        Column("accepted", meaning="drafts that a call accepts; the last calls of texts are left out"),
        Column("share", digits=3, meaning="of calls (exact for the texts)"),
        Column("guesses", meaning="tokens that are predicted after so many"),
        Column("hits", digits=3, meaning="share of these calls whose next token is among the guesses"),
    ]
    return Table.of("How calls end, and what is predicted", columns, answer.outcomes)
