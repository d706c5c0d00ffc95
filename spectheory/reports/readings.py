"""What a log holds when it is imported, and what an engine's counts say without its texts: a row per k, the best k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from spectheory.answers import Part
from spectheory.answers.counts import ComparisonJson, ImportJson, LogJson, LogsJson, ReadingsJson
from spectheory.judging.readings import ReadingAtK, Readings, first_draft_gap
from spectheory.judging.several_k import Together
from spectheory.reports.base import Brief, Report, given_ratio, point, range_words, short, sizes_shown
from spectheory.reports.load import load_sentence, load_tables, missed, roofline_words, room_words
from spectheory.reports.notes import NO_COST, ROOFLINE_ERROR, guessed_notes
from spectheory.reports.table import Cell, Column, Table
from spectheory.trace.calls import CallLog
from spectheory.trace.counters import Counters, pooled
from spectheory.trace.importers import Format
from spectheory.trace.reading import Whole
from spectheory.trace.record import Trace
from spectheory.trace.text_info import LEFT_OUT
from spectheory.verification import PATH_RULES

_TOKENS = "Tokens per call count the recovered or bonus token."


def readings_report(logs: Mapping[str, Readings], joint: Together | None = None) -> Report:
    """The readings of one log or several, by name; several are compared at position 1, and read `joint` if they can."""
    several, first = len(logs) > 1, next(iter(logs.values()))
    compared = {
        names: gap
        for names in combinations(logs, 2)
        if (gap := first_draft_gap(*(logs[name].counters for name in names)))
    }
    comparisons = [
        ComparisonJson.view(gap, logs=names, acceptance=[gap.one, gap.other]) for names, gap in compared.items()
    ]
    content: Part = ReadingsJson.view(_content(first), comparisons=[])
    if several:
        each_log = {name: _content(each) for name, each in logs.items()}
        content = LogsJson.view(logs=each_log, comparisons=comparisons, together=joint)
    of = {name: f"{name}: " if several else "" for name in logs}
    assumed = dict.fromkeys(line for each in logs.values() for line in each.assumptions)
    notes = [
        _COLUMNS,
        _TOKENS,
        *([NO_COST] if first.best is None else guessed_notes(first.guessed)),
        *([ROOFLINE_ERROR] if first.load else []),
        *assumed,
        *(
            f"{of[name]}{line}"
            for name, each in logs.items()
            for line in [*_rising(each), *each.counters.remarks, *each.counters.biases]
        ),
        *(gap.sentence(names) for names, gap in compared.items()),
    ]
    each_said = (f"{of[name]}{'; '.join(filter(None, _said(each)))}" for name, each in logs.items())
    tables = [*([_together_table(joint)] if joint else []), *(_table(*each) for each in logs.items()), *_loaded(logs)]
    notes += [_TOGETHER] if joint else []
    return Report(content, tables, "; ".join([*_together_lines(joint), *each_said]), notes, _brief(logs, joint))


_TOGETHER = (
    "Together: counts at several k say where each k lies between two readings, matches that renew at every miss "
    "(weight 0) and the same shares summed (1). An estimate; ranges are the 95% error of counting and of the reading, "
    "a lower bound for totals without prompts. It is for draft models, not for heads whose later drafts are worse. "
    "On the built-in pair it misses by up to 0.8% between the counted k."
)


def _together_lines(joint: Together | None) -> list[str]:
    """The best k of all counts together, and a warning where they do not fit each other."""
    if joint is None:
        return []
    counted = f"k = {' and '.join(map(str, joint.ks))}"
    if joint.doubtful:
        return [f"The counts at {counted} do not look like one draft model under one setting"]
    best = joint.best
    if best is None or best.speedup is None:
        return [f"Counts at {counted}, read together"]
    pays = "best" if best.speedup.best >= 1 else "no k pays; best"
    return [f"Counts at {counted} together: {pays} k = {best.k}: speed-up {best.speedup.best:.2f}x over plain decoding"]


def _together_table(joint: Together) -> Table:
    columns = [
        Column("k"),
        Column("tokens per call", digits=3, at="tokens_per_call", meaning="from all counts, with their error"),
        Column(f"from k = {joint.ks[-1]} alone", digits=3, at="alone", aside=True, meaning="from the longest k alone"),
        *([Column("speed-up", "x", digits=3, at="speedup")] if joint.best else []),
        Column("counted", kind="words", at=lambda row: "counted" if row.counted else ""),
    ]
    return Table.of("All counts together", columns, joint.rows, best=joint.best)


def _brief(logs: Mapping[str, Readings], joint: Together | None) -> Brief:
    """Each log's best k, and its rows up to two beyond it; of logs that are read together that reading alone."""
    if joint is not None and not joint.doubtful:
        costs = [] if joint.best else [NO_COST]
        return Brief.of(_together_lines(joint), [_together_table(joint)], [*costs, _TOGETHER])
    first = next(iter(logs.values()))
    lines = [f"{short(name)}: {_said(each)[0]}" for name, each in logs.items()] if len(logs) > 1 else _said(first)
    beyond = [f"and {len(logs) - 1} other logs: --all"] if len(logs) > 2 else []
    tables = [_table(short(name, 30), each, brief=True) for name, each in logs.items()]
    rising = dict.fromkeys(line for each in logs.values() for line in _rising(each))
    costs = [NO_COST] if first.best is None else guessed_notes(first.guessed)
    last = _last_notes(first) if len(logs) == 1 else []
    tables += _loaded(logs, brief=True)
    return Brief.of([*lines[:1], *beyond] if beyond else lines, tables, [*costs, *rising, *last])


