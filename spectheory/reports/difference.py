"""Two runs side by side, and the gate of an engine's continuous integration."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from spectheory.answers.compared import DifferenceJson, GateJson, RunJson, SpeedupsJson
from spectheory.judging.acceptance_gate import POWER, Gate
from spectheory.judging.difference import FALSE_ALARM, Change, Difference, Speedups
from spectheory.judging.judgement import Judgement
from spectheory.judging.runs import Run
from spectheory.prediction.over_prompts import FEW
from spectheory.reports.base import Brief, Report
from spectheory.reports.table import Column, Table

_INDEPENDENT = "their calls are taken as independent: a lower bound of their noise"


def difference_report(found: Difference) -> Report:
    """Whether the runs differ, by how much, and why as far as that is known."""
    judged = found.judged or ("", "")
    content = DifferenceJson.view(
        found,
        one=_run(found.one, judged[0]),
        other=_run(found.other, judged[1]),
        differs=any(map(found.differs, found.changes)),
        changes=found.changes,
        texts=found.texts,
        draft=found.draft,
        rest=found.rest,
        speedups=SpeedupsJson.view(found.speedups) if found.speedups else None,
    )
    lines = list(_lines(found))
    tables = [_table(found)]
    names = (found.one.name, found.other.name)
    reasons = [
        f"{name} is not judged: {why}" for name, why in zip(names, judged, strict=True) if why and isinstance(why, str)
    ]
    notes = [
        f"Differences are {found.other.name} less {found.one.name}, with 95% intervals; two equal runs are said to "
        f"differ with probability {FALSE_ALARM:g}, over all rows together.",
        *_noise(found),
        *reasons,
    ]
    return Report(content, tables, "; ".join(lines), notes, Brief.of(lines, tables, [*_noise(found), *reasons]))


def _run(run: Run, judged: Judgement | str) -> RunJson:
    return RunJson.view(
        run,
        calls=run.calls if run.errors is None else math.nan,
        prompts=len(run.prompts),
        rule=run.rule or None,
        calls_fit=not judged.refuted if isinstance(judged, Judgement) else None,
        output_fits=not judged.output_refuted if isinstance(judged, Judgement) and judged.output else None,
    )


def _lines(found: Difference) -> Iterator[str]:
    """The verdict on tokens per call, the position that changed most with its reason, the output and the speed-up."""
    tokens, ks = found.tokens, dict.fromkeys((found.one.k, found.other.k))
    values = f"{tokens.one:.2f} to {tokens.other:.2f} at k = {' and '.join(map(str, ks))}"
    if found.differs(tokens):
        yield f"Tokens per call {_moved(tokens)}: {values}"
    else:
        yield f"Tokens per call cannot be told apart: {values} ({_error(tokens, signed=True)})"
    rests = found.rest or found.changes
    positions = [*zip(found.changes, rests, strict=True)][1:]
    sure = [pair for pair in positions if any(map(found.differs, pair))]
    if sure:
        yield from _because(found, max(sure, key=lambda pair: max(abs(each.z) for each in pair))[0])
    yield from _faults(found)
    if found.speedups:
        yield _speedup(found.speedups)


def _because(found: Difference, change: Change) -> Iterator[str]:
    """A change at a position and what makes it, as far as that is known."""
    moved = f"Acceptance at {change.what} {_moved(change)}"
    if not found.texts:
        yield f"{moved}: {change.one:.3f} to {change.other:.3f}"
        return
    at = found.changes.index(change)
    rest = found.rest[at]
    texts = "texts with their drafts" if found.with_drafts else "the texts"
    yield f"{moved}: {texts} are {_worse(found.texts[at], 'harder', 'easier', 'equally hard')}"
    if found.draft:
        yield f"The draft is {_worse(found.draft[at], 'weaker', 'better', 'equally good')}"
    cause = "the engine" if found.draft or found.with_drafts else "the draft or the engine"
    size = _error(rest, signed=True)
    yield f"The rest, {size}, is {cause}" if found.differs(rest) else f"The rest, {size}, is within noise"


def _worse(part: Change, worse: str, better: str, equal: str) -> str:
    by = part.difference.best
    shown = f"{abs(by):.3f}"
    return f"{worse if by < 0 else better} by {shown}" if float(shown) else equal


def _faults(found: Difference) -> Iterator[str]:
    """Runs whose output or calls do not fit; where all that was judged does, one line says so."""
    named = list(zip((found.one.name, found.other.name), found.judged, strict=False))
    judged = [(name, each) for name, each in named if isinstance(each, Judgement)]
    wrong = [name for name, each in judged if each.output_refuted]
    unfit = [name for name, each in judged if each.refuted]
    if wrong:
        yield f"The output of {' and of '.join(wrong)} is not what the target outputs"
    if unfit:
        yield f"The calls of {' and of '.join(unfit)} do not fit the rule"
    tested = [name for name, each in judged if each.output]
    if tested and not wrong:
        yield f"The output of {' and of '.join(tested)} fits the target"


def _speedup(found: Speedups) -> str:
    if found.ratio is None:
        return found.refused.removesuffix(".")
    return (
        f"Speed-up {found.one.best:.2f}x to {found.other.best:.2f}x: {found.ratio.best:.3f} times "
        f"(95%: {found.ratio.low:.3f} to {found.ratio.high:.3f})"
    )


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
        draft = "texts, with the first one's draft" if found.draft else "texts"
        columns += [
            Column(
                f"expected {found.one.name}",
                digits=3,
                aside=True,
                at="first",
                meaning="expected of the first run's texts (exact)",
            ),
            Column(
                f"expected {found.other.name}",
                digits=3,
                aside=True,
                at="second",
                meaning=f"expected of the second run's {draft}",
            ),
            Column("texts", digits=3, signed=True, meaning="the second less the first: what the texts explain"),
            *([Column("draft", digits=3, signed=True, meaning="what the draft explains")] if found.draft else []),
            Column("rest", digits=3, signed=True, meaning="what neither explains: the engine, or an unknown draft"),
        ]
        parts = zip(rows, found.texts, found.draft or found.texts, found.rest, strict=True)
        rows = [
            row
            | {"first": texts.one, "second": texts.other, "texts": texts.difference.best}
            | {"draft": drafts.difference.best, "rest": rest.difference}
            for row, texts, drafts, rest in parts
        ]
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
