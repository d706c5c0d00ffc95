"""Why a run is no faster: the time of a call in plain steps, its parts, and the causes."""

from __future__ import annotations

from collections.abc import Iterator

from spectheory.answers.judged import WhyJson
from spectheory.intervals import Interval
from spectheory.judging.slow.case import quotient
from spectheory.judging.slow.why import Why
from spectheory.reports.base import Brief, Report
from spectheory.reports.table import Column, Table

_ROUNDED = "Numbers that were given are known to half a unit of their last digit."
_EXPECTED = "Acceptance is as expected"
_STEP = "A plain step is the time of one token of every sequence without drafts, at the same load."
_WITHOUT = "Without a cause: the speed-up if a call did not take these plain steps, all else as it is."
_WHOLE = "Whole requests are {:.2f}x as fast, decoding alone {:.2f}x: a call is compared with plain steps."
_ONE_RUN = "Speed-ups are of one run each, whose error is not known: an estimate."


def why_report(answer: Why) -> Report:
    """What a call costs and why, in sentences and tables."""
    case, lines = answer.case, list(_lines(answer))
    rates = [(what, tokens, quotient(tokens, case.speedup)) for what, tokens in answer.rate_readings]
    content = WhyJson.view(
        answer,
        expected=case.difference.tokens.one if case.difference else None,
        whole=case.whole,
        rate_readings=[WhyJson.OfRate(meaning=what, tokens_per_call=tokens, call=call) for what, tokens, call in rates],
    )
    first = [_shares(answer), *([_causes(answer)] if answer.causes else [])]
    tables = [*first, *([_rates(rates)] if rates else []), *([_pairs(answer)] if len(answer.pairs) > 1 else [])]
    whole = [_WHOLE.format(case.whole.best, case.speedup.best)] if case.whole else []
    notes = [_STEP, _WITHOUT, *whole, *([_ONE_RUN] if answer.pairs else [_ROUNDED])]
    said = [f"{each.cause}: {each.sentence}." for each in answer.causes]
    return Report(
        content, tables, "; ".join(lines), [*said, *notes], Brief.of(lines, [*first, *tables[len(first) :][:1]], said)
    )


def _lines(answer: Why) -> Iterator[str]:
    """What a call costs, then the first cause, then of which run."""
    case = answer.case
    parts = ", ".join(f"{share.name.partition(' ')[0]} {_steps(share.steps.best)}" for share in answer.shares[:-1])
    yield f"A call takes {case.call.best:.2f} plain steps: {parts}, the rest {_steps(answer.shares[-1].steps.best)}"
    if answer.as_expected:
        yield _EXPECTED
    if answer.causes:
        first = answer.causes[0]
        now = first.before or case.speedup
        gain = f", {now.short()}x would be {first.without.short()}x" if first.without else ""
        yield f"{'Without' if gain else 'First,'} {first.cause}{gain}"
    elif case.drafting is None and case.matters(case.rest):
        yield "The rest is unknown: --c, --latency or --hardware explain drafting and verifying"
    else:
        yield f"No cause takes a tenth: {case.speedup.short()}x is what these numbers give"
    if case.pair:
        run = case.pair.drafted
        load = f"concurrency {run.batch} and {run.context:.0f} cached tokens"
        yield f"Run {run.name or run.engine} at {load}, of {len(answer.pairs)} with drafts"


def _steps(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"


def _shares(answer: Why) -> Table:
    columns = [
        Column("part", kind="words", at="name", meaning="what a call's time goes to"),
        Column("plain steps", at="steps", meaning="time in plain steps at the same load"),
        Column("from", kind="words", at="source", meaning="where it is known from"),
    ]
    whole = {"name": "a call", "steps": answer.case.call, "source": "tokens per call / speed-up"}
    return Table.of("Time of a call", columns, [whole, *map(vars, answer.shares)])


def _causes(answer: Why) -> Table:
    columns = [
        Column("cause", kind="words", meaning="what takes the time, or makes the numbers doubtful"),
        Column("plain steps", at="steps", meaning="of a call"),
        Column("speed-up without it", "x", at="without", meaning="all else as it is"),
    ]
    return Table.of("Causes, the largest first", columns, answer.causes)


def _rates(rates: list[tuple[str, Interval, Interval]]) -> Table:
    columns = [
        Column(
            "if the rate is", kind="words", at=lambda row: row[0], meaning="a way in which engines count acceptance"
        ),
        Column("tokens per call", at=lambda row: row[1]),
        Column("plain steps of a call", at=lambda row: row[2], meaning="these tokens over the speed-up"),
    ]
    note = "Output tokens over calls are tokens per call in every convention."
    return Table.of("What an acceptance rate may mean", columns, rates, [note])


def _pairs(answer: Why) -> Table:
    columns = [
        Column("run", kind="names", at="drafted.name", meaning="the run with drafts"),
        Column("k", at="drafted.k"),
        Column("concurrency", at="drafted.batch"),
        Column("context", digits=0, at="drafted.context", meaning="mean cached tokens"),
        Column("tokens per call", at="tokens"),
        Column("speed-up", "x", at="speedup", meaning="of decoding"),
        Column("plain steps of a call", at="ratio", meaning="time of a call over that of a plain step"),
    ]
    return Table.of("Timed runs", columns, answer.pairs)
