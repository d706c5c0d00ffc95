"""What every rule accepts at a position, beside the optimum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spectheory.intervals import Interval
from spectheory.reports.base import Report, number, table
from spectheory.verification import RuleStanding

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class RulesAnswer:
    """Every rule on one pair, or in the mean over several.

    Attributes
    ----------
    source : str
        ``pmfs`` or ``trace``.
    k : int
        Candidates asked for.
    positions : int
        Pairs of pmfs, or positions of the trace.
    rows : sequence of RuleStanding
        In any order; of a trace without R4 and H(R).
    total_variation, kl : Interval or None
        Means over the positions; KL infinite where the draft lacks a token of the target.
    notes : sequence of str
        About the source.
    """

    source: str
    k: int
    positions: int
    rows: Sequence[RuleStanding]
    total_variation: Interval | None
    kl: Interval | None
    notes: Sequence[str] = ()

    @property
    def optimum(self) -> dict[int, float]:
        """alpha*_k by k, as far as known."""
        return {row.k: row.optimum for row in self.rows if row.optimum is not None}


def rules_report(answer: RulesAnswer) -> Report:
    """The rules by acceptance, the largest first, beside the optimum, TV and KL."""
    rows = sorted(answer.rows, key=lambda row: -row.acceptance.best if row.acceptance else math.inf)
    of_pmfs = answer.source == "pmfs"
    known = [f"alpha*_{k} = {value:.4f}" for k, value in sorted(answer.optimum.items())]
    known += [f"TV = {number(answer.total_variation, 4)}", f"KL {_divergence(answer.kl)}"]
    content = {
        "source": answer.source,
        "k": answer.k,
        "positions": answer.positions,
        "optimum": answer.optimum or dict.fromkeys([answer.k]),
        "total_variation": answer.total_variation,
        "kl": answer.kl,
        "rules": [_as_dict(row) for row in rows],
    }
    return Report(content, [_rules_table(answer, rows)], ", ".join(known), _rule_notes(answer, rows, of_pmfs))


def _as_dict(row: RuleStanding) -> dict[str, Any]:
    return {
        "rule": row.rule,
        "k": row.k,
        "acceptance": row.acceptance,
        "side": row.side if row.acceptance else None,
        "optimum": row.optimum,
        "gap": row.gap,
        "optimum_is_limit": row.limited if row.optimum is not None else None,
        "rank_entropy": _code(row),
        "reason": row.note or None,
    }


def _code(row: RuleStanding) -> Interval | None:
    """H(R) where it is at least KL: a smaller one beside KL would mislead."""
    return row.rank_entropy if row.iid else None


def _divergence(kl: Interval | None) -> str:
    if kl is None:
        return "= -"
    return f"= {number(kl, 4)} nats" if math.isfinite(kl.best) else "infinite"


def _rules_table(answer: RulesAnswer, rows: Sequence[RuleStanding]) -> Table:
    of_pmfs = answer.source == "pmfs"
    columns = ["rule", "side", "k", "acceptance", *(["gap to R4", "H(R)"] if of_pmfs else [])]
    made = table(f"Acceptance with k = {answer.k} candidates", columns, words=2)
    for row in rows:
        cells = [row.rule, row.side if row.acceptance else "-", str(row.k), number(row.acceptance, 4)]
        if of_pmfs:
            mark = " " if row.limited or row.gap is None else "†"
            gap = "-" if row.gap is None else f"{round(row.gap, 4) + 0.0:.4f}"  # no negative zero
            cells += [("≤" if row.side == "lower bound" else "") + gap + mark, number(_code(row), 4)]
        made.add_row(*cells)
    return made


def _rule_notes(answer: RulesAnswer, rows: Sequence[RuleStanding], of_pmfs: bool) -> list[str]:
    notes = list(answer.notes)
    if any(row.k != answer.k for row in rows):
        notes.append("Rules shown with k = 1 verify a single candidate.")
    if of_pmfs:
        notes.append(
            "Gap to R4: what is missing to alpha*_k, the most that any lossless rule accepts with as many candidates "
            "drawn i.i.d. from the draft."
        )
        if any(not row.limited and row.gap is not None for row in rows):
            notes.append("† candidates are not i.i.d. draws of the draft: R4 is no limit, a negative gap is no error.")
        notes.append(
            "H(R), nats, of the whole rank where candidates are i.i.d. and R is not cut: there it is at least KL. "
            'Elsewhere ("-") it is not comparable with KL and may lie below.'
        )
    if answer.kl is not None and not math.isfinite(answer.kl.best):
        notes.append("KL is infinite: the draft lacks a token of the target.")
    why = dict.fromkeys(row.note for row in rows if row.note)
    return notes + [f"{', '.join(row.rule for row in rows if row.note == note)}: {note}." for note in why]
