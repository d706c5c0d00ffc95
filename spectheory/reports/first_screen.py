"""What a prediction or a plan shows first: the fastest setting that an engine runs, why no more, and what is next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spectheory.cost import ConstantRatio, CostModel, Roofline
from spectheory.deployment import EngineSettings
from spectheory.deployment.candidates import DO_NOT, SPECULATE, UNCERTAIN, in_words
from spectheory.deployment.next_steps import why_not_more
from spectheory.intervals import Interval
from spectheory.prediction import Prediction
from spectheory.reports.base import given_ratio, point, range_words, short
from spectheory.reports.load import roofline_words
from spectheory.reports.table import Column, Table

PAYS = {SPECULATE: "Pays", UNCERTAIN: "May pay"}
_LETTERS = 13
"""Of a draft's name."""
_STEPS = 2
"""Next steps that are shown."""


def verdict(
    engines: Sequence[EngineSettings], best: Prediction, cost: CostModel | None, *, several: bool = False
) -> list[str]:
    """The fastest setting that an engine runs, its error, and a faster one that none runs; `engines` fastest first.

    The draft is named where there are `several`.
    """
    first = engines[0].candidate
    runs, speedup = first.prediction, first.speedup
    said = "No setting of an engine pays; best" if first.verdict == DO_NOT else PAYS[first.verdict]
    draft = f"{short(first.draft.name, _LETTERS)}, " if several and runs.rule.uses_draft else ""
    setting = f"{engines[0].engine}, {draft}{runs.rule.label}, {in_words(runs.shape).partition(', depth')[0]}"
    lines = [f"{said}: {setting}: speed-up {point(speedup, 'x')}", how_sure(cost, speedup, runs.tokens_per_call)]
    if best.speedup is not None and best.speedup.best > speedup.best:
        theory = f"{best.rule.label}, {in_words(best.shape).partition(', depth')[0]}"
        lines.append(f"Theoretical best (no engine below): {theory}: {point(best.speedup, 'x')}")
    return lines


def how_sure(cost: CostModel | None, speedup: Interval, tokens: Interval) -> str:
    """The error of a speed-up, and tokens per call."""
    if isinstance(cost, ConstantRatio):
        over = given_ratio(cost.c, speedup, "prompts")
    elif isinstance(cost, Roofline):
        over = roofline_words(speedup)
    else:
        over = range_words(speedup, "x") or point(speedup, "x")
    return f"{over}; {point(tokens)} tokens per target call"


def engines_table(engines: Sequence[EngineSettings], *, several: bool = False, most: int | None = None) -> list[Table]:
    """The best setting of each engine, which `engines` are, or of the `most` fastest; nothing without them."""
    columns = [
        Column("engine", kind="names"),
        *([Column("draft", kind="names", at=lambda each: short(each.candidate.draft.name, _LETTERS))] * several),
        Column("rule", kind="names", at="candidate.prediction.rule.name"),
        Column("shape", kind="names", at=lambda each: in_words(each.candidate.prediction.shape)),
        Column("tokens per call", at="candidate.prediction.tokens_per_call", aside=several),
        Column("speed-up", "x", at="candidate.speedup"),
    ]
    left_out = len(engines[most:]) if most else 0
    title = "What engines run, under the rule that each really has" + (f"; {left_out} more: --all" if left_out else "")
    return [Table.of(title, columns, engines[:most], best=engines[0])] if engines else []


def last_notes(best: Prediction, cost: CostModel | None, steps: Iterable[str]) -> list[str]:
    """Why a setting is no faster, and the first of the next steps."""
    why = why_not_more(best, cost)
    return [*([f"Why not more: {why}."] if why else []), f"Next: {'; '.join(list(steps)[:_STEPS])}."]
