"""Two runs side by side, and the gate of an engine's continuous integration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spectheory.answers.compared import DifferenceJson, GateJson, RunJson
from spectheory.judging.acceptance_gate import POWER, Gate
from spectheory.judging.difference import FALSE_ALARM, Change, Difference
from spectheory.judging.runs import Run
from spectheory.prediction.over_prompts import FEW
from spectheory.reports.base import Brief, Report
from spectheory.reports.table import Column, Table

_INDEPENDENT = "their calls are taken as independent: a lower bound of their noise"


def difference_report(found: Difference) -> Report:
    """Whether the runs differ, by how much, and why as far as that is known."""
    differs = any(map(found.differs, found.changes))
    content = DifferenceJson.view(
        found,
        one=_run(found.one),
        other=_run(found.other),
        differs=differs,
        changes=found.changes,
        texts=found.texts,
        rest=found.rest,
    )
    lines = list(_lines(found))
    tables = [_table(found)]
    notes = [
        f"Differences are {found.other.name} less {found.one.name}, with 95% intervals; two equal runs are said to "
        f"differ with probability {FALSE_ALARM:g}, over all rows together.",
        *_noise(found),
    ]
    return Report(content, tables, "; ".join(lines), notes, Brief.of(lines, tables, _noise(found)))


def _run(run: Run) -> RunJson:
    return RunJson.view(run, prompts=len(run.prompts), rule=run.rule or None)


def _lines(found: Difference) -> Iterator[str]:
    """The verdict on tokens per call, and the position that changed most with its reason."""
    tokens = found.tokens
    values = f"{tokens.one:.2f} to {tokens.other:.2f} at k = {found.k}"
    if found.differs(tokens):
        yield f"Tokens per call {_moved(tokens)}: {values}"
    else:
        yield f"Tokens per call cannot be told apart: {values} ({_error(tokens, signed=True)})"
    largest = max(found.changes[1:], key=lambda change: abs(change.z))
    if not found.differs(largest):
        return
    at = found.changes.index(largest)
    if found.texts:
        texts, rest = found.texts[at], found.rest[at]
        verdict = "beyond noise" if found.differs(rest) else "within noise"
        yield (
            f"Acceptance at {largest.what} {_moved(largest)}: the texts make {texts.difference.best:+.3f}, the rest "
            f"{_error(rest, signed=True)} is the draft or the engine ({verdict})"
        )
    else:
        yield f"Acceptance at {largest.what} {_moved(largest)}: {largest.one:.3f} to {largest.other:.3f}"


def _moved(change: Change) -> str:
    return f"{'rose' if change.difference.best > 0 else 'fell'} by {_error(change)}"


def _error(change: Change, *, signed: bool = False) -> str:
    value, half = change.difference.best, change.difference.high - change.difference.best
    return f"{value:+.3f} ± {half:.3f}" if signed else f"{abs(value):.3f} ± {half:.3f}"


def _table(found: Difference) -> Table:
    columns = [
        Column("what", kind="words", meaning="tokens per call, and the share of calls that accepted a position"),
        Column(found.one.name, digits=3, at="one", meaning="value of the first run"),
        Column(found.other.name, digits=3, at="other", meaning="value of the second run"),
        Column("difference", digits=3, signed=True, meaning="second less first, 95%"),
        Column("z", digits=1, signed=True, meaning="difference in standard deviations"),
    ]
    rows: list[Any] = [vars(change) | {"difference": change.difference, "z": change.z} for change in found.changes]
    if found.texts:
        columns.append(Column("texts", digits=3, signed=True, meaning="what of it the texts explain (exact)"))
        columns.append(Column("rest", digits=3, signed=True, meaning="what they do not: the draft or the engine"))
        parts = zip(rows, found.texts, found.rest, strict=True)
        rows = [row | {"texts": one.difference.best, "rest": other.difference} for row, one, other in parts]
    return Table.of("Two runs", columns, rows)


def _noise(found: Difference) -> list[str]:
    """Where the intervals come from."""
    runs = [run for run in (found.one, found.other) if run.errors is None]
    lone = [run for run in runs if len(run.prompts) < 2]
    few = min((len(run.prompts) for run in runs if len(run.prompts) > 1), default=FEW)
    named = "; ".join(f"{run.name}: {'one prompt' if run.prompts else 'totals without prompts'}" for run in lone)
    raised = f"their noise is raised {found.clustering:.1f} times in variance, as calls of one prompt depend"
    slack = found.tokens.slack
    return [
        *([f"{found.paired} prompts are in both runs, and are compared one by one."] if found.paired else []),
        *([f"{named}; {raised if found.clustering > 1 else _INDEPENDENT}."] if lone else []),
        *([f"Only {few} prompts: intervals are rough."] if few < FEW else []),
        *([f"Up to {slack:.3f} tokens per call depend on what is counted at the ends of texts."] if slack else []),
    ]


def gate_report(found: Gate) -> Report:
    """Passed or failed, at which false-alarm rate, and what it would miss."""
    tokens = found.difference.tokens
    verdict = "Passed" if found.passed else "FAILED"
    side = "not below" if found.passed else "below"
    lines = [
        f"{verdict}: {tokens.other:.3f} tokens per call counted, {side} {found.limit:.3f} (expected {tokens.one:.3f})",
        f"False-alarm rate {found.alarm:g}; a loss of {found.smallest:.1%} fails with probability {POWER:g}",
    ]
    content, noise = GateJson.view(found), _noise(found.difference)
    return Report(content, [], ". ".join(lines) + ".", noise, Brief.of(lines, [], noise))
