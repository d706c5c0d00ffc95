"""What an engine's counts say without its texts: a row per k, the best k, and what each number rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from spectheory.answers import Part
from spectheory.answers.counts import ComparisonJson, LogJson, LogsJson, ReadingsJson
from spectheory.intervals import Interval
from spectheory.judging.readings import BEYOND, FirstDraftGap, ReadingAtK, Readings, first_draft_gap
from spectheory.reports.base import Brief, Report
from spectheory.reports.brief import narrowed, point, range_words, short, sizes_shown, verdict
from spectheory.reports.remarks import NO_COST
from spectheory.reports.table import Cell, Column, Table

SERVE_LONGER = "Serve with a larger k to count it."
TOKENS = "Tokens per call count the recovered or bonus token."


def readings_report(logs: Mapping[str, Readings]) -> Report:
    """The readings of one log or several, by name; several are compared at position 1."""
    compared = {names: found for names in combinations(logs, 2) if (found := _compared(logs, names))}
    first = next(iter(logs.values()))
    comparisons = [
        ComparisonJson.view(found, logs=names, acceptance=[found.one, found.other]) for names, found in compared.items()
    ]
    content: Part = LogsJson(logs={name: _content(each) for name, each in logs.items()}, comparisons=comparisons)
    if len(logs) == 1:
        content = ReadingsJson.view(_content(first), comparisons=[])
    notes = [COLUMNS, TOKENS, *([NO_COST] if first.best is None else [])]
    notes += dict.fromkeys(
        line for each in logs.values() for line in each.assumptions if line != BEYOND or len(_shown(each)) > each.k
    )
    notes += [f"{name}: {line}" if len(logs) > 1 else line for name, each in logs.items() for line in _notes(each)]
    notes += [found.sentence(names) for names, found in compared.items()]
    headline = "; ".join(
        f"{name}: {_headline(each)}" if len(logs) > 1 else _headline(each) for name, each in logs.items()
    )
    pieces = [_table(*each) for each in logs.items()]
    return Report(content, pieces, headline, notes, _brief(logs))


def _brief(logs: Mapping[str, Readings]) -> Brief:
    """Each log's best k, and its rows up to two beyond it."""
    first = next(iter(logs.values()))
    lines = [f"{short(name)}: {_said(each)[0]}" for name, each in logs.items()] if len(logs) > 1 else _said(first)
    beyond = [f"and {len(logs) - 1} other logs: --all"] if len(logs) > 2 else []
    tables = [narrowed(_table(short(name, 30), each, brief=True)) for name, each in logs.items()]
    rising = dict.fromkeys(line for each in logs.values() for line in _rising(each))
    notes = [*([NO_COST] if first.best is None else []), *rising, *([SERVE_LONGER] if rising else [])]
    return Brief(verdict(*([*lines[:1], *beyond] if beyond else lines)), tables, notes)


def _said(found: Readings) -> list[str]:
    """The best k, and what was counted."""
    best, length = found.best, found.counters.length
    counted = "" if length is None else f"{length:.2f} tokens per call counted at k = {found.k}"
    if best is None or best.speedup is None:
        return [counted]
    pays = "Best" if best.speedup.best >= 1 else "No k pays; best"
    among = " up to the served k" if found.best_beyond else ""
    first = f"{pays}{among}: k = {best.k}: speed-up {point(best.speedup, 'x')} over plain decoding"
    return [first, "; ".join(filter(None, [range_words(best.speedup, "x"), counted]))]


def _compared(logs: Mapping[str, Readings], names: tuple[str, str]) -> FirstDraftGap | None:
    return first_draft_gap(*(logs[name].counters for name in names))


def _content(found: Readings) -> LogJson:
    counters, at = found.counters, found.best or found.counted
    return LogJson.view(
        counters,
        source="counts",
        counted_tokens_per_call=counters.length,
        rule=found.rule or None,
        shape=f"chain of {at.k}",
        tokens_per_call=at.tokens_per_call,
        accepted_length=at.tokens_per_call + -1.0,
        speedup=at.speedup,
        best=LogJson.Best(k=at.k, by="speedup" if at.speedup else "counted", basis=at.basis),
        best_beyond=found.best_beyond and found.best_beyond.k,
        noise=found.noise,
        rows=found.rows,
        remarks=[*counters.remarks, *counters.biases],
    )


def _headline(found: Readings) -> str:
    length, best = found.counters.length, found.best
    counted = "" if length is None else f"{length:.3f} tokens per call counted at k = {found.k}"
    if best is None or best.speedup is None:
        return counted
    if best.speedup.best < 1:
        return f"{counted}; no k pays: the best reading is {best.speedup}x at k = {best.k}"
    kind = "counted" if best.basis == "counted" else "a reading"
    return f"{counted}; best k = {best.k} ({kind}): speed-up {best.speedup}x, {best.tokens_per_call} tokens per call"


def _shown(found: Readings) -> tuple[ReadingAtK, ...]:
    """Rows up to the engine's k, and beyond it up to the best."""
    return found.rows[: max(found.k, found.best_beyond.k if found.best_beyond else 0)]


def _table(name: str, found: Readings, *, brief: bool = False) -> Table:
    rows = _shown(found)
    if brief and found.best:
        sizes = sizes_shown((row.k for row in rows), found.best.k)
        rows = tuple(row for row in rows if row.k in sizes)
    known = any(row.first_choices for row in rows)
    columns = [
        Column("k"),
        Column("accepted at k", digits=3),
        Column("hazard", digits=3),
        Column("tokens per call", digits=3),
        *([Column("first choices", digits=3)] if known else []),
        *([Column("speed-up", "x", digits=3)] if found.best else []),
        Column("rests on", kind="words"),
    ]
    cells = [_cells(row, found, known) for row in rows]
    engine = " ".join(filter(None, (found.counters.engine, found.counters.version))) or name
    return Table(f"{name}: counts of {engine}" if engine != name else f"Counts of {engine}", columns, cells)


COLUMNS = (
    "accepted at k: share of calls that accepted at least k tokens. hazard: that share over the one of k - 1. "
    "tokens per call: of chains of k drafts. rests on: counted at this k, or read for a shorter or longer one, where "
    "ranges hold the readings and the error of counting."
)
"""What the columns mean."""
RESTS_ON = {
    "counted": "counted",
    "drafted so far": "drafted so far",
    "own starts": "shorter k",
    "constant hazard": "longer k",
}


def _cells(row: ReadingAtK, found: Readings, known: bool) -> Sequence[Cell | Interval | float | int | str | None]:
    return [
        row.k,
        row.survival,
        row.hazard,
        Cell(row.tokens_per_call, best=row is found.best),
        *([row.first_choices] if known else []),
        *([Cell(row.speedup, best=row is found.best)] if found.best else []),
        RESTS_ON[row.basis],
    ]


def _notes(found: Readings) -> list[str]:
    return [*_rising(found), *found.counters.remarks, *found.counters.biases]


def _rising(found: Readings) -> list[str]:
    """That a longer chain than the engine's may be faster."""
    if (beyond := found.best_beyond) is None:
        return []
    return [f"With matches as likely further on, k = {beyond.k} would give {beyond.speedup}x: not counted."]
