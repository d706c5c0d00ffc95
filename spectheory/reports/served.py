"""A plan for a server that was timed: k by concurrency and context, the fit of its times, and the runs."""

from __future__ import annotations

import math

from spectheory.answers.plan import ServedJson
from spectheory.cost.served import TERMS, ServedFit
from spectheory.deployment.served import ServedAnswer, ServedChoice
from spectheory.reports.base import Brief, Report
from spectheory.reports.deployment import lock_step_table
from spectheory.reports.load import best_lengths_table, load_sentence, missed, targets_table
from spectheory.reports.table import Cell, Column, Row, Table, Value
from spectheory.trace.timed import NO_PREFILL

_NOTES = (
    "Speed-ups are of decoding, over plain decoding at the same concurrency and context; 95% intervals from the runs' "
    "residuals, and over prompts with a trace. The choice of k is not in them.",
    "A step's time is the mean time after a request's first token, over its further tokens, times tokens per call. "
    "Prefill of other requests shares these steps; so it is in the times, as much as the runs had of it.",
    "The batch is the concurrency. Where requests end or wait for their prompts, fewer decode: compare 'decoding'.",
    "Counted acceptance lengths hold tokens past the end of a text; tokens per call here do not.",
    "A draft's drafting and verification are fitted together: the time of calls does not tell them apart.",
)
_ONE_K = "All runs with speculation have k = {}: no other k is planned."
_READING = "* read from counts of a longer chain, whose calls start elsewhere: an estimate."
_NOT_AS_RUN = (
    "At concurrency {batch:g}, context {context:.0f}, k = {k} the runs gave {ran}x, apart from the fit's {speedup}x: "
    "the fit does not hold there, or the runs' noise is larger."
)
_SLOW_CLIENT = (
    "In {} fewer than half of the requests were decoding: first tokens came late, and times per token may be too short."
)


_OF_MANY = {TERMS[i]: TERMS[i].replace("a cached token", "1,000 cached tokens") for i in (2, 6)}
_STAIRS = "Of the tokens that a step verifies: concurrency times k + 1. Between two rows of tokens on a line."
_TURNS = 3
"""Concurrencies of the sentence on contexts."""
_FIRST = (
    "TTFT: the mean of the runs at that context, waiting included, on a line between their concurrencies; of a k that "
    "did not run that of the next longer one. An estimate, and no percentile."
)


def served_report(answer: ServedAnswer) -> Report:
    """The plan in tables and as JSON."""
    ks = answer.fit.ks
    waited = [run for run in answer.runs if run.note != NO_PREFILL]  # times of the others are of steps of all requests
    idle = [run.name for run in waited if (run.in_flight or math.inf) < run.batch / 2]
    notes = [
        f"Tokens per call: {answer.basis}.",
        *_NOTES,
        *([_ONE_K.format(ks[0])] if len(ks) == 1 and ks[0] > 1 else []),
        *([_SLOW_CLIENT.format(", ".join(idle))] if idle else []),
        *([_FIRST] if answer.load else []),
        *_not_as_run(answer),
    ]
    sentences = _sentences(answer)
    read = [_READING] if any(choice.reading for choice in answer.choices) else []
    sure = "interval includes 1" if _counted(answer) else "noise is not known"
    title = f"Best k and its speed-up (by cached tokens; 0: plain; ?: {sure})"
    fitted = [_law(answer.fit), *dict.fromkeys(run.note for run in answer.runs if run.note)]
    notes += fitted[1:]
    table = best_lengths_table(title, answer.choices, _choice, batch="concurrency", notes=read)
    together = [lock_step_table(answer.lock_step, answer.texts)] if answer.lock_step else []
    within = targets_table(answer.load)
    tables = [table, *within, *together, _fit(answer), _runs(answer), _tokens(answer)]
    first = targets_table(answer.load, brief=True) or [table]
    brief = Brief.of(sentences, first, [*first[0].notes, *fitted, *_not_as_run(answer)])
    return Report(_content(answer), tables, " ".join(sentences), notes, brief)


def _not_as_run(answer: ServedAnswer) -> list[str]:
    """The settings at which runs contradict the fit."""
    return [_NOT_AS_RUN.format(**vars(choice)) for choice in answer.choices if not choice.agrees]


def _sentences(answer: ServedAnswer) -> list[str]:
    best = max(answer.choices, key=lambda choice: choice.speedup.best)
    if best.k == 0:
        return ["Do not speculate: plain decoding is fastest at every concurrency and context that was timed."]
    off = [choice for choice in answer.choices if choice.k == 0]
    sure = sum(choice.certain for choice in answer.choices)
    where = f"concurrency {best.batch:g}, context {best.context:.0f}"
    rest = f"; at {len(off)} plain decoding is fastest" if off else ""
    pays = f"It pays at {sure} of {len(answer.choices)} settings (interval above 1){rest}."
    if not _counted(answer):
        pays = f"How sure this is, is not known: the runs say no number of calls{rest}."
    goodput = load_sentence(answer.load)
    turns = [_turn(answer)] if answer.crossovers else []
    said, reached = (
        [f"Speculate with k = {best.k} at {where}: {best.speedup}x.", pays, *turns],
        [f"{goodput}."] * bool(goodput),
    )
    return [*reached, *said] if missed(answer.load) else [*said, *reached]


