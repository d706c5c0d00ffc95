"""A draft while a model is trained: a row for each step, and how often to train the draft again."""

from __future__ import annotations

from spectheory.answers.plan import TrainingJson
from spectheory.deployment.candidates import in_words
from spectheory.deployment.stale_draft import Staleness
from spectheory.reports.base import Brief, Report, point, range_words
from spectheory.reports.table import Column, Table

_LINE = (
    "A straight line through the time per token, 1 / speed-up, of the steps (an estimate). A draft trained again is "
    "taken to be as good as at the first step."
)
_COST = "The cost is that of training the draft, over the time of plain decoding of one step's texts."
_TEXTS = "Each step has texts of its own target where the target is trained: texts become harder or easier besides."


def training_report(answer: Staleness) -> Report:
    """What each step gives, whether the draft still pays at the last one, and when to train it again."""
    first, last = answer.steps[0], answer.steps[-1]
    speedups = [each.best.speedup for each in (first, last) if each.best.speedup]
    was, now = (point(each, "x") for each in speedups)
    sure = range_words(speedups[-1], "x")
    headline = f"Speed-up {was} at step {first.step}, {now}{f' ({sure})' if sure else ''} at step {last.step}"
    tables = [_steps_table(answer), *([_periods_table(answer)] if answer.periods else [])]
    notes = [_LINE, _COST, _TEXTS]
    lines = [headline, _until(answer)]
    return Report(TrainingJson.view(answer), tables, ". ".join(lines), notes, Brief.of(lines, tables, notes[:2]))


def _until(answer: Staleness) -> str:
    if answer.slope.low <= 0 < answer.slope.high:
        return "Whether it grows worse is not sure: the slope's error reaches 0; measure more prompts or later steps"
    if answer.pays_until is None:
        return "Its time per token does not grow with the steps: no reason to train the draft again"
    step = answer.pays_until
    first, last = answer.steps[0].step, answer.steps[-1].step
    if step <= first:
        return f"On a straight line plain decoding is faster from the first step, {first}, on"
    return f"On a straight line it {'pays until' if step > last else 'no longer pays from'} about step {step:.0f}"


def _steps_table(answer: Staleness) -> Table:
    k = in_words(answer.steps[0].best.shape)
    columns = [
        Column("step", digits=0),
        Column("acceptance", digits=3, at="best.acceptance", meaning="mean acceptance of the first draft"),
        Column("best", kind="names", at=lambda row: in_words(row.best.shape)),
        Column("tokens per call", at="best.tokens_per_call"),
        Column("speed-up", "x", at="best.speedup"),
        Column(f"still {k}", "x", at="unchanged.speedup", aside=True, meaning="with the first step's k"),
    ]
    return Table.of(f"By training step ({answer.rule.label})", columns, answer.steps)


def _periods_table(answer: Staleness) -> Table:
    columns = [
        Column("cost of training the draft", digits=1, meaning="over plain decoding of one step's texts"),
        Column(
            "steps between",
            digits=0,
            meaning="least time in all, on a straight line; none where plain decoding takes less",
        ),
    ]
    return Table("Train the draft again every", columns, answer.periods)
