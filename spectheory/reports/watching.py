"""A watched server in words: a line for each scrape, the line of an alarm, and the summary at the end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from spectheory.answers.judged import WatchJson
from spectheory.judging.watching import Alarm, Watched
from spectheory.reports.base import WIDTH, Brief, Report
from spectheory.reports.table import Column, Table

_POSITIONS = 5
"""Positions in a line."""


def _span(seconds: float) -> str:
    """A length of time in its largest whole unit.

    Examples
    --------
    >>> _span(3600), _span(90), _span(86400)
    ('1 h', '90 s', '1 d')
    """
    units = (("d", 86400), ("h", 3600), ("min", 60))
    return next((f"{seconds / size:g} {name}" for name, size in units if seconds % size == 0), f"{seconds:g} s")


def _clock(time: float) -> str:
    """A time of the epoch, in this machine's zone."""
    return f"{datetime.fromtimestamp(time):%Y-%m-%d %H:%M:%S}"


def watch_heading(seen: Watched, url: str, expect: str) -> list[str]:
    """What is watched against what, and the heading of the lines that follow."""
    tokens = seen.tokens
    assert tokens.expected is not None
    assert tokens.least is not None
    return [
        f"{url}: {seen.engine}, k = {seen.k}",
        f"Expected {tokens.expected:.2f} tokens per call, at least {tokens.least:.2f} ({expect})",
        f"Alarm at evidence 100%; at most {1 / seen.threshold:g} false alarms a day. Last {_span(seen.window)}:",
        _cells("time", "calls", "tokens/call", "accepted by position", "best k", "evidence"),
    ]


def watch_line(seen: Watched) -> str:
    """A scrape in a line of at most 80 letters."""
    shares = [f"{share.window:.2f}" for share in seen.shares if share.window is not None]
    share = seen.evidence / seen.threshold
    evidence = f"learn {seen.learning}" if seen.learning else f"{share:.1%}" if share >= 0.001 else "<0.1%"
    more = " .." if len(shares) > _POSITIONS + 1 else ""
    return _cells(
        f"{datetime.fromtimestamp(seen.time):%H:%M:%S}",
        str(seen.window_calls),
        shares[0] if shares else "-",
        " ".join(shares[1 : _POSITIONS + 1]) + more or "-",
        str(seen.best.k) if seen.best else "-",
        "ALARM" if seen.alarming else evidence,
    )


def _cells(time: str, calls: str, tokens: str, positions: str, best: str, evidence: str) -> str:
    return f"{time:8}  {calls:>9}  {tokens:>11}  {positions:27}  {best:>6}  {evidence:>8}".rstrip()[:WIDTH]


def alarm_line(alarm: Alarm, then: str) -> str:
    """When, what fell, and what to do next."""
    return (
        f"ALARM {_clock(alarm.time)}: acceptance fell, most at {alarm.what}: {alarm.counted:.3f} in {alarm.calls} "
        f"calls since {_clock(alarm.since)}, expected {alarm.expected:.3f} (at least {alarm.least:.3f}). Next: {then}"
    )


def watch_content(seen: Watched | None, scrapes: int, time: float) -> WatchJson:
    """A scrape as a JSON object."""
    if seen is None:
        return WatchJson(time=time, state="waiting", scrapes=scrapes)
    best = WatchJson.Best.view(seen.best) if seen.best else None
    return WatchJson.view(seen, state=seen.state, best=best)


def watch_report(seen: Watched) -> Report:
    """What was counted since the start and of late, beside what is expected."""
    value = seen.tokens.since_start
    said = "no calls" if value is None else f"{value:.2f} tokens per call"
    alarms = "not tested yet" if seen.learning else "no alarm"
    if seen.alarms:
        alarms = f"{len(seen.alarms)} alarm{'s' * (len(seen.alarms) != 1)}"
    lines = [
        f"{said} since the start, expected {seen.tokens.expected:.2f} (at least {seen.tokens.least:.2f}): {alarms}",
        f"{seen.calls} calls at k = {seen.k} in {seen.scrapes} scrape{'s' * (seen.scrapes != 1)} "
        f"of {seen.engine or 'the server'}" + (f", restarted {seen.restarts} times" if seen.restarts else ""),
    ]
    columns = [
        Column("what", kind="words", meaning="tokens per call, and the share of calls that accepted a position"),
        Column("expected", digits=3),
        Column("at least", digits=3, at="least", meaning="lower end of what is expected (one-sided, 99%)"),
        Column("since start", digits=3, at="since_start", meaning="counted since the watch began"),
        Column(f"last {_span(seen.window)}", digits=3, at="window", meaning="counted in the window"),
    ]
    table = Table.of("Counted and expected", columns, seen.shares)
    learning = (
        f"The test learns the noise from {seen.learning} more scrapes with calls; spectheory gate tests counts at once."
    )
    notes = [
        *([learning] if seen.learning else []),
        *([f"Best k now: {seen.best.k}, {seen.best.speedup} times plain decoding."] if seen.best else []),
        *(f"Alarm {_clock(a.time)}: {a.what} {a.counted:.3f} since {_clock(a.since)}." for a in seen.alarms),
    ]
    content = watch_content(seen, seen.scrapes, seen.time)
    return Report(content, [table], ". ".join(lines) + ".", notes, Brief.of(lines, [table], notes))


_Gauge = tuple[str, str, Callable[[Watched], float | None]]
GAUGES: tuple[_Gauge, ...] = (
    ("tokens_per_call", "Tokens per call in the window.", lambda seen: seen.tokens.window),
    ("expected_tokens_per_call", "Tokens per call that are expected.", lambda seen: seen.tokens.expected),
    ("least_tokens_per_call", "Lower end of the expected ones (99%).", lambda seen: seen.tokens.least),
    ("window_calls", "Calls in the window.", lambda seen: seen.window_calls),
    ("best_k", "Fastest k by the counts of the window.", lambda seen: seen.best.k if seen.best else None),
    ("evidence", "Evidence of a fall, in days (e-detector).", lambda seen: seen.evidence),
    ("evidence_threshold", "Evidence that raises an alarm.", lambda seen: seen.threshold),
    ("alarm", "1 from an alarm on for one window.", lambda seen: float(seen.alarming)),
    ("alarms", "Alarms since the watch began.", lambda seen: len(seen.alarms)),
    ("learning_scrapes", "Scrapes until the test begins.", lambda seen: seen.learning),
    ("last_scrape_timestamp_seconds", "Time of the last scrape.", lambda seen: seen.time),
)
"""What a watch exports to Prometheus, each after ``spectheory_``."""
BY_POSITION: tuple[tuple[str, str, str], ...] = (
    ("survival", "Share of calls in the window that accepted this position, counted from 0.", "window"),
    ("expected_survival", "The share that is expected.", "expected"),
    ("survival_since_start", "The share since the watch began.", "since_start"),
)
"""The same by position, with a label from 0 on as in engines' counters: the attribute of a share."""