def _loaded(logs: Mapping[str, Readings], *, brief: bool = False) -> list[Table]:
    """What each log's chains give under a load."""
    loads = {short(name): each.load for name, each in logs.items() if each.load}
    return [table for name, load in loads.items() for table in load_tables(load, name, brief=brief)]


def _last_notes(log: Readings) -> list[str]:
    """Why a server is no faster, and what to do next."""
    best, served = log.best, log.counted
    accepted = f"{log.rows[0].survival.best:.0%} of calls accept the first draft"
    all_of_them = f", {served.survival.best:.0%} all {served.k}" if served.k > 1 else ""
    if log.counters.length is not None and not log.counters.survival:
        accepted, all_of_them = f"{log.counters.length - 1:.2f} of {served.k} drafts are accepted in a call", ""
    drafting = f"; a draft step takes {log.c:g} target steps" if log.c else ""
    steps = [
        *([f"serve with k above {log.k}, the largest that was counted"] if best and best.k == log.k else []),
        *(["time the pair in place of a guessed c: spectheory measure"] if log.c else []),
        "other rules and engines need a trace of the pair: spectheory predict --target TARGET --draft DRAFT",
    ]
    return [f"Why not more: {accepted}{all_of_them}{drafting}.", f"Next: {'; '.join(steps[:2])}."]


def _said(log: Readings) -> list[str]:
    """The best k, and what was counted."""
    best, length = log.best, log.counters.length
    read_as = [f"Read as counts under {PATH_RULES[log.rule].label}; other rules need a trace"] if log.rule else []
    counted = "" if length is None else f"{length:.2f} tokens per call counted at k = {log.k}"
    if best is None or best.speedup is None:
        return [counted, *read_as]
    pays = "No k pays; best" if best.speedup.best <= 1 else "Pays" if best.speedup.low > 1 else "May pay"
    pays = "Pays if drafts are free" if log.free and best.speedup.best > 1 else pays
    beyond = f" (k above {log.k} not counted)" if log.best_beyond else ""
    first = f"{pays}: k = {best.k}{beyond}: speed-up {point(best.speedup, 'x')} over plain decoding"
    if log.c:
        known = given_ratio(log.c, best.speedup, log.noise)
        counted = f"counted {length:.2f} at k = {log.k}" if length is not None else ""
    else:
        known = roofline_words(best.speedup) if log.load else range_words(best.speedup, "x")
    if log.free:
        known = f"{known}; name the draft: --draft-architecture"
        counted = ""
    room, goodput = room_words(log.load), load_sentence(log.load)
    if log.load and not log.load.fits:
        return [room, *filter(None, [goodput, counted]), *read_as]
    first_lines = [room, goodput, first] if missed(log.load) else [room, first, goodput]
    said = "; ".join(filter(None, [known, counted]))
    return [*filter(None, first_lines), said, *_over_served(log, best), *read_as]


def _over_served(log: Readings, best: ReadingAtK) -> list[str]:
    """What the best k gains on the one that was served, and which others are as likely the best."""
    served, rows = log.counted.speedup, log.rows[: log.k]
    if best.speedup is None or served is None or best.k == log.k or log.counters.lengths:
        return []
    near = [row.k for row in rows if row.speedup and row.speedup.best >= best.speedup.low]
    gain = f"{best.speedup.best / served.best - 1:+.0%} over k = {log.k} as served ({point(served, 'x')})"
    return [f"{gain}; k = {min(near)}..{max(near)} lie within its range" if len(near) > 1 else gain]


def _content(log: Readings) -> LogJson:
    counters, at = log.counters, log.best or log.counted
    return LogJson.view(
        counters,
        log.load,
        source="counts",
        counted_tokens_per_call=counters.length,
        rule=log.rule or None,
        shape=f"chain of {at.k}",
        tokens_per_call=at.tokens_per_call,
        accepted_length=at.tokens_per_call + -1.0,
        speedup=at.speedup,
        best=LogJson.Best(k=at.k, by="speedup" if at.speedup else "counted", basis=at.basis),
        best_beyond=log.best_beyond and log.best_beyond.k,
        guessed=log.guessed,
        noise=log.noise,
        rows=log.rows,
        remarks=[*counters.remarks, *counters.biases],
    )


def _shown(log: Readings) -> tuple[ReadingAtK, ...]:
    """Some rows up to the engine's k, and beyond it up to the best; of means at several k without costs, of every k."""
    beyond = log.best_beyond.k if log.best_beyond else 0
    rows = log.rows if log.counters.lengths and log.best is None else log.rows[: max(log.k, beyond)]
    if log.best is None and not log.counters.lengths:
        return rows
    sizes = {*sizes_shown((row.k for row in rows), (log.best or log.counted).k), log.k}
    return tuple(row for row in rows if row.k in sizes)


