"""Two runs side by side, and the gate of an engine's continuous integration."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from spectheory.answers.judged import DifferenceJson, GateJson, NoiseJson
from spectheory.judging.acceptance_gate import POWER, Gate
from spectheory.judging.chance import RunNoise
from spectheory.judging.difference import FALSE_ALARM, Change, Difference, Speedups
from spectheory.judging.judgement import Judgement
from spectheory.judging.runs import Run
from spectheory.prediction.over_prompts import FEW
from spectheory.reports.base import Brief, Report
from spectheory.reports.table import Column, Table

_INDEPENDENT = "their calls are taken as independent: a lower bound of their noise"


def difference_report(answer: Difference) -> Report:
    """Whether the runs differ, by how much, and why as far as that is known."""
    judged = answer.judged or ("", "")
    content = DifferenceJson.view(
        answer,
        one=_run(answer.one, judged[0]),
        other=_run(answer.other, judged[1]),
        differs=any(map(answer.differs, answer.changes)),
        changes=answer.changes,
        texts=answer.texts,
        draft=answer.draft,
        rest=answer.rest,
        speedups=DifferenceJson.Speedups.view(answer.speedups) if answer.speedups else None,
    )
    lines = list(_lines(answer))
    tables = [_table(answer)]
    names = (answer.one.name, answer.other.name)
    reasons = [
        f"{name} is not judged: {why}" for name, why in zip(names, judged, strict=True) if why and isinstance(why, str)
    ]
    notes = [
        f"Differences are {answer.other.name} less {answer.one.name}, with 95% intervals; two equal runs are said to "
        f"differ with probability {FALSE_ALARM:g}, over all rows together.",
        *_noise(answer),
        *reasons,
    ]
    return Report(content, tables, "; ".join(lines), notes, Brief.of(lines, tables, [*_noise(answer), *reasons]))


def _run(run: Run, judged: Judgement | str) -> DifferenceJson.Run:
    return DifferenceJson.Run.view(
        run,
        calls=run.calls if run.errors is None else math.nan,
        prompts=len(run.prompts),
        rule=run.rule or None,
        calls_fit=not judged.refuted if isinstance(judged, Judgement) else None,
        output_fits=not judged.output_refuted if isinstance(judged, Judgement) and judged.output else None,
    )


def _lines(answer: Difference) -> Iterator[str]:
    """The verdict on tokens per call, the position that changed most with its reason, the output and the speed-up."""
    yield from answer.other.contains
    tokens, ks = answer.tokens, dict.fromkeys((answer.one.k, answer.other.k))
    values = f"{tokens.one:.2f} to {tokens.other:.2f} at k = {' and '.join(map(str, ks))}"
    if answer.differs(tokens):
        yield f"Tokens per call {_moved(tokens)}: {values}"
    elif tokens.difference.low <= 0 <= tokens.difference.high:
        yield f"Tokens per call cannot be told apart: {values} ({_error(tokens, signed=True)})"
    else:
        way, rows = "risen" if tokens.difference.best > 0 else "fallen", len(answer.changes)
        level = f"p < {FALSE_ALARM / rows:.2g} ({FALSE_ALARM:g} over {rows} rows)"
        yield f"Tokens per call may have {way}: {values} ({_error(tokens, signed=True)})"
        yield f"p = {tokens.p:.2g} excludes 0 at 95%; beyond noise is {level}"
    rests = answer.rest or answer.changes
    positions = [*zip(answer.changes, rests, strict=True)][1:]
    sure = [pair for pair in positions if any(map(answer.differs, pair))]
    if sure:
        yield from _because(answer, max(sure, key=lambda pair: max(abs(each.z) for each in pair))[0])
    yield from _faults(answer)
    if answer.speedups:
        yield _speedup(answer.speedups)


def _because(answer: Difference, change: Change) -> Iterator[str]:
    """A change at a position and what makes it, as far as that is known."""
    moved = f"Acceptance at {change.what} {_moved(change)}"
    if not answer.texts:
        yield f"{moved}: {change.one:.3f} to {change.other:.3f}"
        return
    at = answer.changes.index(change)
    rest = answer.rest[at]
    texts = "texts with their drafts" if answer.with_drafts else "the texts"
    yield f"{moved}: {texts} are {_worse(answer.texts[at], 'harder', 'easier', 'equally hard')}"
    if answer.draft:
        yield f"The draft is {_worse(answer.draft[at], 'weaker', 'better', 'equally good')}"
    cause = "the engine" if answer.draft or answer.with_drafts else "the draft or the engine"
    size = _error(rest, signed=True)
    yield f"The rest, {size}, is {cause}" if answer.differs(rest) else f"The rest, {size}, is within noise"


def _worse(part: Change, worse: str, better: str, equal: str) -> str:
    by = part.difference.best
    shown = f"{abs(by):.3f}"
    return f"{worse if by < 0 else better} by {shown}" if float(shown) else equal


def _faults(answer: Difference) -> Iterator[str]:
    """Runs whose output or calls do not fit; where all that was judged does, one line says so."""
    named = list(zip((answer.one.name, answer.other.name), answer.judged, strict=False))
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


def _speedup(speedups: Speedups) -> str:
    if speedups.ratio is None:
        return speedups.refused.removesuffix(".")
    return (
        f"Speed-up {speedups.one.best:.2f}x to {speedups.other.best:.2f}x: {speedups.ratio.best:.3f} times "
        f"(95%: {speedups.ratio.low:.3f} to {speedups.ratio.high:.3f})"
    )


def _moved(change: Change) -> str:
    return f"{'rose' if change.difference.best > 0 else 'fell'} by {_error(change)}"


def _error(change: Change, *, signed: bool = False) -> str:
    value, half = change.difference.best, change.difference.high - change.difference.best
    return f"{value:+.3f} ± {half:.3f}" if signed else f"{abs(value):.3f} ± {half:.3f}"


def _table(answer: Difference) -> Table:
    columns = [
        Column("what", kind="words", meaning="tokens per call, and the share of calls that accepted a position"),
        Column(answer.one.name, digits=3, at="one", meaning="value of the first run"),
        Column(answer.other.name, digits=3, at="other", meaning="value of the second run"),
        Column("difference", digits=3, signed=True, meaning="second less first, 95%"),
        Column("z", digits=1, signed=True, meaning="difference in standard deviations"),
    ]
    rows: list[Any] = [vars(change) | {"difference": change.difference, "z": change.z} for change in answer.changes]
    if answer.texts:
        draft = "texts, with the first one's draft" if answer.draft else "texts"
        columns += [
            Column(
                f"expected {answer.one.name}",
                digits=3,
                aside=True,
                at="first",
                meaning="expected of the first run's texts (exact)",
            ),
            Column(
                f"expected {answer.other.name}",
                digits=3,
                aside=True,
                at="second",
                meaning=f"expected of the second run's {draft}",
            ),
            Column("texts", digits=3, signed=True, meaning="the second less the first: what the texts explain"),
            *([Column("draft", digits=3, signed=True, meaning="what the draft explains")] if answer.draft else []),
            Column("rest", digits=3, signed=True, meaning="what neither explains: the engine, or an unknown draft"),
        ]
        parts = zip(rows, answer.texts, answer.draft or answer.texts, answer.rest, strict=True)
        rows = [
            row
            | {"first": texts.one, "second": texts.other, "texts": texts.difference.best}
            | {"draft": drafts.difference.best, "rest": rest.difference}
            for row, texts, drafts, rest in parts
        ]
    return Table.of("Two runs", columns, rows)


def _noise(answer: Difference) -> list[str]:
    """Where the intervals come from."""
    runs = [run for run in (answer.one, answer.other) if run.errors is None]
    lone = [run for run in runs if len(run.prompts) < 2]
    few = min((len(run.prompts) for run in runs if len(run.prompts) > 1), default=FEW)
    named = "; ".join(f"{run.name}: {'one prompt' if run.prompts else 'totals without prompts'}" for run in lone)
    raised = f"their noise is raised {answer.clustering:.1f} times in variance, as calls of one prompt depend"
    slack = answer.tokens.slack
    return [
        *([f"{answer.paired} prompts are in both runs, and are compared one by one."] if answer.paired else []),
        *([f"{named}; {raised if answer.clustering > 1 else _INDEPENDENT}."] if lone else []),
        *([f"Only {few} prompts: intervals are rough."] if few < FEW else []),
        *([f"Up to {slack:.3f} tokens per call depend on what is counted at the ends of texts."] if slack else []),
    ]


def gate_report(answer: Gate) -> Report:
    """Passed or failed, at which false-alarm rate, and what it would miss."""
    tokens = answer.difference.tokens
    verdict = "Passed" if answer.passed else "FAILED"
    side = "not below" if answer.passed else "below"
    least = "at least " if answer.independent else ""
    lines = [
        *answer.difference.other.contains,
        f"{verdict}: {tokens.other:.3f} tokens per call counted, {side} {answer.limit:.3f} (expected {tokens.one:.3f})",
        f"False-alarm rate {least}{answer.alarm:g}; a loss of {least}{answer.smallest:.1%} fails with probability "
        f"{POWER:g}",
    ]
    content, noise = GateJson.view(answer), _noise(answer.difference)
    return Report(content, [], ". ".join(lines) + ".", noise, Brief.of(lines, [], noise))


def noise_report(answer: RunNoise) -> Report:
    """How far one run strays, how far two differ, and what is left of it when the same requests are served again."""
    tokens = answer.tokens
    size = f"{answer.calls:.4g} call{'s' * (answer.calls != 1)}"
    if answer.requests:
        of_requests = f"{answer.requests:.4g} request{'s' * (answer.requests != 1)}"
        size = of_requests if float(answer.requests).is_integer() else f"{size}, of about {of_requests}"
    least = "" if answer.prompts else "at least "
    half, apart = answer.half(tokens.others), answer.half(tokens.others, runs=2)
    lines = [
        f"{size}: {tokens.value:.2f} tokens per call at k = {answer.k}, by chance {least}±{half:.2f} "
        f"({half / tokens.value:.1%})",
        f"Two runs of other requests differ by up to {least}{apart / tokens.value:.1%}, speed-ups too",
        _served_again(answer),
    ]
    columns = [
        Column("what", kind="words", meaning="tokens per call, and the share of calls that accepted a position"),
        Column("value", digits=3, meaning="of the run that is given"),
        Column(
            "one run", digits=3, at="one", meaning="from the mean of all such requests, in 95 of 100 runs (estimate)"
        ),
        Column("two runs", digits=3, at="two", meaning="two runs differ by less, in 95 of 100 (estimate)"),
        Column("same again", digits=3, at="same", meaning=f"the same requests served twice ({answer.again})"),
    ]
    rows = [
        vars(row)
        | {"one": answer.half(row.others), "two": answer.half(row.others, runs=2)}
        | {"same": None if row.again is None else answer.half(row.again, runs=2)}
        for row in answer.rows
    ]
    known = (
        f"The spread is that of {answer.prompts} prompts; normal values are assumed."
        if answer.prompts
        else "Calls are taken as independent; those of one request are not, so chance makes more than this."
    )
    notes = [
        known,
        "Speed-ups vary by the same share at the same step times; the error of the times comes on top.",
        "At temperature 0 or with fixed seeds a text is the same again, and so are its calls: what differs then is no "
        "chance. Sums in another order, as in other batches, turn near-ties; judge tells such texts from wrong ones.",
    ]
    table = Table.of("What chance makes of a run", columns, rows)
    content = NoiseJson.view(answer)
    few = [f"Only {answer.prompts} prompts: the spread is rough."] if 0 < answer.prompts < FEW else []
    if 0 < answer.prompts < (answer.requests or 0):
        few.append(
            f"The value is that of {answer.prompts} prompts. Runs of more requests stray by so much from the mean of "
            "all such requests, and by more from this value; predict gives its range."
        )
    return Report(content, [table], "; ".join(lines) + ".", [*few, *notes], Brief.of(lines, [table], few))


def _served_again(answer: RunNoise) -> str:
    """What the same requests give when they are served again."""
    again = answer.tokens.again
    if again is None or (again == 0 and answer.again != "exact"):
        return "Nothing says how much the same requests differ: several texts of a prompt would"
    if again == 0:
        return "The same requests served again, at temperature 0, give equal counts (exact)"
    share = answer.half(again, runs=2) / answer.tokens.value
    word = {"lower bound": "at least ", "estimate": "about "}.get(answer.again, "")
    return f"The same requests served again differ by up to {word}{share:.1%} ({answer.again})"
