"""What a prediction shows first: the best setting, and 80 columns of a few rules with k up to two beyond the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spectheory.deployment.candidates import in_words
from spectheory.intervals import Interval
from spectheory.limits.claims import TEXT, LimitClaim
from spectheory.prediction import Label, Plan, Prediction
from spectheory.prediction.answer import RecordedReading
from spectheory.prediction.over_prompts import few_prompts
from spectheory.prediction.remarks import NOT_SAMPLED, given
from spectheory.reports.base import Brief
from spectheory.reports.brief import WIDTH, narrowed, point, range_words, short, sizes_shown, verdict, width
from spectheory.reports.meanings import TERMS, claimed
from spectheory.reports.provisional import provisional_words
from spectheory.reports.recorded import heavy, kept
from spectheory.reports.remarks import NO_COST
from spectheory.reports.table import Cell, Column, Table
from spectheory.reports.whole_decoding import limits_of_decodings

RULES, RULES_WITHOUT_COSTS = 3, 5
"""Most rules beside each other, with and without speed-ups."""
LONGEST_LABEL = 31
"""Letters of the longest built-in rule with "verification"."""
CERTIFIED = "Ranges without ± are certain bounds; settings are compared by their low ends."


def prediction_brief(plan: Plan, asked: Sequence[Table], recorded: Sequence[RecordedReading] = ()) -> Brief:
    """The verdict, the table, and the tables that were `asked` for beside it."""
    provenance = plan.best.provenance
    provisional = provisional_words(provenance)
    notes = [
        *([f"{provisional}."] if provisional else []),
        *heavy(recorded, plan.best),
        *([CERTIFIED] if any(p.certified for p in plan.predictions) else []),
        *([] if plan.timed else [NO_COST]),
        *([NOT_SAMPLED] if given(provenance) else []),
        *([] if provisional else few_prompts(plan.prompts)),
    ]
    return Brief([*_verdict(plan), *verdict(kept(provenance, recorded))], [_table(plan), *map(narrowed, asked)], notes)


def label_column(label: Label, what: str, heading: str = "") -> Column:
    """The column of a rule and kind of shape; `what` of it is shown is a term."""
    return Column(heading or str(label), meaning=f"{what} under that rule: {TERMS[what]}")


def _verdict(plan: Plan) -> list[str]:
    best = plan.best
    setting, tokens = f"{short(best.rule.label, LONGEST_LABEL)}, {in_words(best.shape)}", best.tokens_per_call
    if best.speedup is None:
        known = ", ".join(filter(None, [f"{point(tokens)} tokens per target call", range_words(tokens)]))
        return verdict(f"Most tokens per call: {setting}", known)
    slower = best.speedup.high < 1 and best.speedup.kind != "estimate"
    known = f"{range_words(best.speedup, 'x') or point(best.speedup, 'x')} over plain decoding"
    return verdict(
        f"{'Do not speculate; best' if slower else 'Best'}: {setting}: speed-up {point(best.speedup, 'x')}",
        f"{known}; {point(tokens)} tokens per target call",
    )


def _table(plan: Plan) -> Table:
    """As many rules as fit, with intervals if these fit too."""
    most = min(RULES if plan.timed else RULES_WITHOUT_COSTS, len(plan.labels))
    forms = [(_shown(plan, rules), ranges) for rules in range(most, 0, -1) for ranges in (True, False)]
    tables = [_of_labels(plan, labels, ranges=ranges) for labels, ranges in forms]
    return next((table for table in tables if width(table) <= WIDTH), narrowed(tables[-1]))


def _of_labels(plan: Plan, labels: Sequence[Label], *, ranges: bool) -> Table:
    """Tokens per call of each label, a limit that binds one of them, and speed-ups; `ranges` are those of tokens."""
    found = {label: {p.shape.nodes: p for p in plan.of(label)} for label in labels}
    limit = _limit(plan, labels)
    sizes = sizes_shown((nodes for of in found.values() for nodes in of), plan.best.shape.nodes)
    rows = []
    for nodes in sizes:
        row = [of.get(nodes) for of in found.values()]
        tokens = [Cell(_value(p.tokens_per_call, ranges), best=p is plan.best) if p else None for p in row]
        limits = [next((p.compared(limit) for p in row if p and p.compared(limit)), None)] if limit else []
        gains = [Cell(p.speedup, best=p is plan.best) if p else None for p in row] if plan.timed else []
        rows.append([nodes, *tokens, *limits, *gains])
    columns = [
        Column("k"),
        *(label_column(label, "tokens per call", _heading(label)) for label in labels),
        *([Column(limit.heading, aside=True, meaning=claimed(limit))] if limit else []),
        *(label_column(label, "speed-up", f"{_heading(label)}\nspeed-up") for label in labels if plan.timed),
    ]
    title = "Tokens per target call by drafts k"
    return Table(f"{title}, then speed-up over plain decoding" if plan.timed else title, columns, rows)


def _value(tokens: Interval, ranges: bool) -> Interval | float:
    return tokens if ranges or tokens.kind == "bound" else tokens.best


def _heading(label: Label) -> str:
    return str(replace(label, rule=short(label.rule)))


def _limit(plan: Plan, labels: Sequence[Label]) -> LimitClaim | None:
    """A limit that is known and binds a rule that is shown."""
    shown = [p for label in labels for p in plan.of(label)]
    claims = [*limits_of_decodings(plan), TEXT]
    return next((c for c in claims if any(p.compared(c) and c.key in p.rule.bound_by for p in shown)), None)


def _best(plan: Plan, label: Label) -> Prediction:
    return max(plan.of(label), key=lambda p: p.gain)


def _shown(plan: Plan, most: int) -> Sequence[Label]:
    """The best labels, chains first, in the order of the plan."""
    by_gain = sorted(
        plan.labels, key=lambda label: (label != plan.best.label, not label.chain, -_best(plan, label).gain)
    )
    return [label for label in plan.labels if label in by_gain[:most]]