def _table(name: str, log: Readings, *, brief: bool = False) -> Table:
    rows = _shown(log) if brief else log.rows
    columns = [
        Column("k"),
        Column("accepted at k", digits=3, at="survival"),
        Column("of those\nbefore", digits=3, at="hazard"),
        Column("tokens per call", digits=3, at=lambda row: Cell(row.tokens_per_call, best=row is log.best)),
        *([Column("first choices", digits=3)] if any(row.first_choices for row in rows) else []),
        *(
            [Column("speed-up", "x", digits=3, at=lambda row: Cell(row.speedup, best=row is log.best))]
            if log.best
            else []
        ),
        Column("read from", kind="words", at=lambda row: _READ_FROM[row.basis]),
    ]
    engine = " ".join(filter(None, (log.counters.engine, log.counters.version))) or name
    return Table.of(f"{name}: counts of {engine}" if engine != name else f"Counts of {engine}", columns, rows)


_COLUMNS = (
    "accepted at k: share of calls that accepted at least k tokens. of those before: that share over the one of k - 1. "
    "tokens per call: of chains of k drafts. read from: the counts of this k, or those of a shorter or longer one, "
    "where ranges hold the readings and the error of counting."
)
"""What the columns mean."""
_READ_FROM = {
    "counted": "counted",
    "drafted so far": "drafted so far",
    "own starts": "shorter k",
    "constant hazard": "longer k",
}


def _rising(log: Readings) -> list[str]:
    """That a longer chain than the engine's may be faster."""
    if (beyond := log.best_beyond) is None:
        return []
    return [f"With matches as likely further on, k = {beyond.k} would give {beyond.speedup}x: not counted."]


# What is imported


def import_report(evidence: Whole, formats: Sequence[Format], written: Path) -> Report:
    """What was imported from files of these formats, and where it was written."""
    names = ", ".join(dict.fromkeys(each.name for each in formats))
    facts, table, remarks = _held(evidence)
    lacks = [f"Does not follow: {each.lacks}." for each in dict.fromkeys(formats) if each.lacks]
    gives = [f"Follows: {each.gives}." for each in dict.fromkeys(formats) if each.gives]
    steps = _next(evidence, written.parent)
    content = ImportJson.view(
        facts,
        format=names,
        kind=type(evidence).__name__.lower(),
        gives=gives,
        lacks=lacks,
        remarks=remarks,
        written=str(written),
        next=steps,
    )
    said = ", ".join(f"{name} {value}" for name, value in facts.items() if value not in (None, "", [], ()))
    notes = [*gives, *lacks, *remarks, f"Written: {written}." + (f" Next: {'; '.join(steps)}." if steps else "")]
    return Report(content, [table] if table else [], f"{names}: {said}", notes)


def _held(evidence: Whole) -> tuple[dict[str, Any], Table | None, list[str]]:
    """Facts in words and numbers, a table of positions, and remarks."""
    if isinstance(evidence, Trace):
        left_out = evidence.provenance.get(LEFT_OUT)
        of = {"requests left out": left_out} if left_out else {}
        columns = sorted(evidence.columns)
        return {"texts": len(evidence.texts), **of, "tokens": len(evidence), "columns": columns}, None, []
    counters = pooled(evidence)
    length = counters.length
    facts: dict[str, Any] = {"engine": counters.engine, "version": counters.version}
    if isinstance(evidence, CallLog):
        facts |= {"requests": len(evidence), "with token ids": sum(bool(each.output) for each in evidence.requests)}
        facts |= {"temperature": evidence.temperature}
    facts |= {name: getattr(counters, name) for name in ("k", "calls", "drafted", "accepted", "tokens")}
    facts["tokens per call"] = None if length is None else round(length, 4)
    table = _positions(counters) if counters.survival else None
    return facts, table, [*counters.remarks, *counters.biases]


def _positions(counters: Counters) -> Table:
    above = (1.0, *counters.survival)
    rows = [
        [i, None if counters.calls is None else round(share * counters.calls), share, share / over if over else None]
        for i, (share, over) in enumerate(zip(counters.survival, above, strict=False), 1)
    ]
    shares = [Column("share of calls", digits=3), Column("of those before", digits=3)]
    columns = [Column("position"), Column("accepted"), *shares]
    note = "of those before: the share over that of the position before."
    return Table("Accepted by position", columns, rows, (note,))


def _next(evidence: Whole, folder: Path) -> list[str]:
    if isinstance(evidence, Trace):
        return [f"spectheory predict {folder}"]
    texts = isinstance(evidence, CallLog) and all(each.output and each.prompt for each in evidence.requests)
    judge = [f"spectheory judge {folder} --target TARGET --draft DRAFT"] if texts else []
    unknown = isinstance(evidence, Counters) and evidence.length is None
    return [*judge, *([] if unknown else [f"spectheory predict {folder} --c RATIO"])]