def _counted(answer: ServedAnswer) -> bool:
    """Whether the noise of tokens per call is known."""
    return all(choice.speedup.kind != "estimate" for choice in answer.choices)


def _turn(answer: ServedAnswer) -> str:
    """Where speculation stops to pay, at the smallest concurrencies."""
    (first, *_), (least, most) = answer.crossovers, answer.fit.contexts
    at = []
    for turn in answer.crossovers:
        low = "under" * (turn.context.low == least) + f" {turn.context.low:,.0f}"
        high = "over" * (turn.context.high == most) + f" {turn.context.high:,.0f}"
        if turn.beyond is first.beyond:
            at.append(f"{turn.context.best:,.0f} ({low.strip()} to {high.strip()}) at concurrency {turn.batch:g}")
    return f"It {'pays' if first.beyond else 'loses'} beyond context {'; '.join(at[:_TURNS])}."


def _law(fit: ServedFit) -> str:
    """Which law the times follow, and the error of each that was tried."""
    tried = ", ".join(f"{name} {100 * error:.1f}%" for name, error in fit.tried.items())
    return f"Step times are {fit.law}. Each run predicted from the others is off by (mean square): {tried}."


def _choice(choice: ServedChoice) -> str:
    if not choice.k:
        return "0"
    return f"{choice.k}{'*' if choice.reading else ''} ({choice.speedup.short()}x{'' if choice.certain else '?'})"


def _fit(answer: ServedAnswer) -> Table:
    fit = answer.fit
    deviations = [math.sqrt(sum(each[i] ** 2 for each in fit.directions)) for i in range(len(TERMS))]
    rows: list[Row] = [
        [
            _OF_MANY.get(term, term),
            *(each * (1e9 if term in _OF_MANY else 1e6) for each in (value, fit.reach * deviation)),
        ]
        for term, value, deviation in zip(TERMS, fit.coefficients, deviations, strict=False)
        if value
    ]
    columns = [Column("time of", kind="words"), Column("microseconds", digits=3), Column("± (95%)", digits=3)]
    steps = [[f"a step of {tokens:g} tokens", 1e6 * seconds, None] for tokens, seconds in fit.stairs]
    worst = max((abs(error) for error in fit.left_out if not math.isnan(error)), default=math.nan)
    notes = [
        f"Residuals {100 * fit.error:.1f}% (standard deviation, {fit.freedom} degrees of freedom); each run predicted "
        f"from the others: at most {100 * worst:.1f}% off. Terms of 0 are left out.",
        _law(fit),
        *([_STAIRS] if fit.stairs else []),
    ]
    return Table("Time of a step of all sequences together", columns, [*steps, *rows], notes)


def _runs(answer: ServedAnswer) -> Table:
    fit = answer.fit
    rows: list[Row] = []
    for run, at, off in zip(answer.runs, fit.runs, fit.left_out, strict=True):
        row: list[Value] = [run.name, at.k, f"{at.batch:g}", run.in_flight, f"{at.context:.0f}", 1e3 * at.seconds]
        fitted = fit.seconds(at.batch, at.context, at.k).best
        rows.append([*row, 1e3 * fitted, None if math.isnan(off) else 100 * off])
    columns = [Column("run", kind="names"), Column("k"), Column("concurrency"), Column("decoding", digits=1)]
    columns += [Column("context"), Column("step, ms", digits=3), Column("fitted, ms", digits=3)]
    return Table("Runs", [*columns, Column("without it", "%", digits=1, signed=True)], rows)


def _tokens(answer: ServedAnswer) -> Table:
    counted: dict[int, list[tuple[float, float]]] = {}
    for run in answer.runs:
        if run.k and run.tokens_per_call:
            counted.setdefault(run.k, []).append((run.tokens_per_call, run.calls or 1))
    means = {k: sum(n * w for n, w in each) / sum(w for _, w in each) for k, each in counted.items()}
    columns = [
        Column("k"),
        Column("planned with", digits=3, at=lambda each: Cell(each.per_call, after="*" if each.reading else "")),
        Column("runs", digits=3, at=lambda each: means.get(each.k)),
    ]
    return Table.of("Tokens per call", columns, answer.tokens)


def _content(answer: ServedAnswer) -> ServedJson:
    fit = answer.fit
    return ServedJson.view(
        answer,
        answer.load,
        tokens_per_call={each.k: each.per_call for each in answer.tokens},
        fit=ServedJson.Fit.view(fit, terms=dict(zip(TERMS, fit.coefficients, strict=False))),
        runs=[
            ServedJson.Run.view(time, name=run.name, in_flight=run.in_flight)
            for run, time in zip(answer.runs, fit.runs, strict=True)
        ],
    )
