"""A watched server: restarts, idle times, the window, alarms, and what cannot be watched."""

from __future__ import annotations

import numpy as np
import pytest

from spectheory.errors import SettingError, TextError
from spectheory.intervals import Interval
from spectheory.judging.falls import LEARNING
from spectheory.judging.runs import Stated
from spectheory.judging.watching import Watch, Watched
from spectheory.trace.counters import Counters
from spectheory.trace.importers.prometheus import read_metrics
from spectheory.trace.samples import PAIR
from spectheory.trace.scrapes import of_row, row_of
from tests.replay import Replay, page

EXPECT = Counters(calls=10**8, survival=(0.8, 0.6, 0.4))


def counters(calls: int, *reached: int, started: float | None = None, k: int = 3) -> Counters:
    facts = {} if started is None else {"started": started}
    survival = tuple(count / calls for count in reached) if calls else ()
    return Counters(calls=calls, accepted=sum(reached), survival=survival, k=k, engine="toy", provenance=facts)


def seen(watch: Watch) -> Watched:
    answer = watch.seen()
    assert answer is not None
    return answer


def test_counts_since_the_start_and_in_the_window() -> None:
    """The first scrape is where counting begins; the window forgets."""
    watch = Watch(EXPECT, window=100)
    for time, calls, reached in ((0, 100, (80, 60, 40)), (60, 200, (150, 110, 70)), (150, 300, (200, 130, 80))):
        watch.add(time, counters(calls, *reached))
    answer = seen(watch)
    assert (answer.calls, answer.window_calls, answer.scrapes) == (200, 200, 3)
    watch.add(170, counters(310, 210, 130, 80))
    answer = seen(watch)
    assert (answer.calls, answer.window_calls) == (210, 110)
    assert [share.window for share in answer.shares[1:]] == [60 / 110, 20 / 110, 10 / 110]
    assert answer.tokens.since_start == 1 + (130 + 70 + 40) / 210
    assert [share.what for share in answer.shares] == ["tokens per call", "position 1", "position 2", "position 3"]


@pytest.mark.parametrize("begins", [counters(50, 40, 30, 20), counters(500, 400, 300, 200, started=2.0)])
def test_a_restarted_server(begins: Counters) -> None:
    """Counters that went back, or were made at another time, count from 0."""
    watch = Watch(EXPECT)
    watch.add(0, counters(100, 80, 60, 40, started=1.0))
    watch.add(60, counters(200, 160, 120, 80, started=1.0))
    watch.add(120, begins)
    answer = seen(watch)
    assert answer.restarts == 1
    assert answer.calls == 100 + (begins.calls or 0)


def test_before_the_first_call() -> None:
    watch = Watch(EXPECT)
    for time in (0.0, 60.0):
        watch.add(time, counters(0))
        assert watch.seen() is None
    watch.add(120, counters(100, 80, 60, 40))
    assert seen(watch).calls == 100
    watch.add(180, counters(100, 80, 60, 40))  # idle
    assert seen(watch).learning == LEARNING - 1


@pytest.mark.parametrize("engine", ["vllm", "llama.cpp", "sglang"])
def test_a_fall_is_found_in_the_words_of_every_engine(engine: str) -> None:
    """With its beginning, and once a window; nothing is found before."""
    replay, watch = Replay(engine=engine, falls_at=50, kept=0.9), Watch(EXPECT, window=3600)
    alarms = [watch.add(60.0 * n, read_metrics(replay.next(), "a page")) for n in range(100)]
    found = [n for n, alarm in enumerate(alarms) if alarm]
    assert len(found) == 1
    assert 50 <= found[0] < 56
    alarm = alarms[found[0]]
    assert alarm is not None
    assert 48 * 60 <= alarm.since <= 60 * found[0]
    assert alarm.counted < alarm.least
    assert seen(watch).alarming
    since = watch.since(alarm.since)
    assert since.calls is not None
    assert since.calls > alarm.calls  # the scrapes after the alarm too
    if engine == "sglang":
        assert [share.what for share in seen(watch).shares] == ["tokens per call"]


def test_a_fall_that_lasts_is_said_once_a_window() -> None:
    replay, watch = Replay(falls_at=40, kept=0.8), Watch(EXPECT, window=1200)
    alarms = [watch.add(60.0 * n, read_metrics(replay.next(), "a page")) for n in range(100)]
    times = [alarm.time for alarm in alarms if alarm]
    assert len(times) >= 2
    assert (np.diff(times) >= 1200).all()


def test_against_a_number() -> None:
    """An answer has no positions: tokens per call alone are tested, with the noise that is learned."""
    replay = Replay(falls_at=60, kept=0.8)
    watch = Watch(Stated(Interval.exact(2.8), 3))
    alarms = [n for n in range(100) if watch.add(60.0 * n, read_metrics(replay.next(), "a page"))]
    assert 60 <= alarms[0] < 66
    assert seen(watch).shares[1].expected is None
    assert seen(watch).shares[1].window is not None


def test_against_a_trace() -> None:
    watch = Watch(PAIR, name="builtin:")
    replay = Replay(survival=(0.75, 0.58, 0.47, 0.375, 0.3))
    assert not any(watch.add(60.0 * n, read_metrics(replay.next(), "a page")) for n in range(60))
    tokens = seen(watch).tokens
    assert tokens.expected == pytest.approx(3.474, abs=1e-3)


def test_rows_are_the_scrapes() -> None:
    replay = Replay()
    for n in range(3):
        scrape = read_metrics(replay.next(), "a page")
        time, again = of_row(row_of(n, scrape))
        assert (time, again.calls, again.survival, again.k) == (n, scrape.calls, scrape.survival, scrape.k)
        assert again.provenance == scrape.provenance


def test_one_model_of_several() -> None:
    two = page("vllm", 10, (8, 6), model="a") + page("vllm", 20, (8, 6), model="b")
    assert read_metrics(two, "a page", "b").calls == 20
    with pytest.raises(TextError, match="a page counts a, b: one model is read at a time"):
        read_metrics(two, "a page")
    with pytest.raises(TextError, match="a page counts no model 'c': it counts a, b; name one of them"):
        read_metrics(two, "a page", "c")


def test_what_cannot_be_watched() -> None:
    watch = Watch(EXPECT)
    watch.add(0, counters(100, 80, 60, 40))
    with pytest.raises(SettingError, match="the server drafts 2 tokens a call, and the expectation is of 3"):
        watch.add(60, counters(100, 80, 60, k=2))
    with pytest.raises(SettingError, match="calls draft 3 tokens in the expectation and 2 in the server"):
        Watch(EXPECT).add(0, counters(100, 80, 60, k=2))
    with pytest.raises(TextError, match="the counters of trt have no calls: a watch needs both"):
        Watch(EXPECT).add(0, Counters(drafted=10, accepted=5, engine="trt"))
    with pytest.raises(SettingError, match="rate is 2: must be in"):
        Watch(EXPECT, rate=2)
    with pytest.raises(SettingError, match="window is 0: must be > 0"):
        Watch(EXPECT, window=0)
