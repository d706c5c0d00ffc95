"""What every rule accepts at a position, beside the optimum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spectheory.intervals import Interval
from spectheory.theory_report.base import Report, number, table

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class RuleRow:
    """What one rule accepts at a position.

    Attributes
    ----------
    rule : str
        Its name.
    k : int
        Candidates it was given.
    acceptance : Interval or None
        Probability that the output is among them; None for a `reason`.
    side : str
        What the acceptance claims.
    optimum : float or None
        alpha*_k (R4) for as many candidates, where it is known and the output law is the target's.
    limited : bool
        Whether the candidates are i.i.d. from the draft, so that R4 is a limit.
    entropy : Interval or None
        H(R) of the whole rank, nats, where it is at least KL.
    reason : str
        Why something is missing.
    """

    rule: str
    k: int
    acceptance: Interval | None
    side: str = "exact"
    optimum: float | None = None
    limited: bool = True
    entropy: Interval | None = None
    reason: str = ""

    @property
    def gap(self) -> float | None:
        """What is missing to the optimum, negative where R4 is no limit; at most this if `side` is a lower bound."""
        return None if self.acceptance is None or self.optimum is None else self.optimum - self.acceptance.best

    def as_dict(self) -> dict[str, Any]:
        """The fields and the gap."""
        return {
            "rule": self.rule,
            "k": self.k,
            "acceptance": self.acceptance,
            "side": self.side if self.acceptance else None,
            "optimum": self.optimum,
            "gap": self.gap,
            "optimum_is_limit": self.limited if self.optimum is not None else None,
            "rank_entropy": self.entropy,
            "reason": self.reason or None,
        }


@dataclass(frozen=True)
class RulesAnswer:
    """Every rule on one pair.

    Attributes
    ----------
    source : str
        ``pmfs`` or ``trace``.
    k : int
        Candidates asked for.
    positions : int
        Pairs of pmfs, or positions of the trace.
    rows : sequence of RuleRow
        In any order.
    total_variation, kl : Interval or None
        Means over the positions; KL infinite where the draft lacks a token of the target.
    optimum : mapping of int to float
        alpha*_k by k, as far as known.
    notes : sequence of str
        About the source.
    """

    source: str
    k: int
    positions: int
    rows: Sequence[RuleRow]
    total_variation: Interval | None
    kl: Interval | None
    optimum: Mapping[int, float] = field(default_factory=dict)
    notes: Sequence[str] = ()


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
        "rules": [row.as_dict() for row in rows],
    }
    return Report(content, [_rules_table(answer, rows)], ", ".join(known), _rule_notes(answer, rows, of_pmfs))


def _divergence(kl: Interval | None) -> str:
    if kl is None:
        return "= -"
    return f"= {number(kl, 4)} nats" if math.isfinite(kl.best) else "infinite"


def _rules_table(answer: RulesAnswer, rows: Sequence[RuleRow]) -> Table:
    of_pmfs = answer.source == "pmfs"
    columns = ["rule", "side", "k", "acceptance", *(["gap to R4", "H(R)"] if of_pmfs else [])]
    made = table(f"Acceptance with k = {answer.k} candidates", columns, words=2)
    for row in rows:
        cells = [row.rule, row.side if row.acceptance else "-", str(row.k), number(row.acceptance, 4)]
        if of_pmfs:
            mark = " " if row.limited or row.gap is None else "†"
            gap = "-" if row.gap is None else f"{round(row.gap, 4) + 0.0:.4f}"  # no negative zero
            cells += [("≤" if row.side == "lower bound" else "") + gap + mark, number(row.entropy, 4)]
        made.add_row(*cells)
    return made


def _rule_notes(answer: RulesAnswer, rows: Sequence[RuleRow], of_pmfs: bool) -> list[str]:
    notes = list(answer.notes)
    if any(row.k != answer.k for row in rows):
        notes.append("Rules with k = 1 judge one candidate.")
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
    reasons = list(dict.fromkeys(row.reason for row in rows if row.reason))
    return notes + [f"{', '.join(row.rule for row in rows if row.reason == reason)}: {reason}." for reason in reasons]
