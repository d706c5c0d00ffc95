"""``spectheory watch``: a running server's acceptance against what is expected of it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from spectheory.answers import plain
from spectheory.checks import in_range
from spectheory.cli.answer import show
from spectheory.cli.console import answers, ready_folder, remark
from spectheory.cli.inputs import checked_rules, read_latencies
from spectheory.cli.interrupts import Interrupted
from spectheory.cli.options import WatchOptions
from spectheory.cli.predict import LONGEST_CHAIN
from spectheory.cli.statuses import Status
from spectheory.cost import ConstantRatio, CostModel
from spectheory.errors import EngineError, OutputError, SettingError
from spectheory.judging.watching import Alarm, Watch, Watched
from spectheory.reports.watching import (
    BY_POSITION,
    GAUGES,
    alarm_line,
    watch_content,
    watch_heading,
    watch_line,
    watch_report,
)
from spectheory.store import Store
from spectheory.trace.counters import COUNTERS_FILE, Counters
from spectheory.trace.scrapes import SCRAPES, SCRAPES_FILE, Scraper, fingerprint, of_row, row_of

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def run_watch(question: WatchOptions) -> int:
    """Watch until the end that is asked for, an alarm that ends it, or an interruption."""
    in_range("--k", question.k, LONGEST_CHAIN)
    checked_rules([question.rule])
    interval, window = _seconds("--interval", question.interval), _seconds("--window", question.window)
    length = None if question.duration is None else _seconds("--for", question.duration)
    if window < interval:
        raise SettingError(
            f"--window {question.window} is shorter than --interval {question.interval}",
            limit="a window holds the calls between two scrapes",
            remedy="lengthen the window",
        )
    if question.once and length is not None:
        raise SettingError("--once and --for are both given", limit="either ends the watch", remedy="leave one out")
    watch = Watch(
        question.expect,
        rate=question.false_alarms_per_day,
        window=window,
        rule=question.rule,
        k=question.k,
        cost=_cost(question),
        name=str(question.expect),
    )
    with ExitStack() as stack:
        session = _Session(question, watch, Scraper(question.url, question.model))
        if question.out:
            session.keep_in(stack, question.out)
        if question.listen:
            stack.enter_context(_exporting(session, question.listen))
        try:
            alarmed = session.run(interval, 0.0 if question.once else length)
        except KeyboardInterrupt:
            session.summarise()
            raise Interrupted(session.kept) from None
        session.summarise()
    return Status.DISAGREEMENT if alarmed and question.exit_on_alarm else Status.DONE


def _seconds(name: str, written: str) -> float:
    """A length of time as 90, 90s, 10m, 2h or 1d, in seconds."""
    known = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([smhd]?)", written.strip().casefold())
    seconds = float(known[1]) * _UNITS[known[2]] if known else 0.0
    if seconds <= 0:
        raise SettingError(
            f"{name} is {written}", limit="needs a length of time > 0", remedy="write 90s, 10m, 2h or 1d"
        )
    return seconds


def _cost(question: WatchOptions) -> CostModel | None:
    if question.c is not None and question.latency:
        raise SettingError("--c and --latency are both given", limit="one cost model", remedy="leave one out")
    if question.c is not None:
        return ConstantRatio(question.c)
    return read_latencies(question.latency, {}).looped if question.latency else None


@dataclass
class _Session:
    """A watch that runs: `seen` is what is known last."""

    question: WatchOptions
    watch: Watch
    scraper: Scraper
    store: Store | None = None
    seen: Watched | None = None
    scrapes: int = 0
    failing: bool = field(default=False, init=False)

    @property
    def kept(self) -> str:
        """What an interruption leaves."""
        if self.store is None:
            return "nothing was kept (--out FOLDER keeps every scrape)"
        return f"all scrapes are kept; the same command continues from {self.store.path.parent}"

    def keep_in(self, stack: ExitStack, folder: Path) -> None:
        """Keep scrapes in a folder, and continue from those that it has."""
        asked = self.question
        mark = fingerprint(self.scraper.url, asked.model, asked.expect, asked.rule)
        path = ready_folder(folder) / SCRAPES_FILE
        self.store = stack.enter_context(Store(path, SCRAPES, {"fingerprint": mark, "server": self.scraper.url}))
        for row in self.store.earlier:
            self.watch.add(*of_row(row.content))
            self.scrapes += 1
        self.seen = self.watch.seen()
        if self.scrapes:
            remark(f"continues after {self.scrapes} scrapes in {path}")

    def run(self, interval: float, length: float | None) -> bool:
        """Scrape until `length` seconds passed; whether there was an alarm, with which it ends if asked to.

        Turns that a slow scrape misses are left out.
        """
        begun, alarmed, turn = time.monotonic(), False, 0
        if self.question.once and not self.scrapes:
            self.add(time.time(), Counters(calls=0, accepted=0))  # counts from the server's start
        while True:
            alarmed |= self.scrape(first=turn == 0) is not None
            turn = int((time.monotonic() - begun) / interval) + 1
            if (alarmed and self.question.exit_on_alarm) or (length is not None and turn * interval > length):
                return alarmed
            time.sleep(max(begun + turn * interval - time.monotonic(), 0.0))

    def scrape(self, *, first: bool) -> Alarm | None:
        """One scrape and its line; a server that does not answer is tried again, but for the first time."""
        try:
            counters = self.scraper.scrape()
        except EngineError as error:
            if first:
                raise
            if not self.failing:
                remark(f"{error}; tried again at each scrape")
            self.failing = True
            return None
        self.failing = False
        new, now = self.seen is None or first, time.time()
        alarm = self.add(now, counters)
        self._show(now, new=new)
        if alarm is not None:
            self._alarm(alarm)
        return alarm

    def add(self, now: float, counters: Counters) -> Alarm | None:
        """Weigh a scrape, and keep it if its numbers can be used."""
        alarm = self.watch.add(now, counters)
        if self.store:
            self.store.add(row_of(now, counters))
        self.scrapes += 1
        self.seen = self.watch.seen()
        return alarm

    def _show(self, now: float, *, new: bool) -> None:
        if self.question.json:
            print(json.dumps(plain(watch_content(self.seen, self.scrapes, now)), allow_nan=False), flush=True)
        elif self.question.once:
            pass
        elif self.seen is None:
            remark("the server has not drafted yet; a watch needs its first call")
        else:
            heading = watch_heading(self.seen, self.scraper.url, str(self.question.expect)) if new else []
            for line in (*heading, watch_line(self.seen)):
                answers.print(line, highlight=False, markup=False)

    def _alarm(self, alarm: Alarm) -> None:
        then = f"scrape twice, import both, and spectheory compare {self.question.expect} FOLDER"
        if self.store:
            folder = self.store.path.parent / f"alarm-{datetime.fromtimestamp(alarm.time):%Y%m%d-%H%M%S}"
            self.watch.since(alarm.since).write(ready_folder(folder) / COUNTERS_FILE)
            then = f"spectheory compare {self.question.expect} {folder}"
        line = alarm_line(alarm, then)
        if self.question.json:
            remark(line)
        else:
            answers.print(line, style="bold", highlight=False, markup=False)

    def summarise(self) -> None:
        """The summary, where there is something to say and no program reads."""
        if self.seen is None:
            remark("no calls were counted")
        elif not self.question.json:
            show(watch_report(self.seen), self.question)


@contextmanager
def _exporting(session: _Session, listen: str) -> Iterator[None]:
    """Serve what is known last to Prometheus, at PORT of this machine or at HOST:PORT."""
    from prometheus_client import CollectorRegistry, start_http_server
    from prometheus_client.core import GaugeMetricFamily

    host, _, port = listen.rpartition(":")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
        raise SettingError(
            f"--listen is {listen}", limit="needs a port in 1..65535", remedy="write 9400 or 0.0.0.0:9400"
        )

    class Collector:
        def collect(self) -> Iterator[Any]:
            """Every gauge that has a value."""
            seen = session.seen
            if seen is None:
                return
            for name, meaning, read in GAUGES:
                value = read(seen)
                if value is not None:
                    yield GaugeMetricFamily(f"spectheory_{name}", meaning, value=value)
            for name, meaning, key in BY_POSITION:
                family = GaugeMetricFamily(f"spectheory_{name}", meaning, labels=["position"])
                for i, share in enumerate(seen.shares[1:]):
                    if getattr(share, key) is not None:
                        family.add_metric([str(i)], getattr(share, key))
                yield family

    registry = CollectorRegistry()
    registry.register(Collector())
    try:
        server, _ = start_http_server(int(port), addr=host or "127.0.0.1", registry=registry)
    except OSError as error:
        raise OutputError(
            f"--listen {listen} cannot be opened ({error.strerror or error})",
            limit="needs a free port",
            remedy="name another",
        ) from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
