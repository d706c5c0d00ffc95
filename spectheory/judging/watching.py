"""Watch a server's counters: acceptance since the start and of late, the best k, and an alarm when acceptance falls."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.checks import amount, real
from spectheory.cost import CostModel
from spectheory.distributions import Floats
from spectheory.errors import SettingError, TextError, argument
from spectheory.judging.compared import check_words
from spectheory.judging.falls import Expected, FallTest
from spectheory.judging.readings import ReadingAtK, readings
from spectheory.judging.runs import Evidence, Stated, side_of
from spectheory.trace.counters import Counters

_USUAL_RATE = 0.01
"""False alarms per day."""
_USUAL_WINDOW = 3600.0
"""Seconds of the sliding window."""
_DAY = 86400.0


@dataclass(frozen=True)
class Share:
    """Tokens per call, or the share of calls that accepted a position: expected, counted since the start, and of late.

    `least` is the lower end of what is expected (one-sided, 99%). None where nothing is known or counted.
    """

    what: str
    expected: float | None
    least: float | None
    since_start: float | None
    window: float | None


@dataclass(frozen=True)
class Alarm:
    """When acceptance was found to have fallen (seconds of the epoch), and what shows it most.

    `since` is when the fall began, at most one window ago (an estimate), `counted` what is found since then in so many
    `calls`; `expected` and `least` are as those of :class:`Share`.
    """

    time: float
    what: str
    since: float
    calls: int
    counted: float
    expected: float
    least: float


@dataclass(frozen=True)
class Watched:
    """What a watch knows after a scrape.

    - `time`: of the scrape, in seconds of the epoch; `scrapes`: how many there were.
    - `calls`, `window_calls`: counted since the watch began, and within the last `window` seconds.
    - `shares`: tokens per call, then positions where they are known.
    - `learning`: scrapes with calls until the test begins.
    - `evidence` of a fall against `threshold`, where it raises an alarm (days; an e-detector).
    - `alarms`: all of them; `alarming`: whether the last one is within the window, while the test pauses.
    - `restarts`: how often the counters began again.
    - `best`: the fastest k by the counts of the window; None without costs.
    """

    time: float
    engine: str
    k: int
    scrapes: int
    window: float
    calls: int
    window_calls: int
    shares: tuple[Share, ...]
    learning: int
    evidence: float
    threshold: float
    alarms: tuple[Alarm, ...]
    alarming: bool
    restarts: int
    best: ReadingAtK | None

    @property
    def tokens(self) -> Share:
        """Tokens per call."""
        return self.shares[0]

    @property
    def state(self) -> str:
        """``alarm``, ``learning`` the noise, or ``watching``."""
        return "alarm" if self.alarming else "learning" if self.learning else "watching"


class Watch:
    """A server's counters, scrape after scrape, against what is expected of them.

    An alarm says that acceptance fell below what is expected; without a fall there are at most `rate` alarms a day in
    the mean (:mod:`spectheory.judging.falls` says what this rests on). Counters of a server that was restarted begin
    again, and what it counted in between is lost.

    Parameters
    ----------
    expect
        What is expected: a trace of like prompts, an earlier run (log or counters), or an answer; or its path.
    rate
        False alarms per day.
    window
        Seconds of the sliding window, and of the pause after an alarm.
    rule
        The rule of a trace.
    k
        Drafts of a call, where the server does not say it.
    cost
        What calls cost, for the best k.

    Examples
    --------
    >>> watch = Watch(Counters(calls=4000, survival=(0.8, 0.6)))
    >>> first, second = (Counters(calls=n, accepted=n, survival=(0.6, 0.4), k=2) for n in (1000, 3000))
    >>> watch.add(0.0, first), watch.add(60.0, second)
    (None, None)
    >>> [round(share.window, 2) for share in watch.seen().shares]
    [2.0, 0.6, 0.4]
    """

    def __init__(
        self,
        expect: Evidence | Stated | str | Path,
        *,
        rate: float = _USUAL_RATE,
        window: float = _USUAL_WINDOW,
        rule: str = "token",
        k: int | None = None,
        cost: CostModel | None = None,
        name: str = "the expectation",
    ) -> None:
        check_words(rule, (name, ""))
        self.rate = real(
            argument("rate", "--false-alarms-per-day"),
            rate,
            lambda value: 0 < value <= 1,
            limit="must be in (0, 1]",
            remedy="0.01 is one in a hundred days",
        )
        self.window = amount(argument("window"), window, positive=True, remedy="3600 seconds are usual")
        self._side, self._rule, self._k, self._cost, self._name = side_of(expect), rule, k, cost, name
        self._test: FallTest | None = None
        self._totals = self._sums = np.zeros(2)
        self._recent: deque[tuple[float, Floats]] = deque()
        self._alarms: list[Alarm] = []
        self._engine, self._started = "", None
        self._time = self._tested = math.nan
        self._scrapes = self._restarts = 0

    def add(self, time: float, counters: Counters) -> Alarm | None:
        """The alarm that a scrape raises, if it does. The first scrape is where counting begins."""
        first, self._scrapes, self._time = self._scrapes == 0, self._scrapes + 1, time
        totals = self._read(counters)
        before, self._totals = _wide(self._totals, len(totals)), totals
        started, self._started = self._started, counters.provenance.get("started")
        anew = None not in (started, self._started) and started != self._started
        if first:
            self._tested = time
            return None
        begun = anew or bool((self._totals < before).any())
        self._restarts += begun
        counted = self._totals if begun else self._totals - before
        while self._recent and self._recent[0][0] <= time - self.window:
            self._recent.popleft()
        return self._tested_with(counted) if counted[0] else None

    def _tested_with(self, counted: Floats) -> Alarm | None:
        test, calls = self._test, counted[0]
        assert test is not None
        self._recent.append((self._time, counted))
        self._sums = _wide(self._sums, len(counted)) + counted
        days, self._tested = max(self._time - self._tested, 0.0) / _DAY, self._time
        if not test.add(calls, np.append(calls + counted[1], counted[2 : test.expected.size + 1]), days):
            return None
        alarm = None if self._alarming else self._alarm(test)
        self._alarms += [alarm] if alarm else []
        test.restart()
        return alarm

    def _alarm(self, test: FallTest) -> Alarm:
        place, scrapes = test.strongest()
        counted = self._of(scrapes)
        since = self._recent[-min(scrapes, len(self._recent))][0]
        shares, least = test.expected.shares, np.broadcast_to(test.least, test.expected.shares.shape)
        values = [float(each[place]) for each in (_shares(counted), shares, least)]
        return Alarm(self._time, test.expected.names[place], since, int(counted[0]), *values)

    @property
    def _alarming(self) -> bool:
        return bool(self._alarms) and self._time - self._alarms[-1].time < self.window

    def _read(self, counters: Counters) -> Floats:
        """Calls, accepted drafts, and calls that accepted 1, ..., k where positions are counted."""
        if counters.calls is None or counters.accepted is None:
            missing = "calls" if counters.calls is None else "accepted drafts"
            raise TextError(
                f"the counters of {counters.engine or 'the server'} have no {missing}",
                limit="a watch needs both",
                remedy="SGLang counts them from 0.5.23 on, TensorRT-LLM counts no calls",
            )
        if self._k is not None and counters.k not in (None, self._k):
            raise SettingError(
                f"{argument('k')} is {self._k}",
                limit=f"the server drafts {counters.k} tokens a call",
                remedy="leave it out, or serve with that k",
            )
        if counters.calls and self._test is None:
            known, k = bool(counters.survival), counters.k or self._k
            self._test = FallTest(Expected.of(self._name, self._side, k, positions=known, rule=self._rule), self.rate)
        expected = self._test.expected if self._test else None
        if expected and counters.calls and counters.k not in (None, expected.k):
            raise SettingError(
                f"the server drafts {counters.k} tokens a call, and {self._name} is of {expected.k}",
                limit="with another k calls start elsewhere: every position differs without any fault",
                remedy="expect a trace, or counts of that k",
            )
        self._engine = counters.engine
        reached = [round(share * counters.calls) for share in counters.survival]
        return _wide(np.array([counters.calls, counters.accepted, *reached], dtype=float), len(self._totals))

    def since(self, time: float) -> Counters:
        """What was counted from that time on, at most one window ago, as counters that `compare` and `predict` read."""
        return self._counters(self._of(sum(each >= time for each, _ in self._recent)))

    def _of(self, scrapes: int) -> Floats:
        """The counts of the last scrapes of the window that had calls."""
        recent = list(self._recent)[max(len(self._recent) - scrapes, 0) :]
        return np.asarray(sum((each for _, each in recent), np.zeros(len(self._totals))))

    def _counters(self, counted: Floats) -> Counters:
        k = self._test.expected.k if self._test else None
        calls, accepted = map(int, counted[:2])
        if not calls or len(counted) == 2:
            return Counters(calls=calls, accepted=min(accepted, (k or 0) * calls), k=k, engine=self._engine)
        reached = np.minimum.accumulate([calls, *counted[2:]])[1:]  # a scrape may fall into the middle of an update
        survival = tuple((reached / calls).tolist())
        return Counters(calls=calls, accepted=int(reached.sum()), survival=survival, k=k, engine=self._engine)

    def seen(self) -> Watched | None:
        """What is known after the last scrape; None before the server's first call."""
        if self._test is None:
            return None
        expected, recent = self._test.expected, self._of(len(self._recent))
        names = ["tokens per call", *(f"position {i}" for i in range(1, len(recent) - 1))]
        least = np.broadcast_to(self._test.least, expected.shares.shape).tolist()
        counted = _shares(_wide(self._sums, len(recent))), _shares(recent)
        return Watched(
            time=self._time,
            engine=self._engine,
            k=expected.k,
            scrapes=self._scrapes,
            window=self.window,
            calls=int(self._sums[0]),
            window_calls=int(recent[0]),
            shares=tuple(map(Share, *zip(*zip_longest(names, expected.shares.tolist(), least, *counted), strict=True))),
            learning=self._test.learning,
            evidence=float(self._test.evidence),
            threshold=1 / self.rate,
            alarms=tuple(self._alarms),
            alarming=self._alarming,
            restarts=self._restarts,
            best=self._best(recent if recent[0] else self._sums),
        )

    def _best(self, counted: Floats) -> ReadingAtK | None:
        return readings(self._counters(counted), self._cost).best if self._cost and counted[0] else None


def _wide(counted: Floats, size: int) -> Floats:
    """Counts with 0 for positions that a server has not listed yet, as before its first call."""
    return np.pad(counted, (0, max(size - len(counted), 0)))


def _shares(counted: Floats) -> list[Any]:
    """Tokens per call and shares by position, of calls, accepted drafts and calls that accepted 1, 2, ...; or None."""
    if not counted[0]:
        return [None] * (len(counted) - 1)
    return [float(1 + counted[1] / counted[0]), *(counted[2:] / counted[0]).tolist()]
