"""Runs of experiments: on any number of workers, continued from files."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

from simulations.counts import Mean, Share, Tally
from simulations.experiments.collect import Stop, collect, run_batch
from simulations.experiments.results import read_results
from simulations.experiments.tasks import Task, simulator
from spectheory.errors import SettingError
from tests import sim_toys
from tests.sim_toys import BATCH, COIN, coins
from tests.simulations.collect_cases import BY_COUNT, BY_WIDTH, alone, run_here, threads


class Backwards(Executor):
    """Finishes what was submitted last before what was submitted first."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []
        self.open = True
        self.worker = threading.Thread(target=self.work)
        self.worker.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Note it down."""
        future: Future[Any] = Future()
        self.waiting.append((future, fn, args))
        return future

    def work(self) -> None:
        """Run what was noted, in reverse."""
        while self.open or self.waiting:
            time.sleep(0.01)
            waiting, self.waiting = self.waiting, []
            for future, fn, args in reversed(waiting):
                if future.set_running_or_notify_cancel():
                    future.set_result(fn(*args))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Finish."""
        self.open = False
        self.worker.join()


EXECUTORS: dict[str, Callable[[], Executor]] = {
    "one thread": threads(1),
    "three threads": threads(3),
    "backwards": Backwards,
}


@pytest.mark.parametrize("name", [*EXECUTORS, "processes"])
@pytest.mark.parametrize("in_flight", [1, 5])
def test_workers_change_nothing(name: str, in_flight: int, pool: Executor) -> None:
    wanted = [coins(1), coins(2), coins(1)]
    executor = pool if name == "processes" else EXECUTORS[name]
    by_count = collect(wanted, stop=BY_COUNT, executor=executor, in_flight=in_flight)
    by_width = collect(wanted, stop=BY_WIDTH, executor=executor, in_flight=in_flight)
    assert set(by_count.tallies) == {coins(1), coins(2)}
    for one in wanted:
        assert by_count[one] == alone(one, 7)
        assert by_width[one] == alone(one, by_width[one].size)
        assert BY_WIDTH.met(by_width[one])
        assert not BY_WIDTH.met(alone(one, by_width[one].size - 1)), "the first prefix that meets the rule"
        assert 3 < by_width[one].size < 40


def test_another_stream_would_be_seen() -> None:
    """Negative control: batches of a shifted numbering are not the same tally."""
    shifted = sum((run_here(coins(), batch) for batch in range(1, 8)), Tally())
    assert shifted.as_dict() != alone(coins(), 7).as_dict()


def test_progress_sees_the_counted_batches_grow() -> None:
    seen: list[tuple[Task, int]] = []
    collect([coins()], stop=BY_COUNT, executor=Backwards, progress=lambda t, tally: seen.append((t, tally.size)))
    sizes = [size for _, size in seen]
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == 7
    assert {t for t, _ in seen} == {coins()}


def test_a_mean_stops_too() -> None:
    stop = Stop(trials=100 * BATCH, width=0.15, of=Mean("time"))
    tally = collect([coins()], stop=stop, executor=threads(1), in_flight=1)[coins()]
    assert 1 < tally.size < 20
    plain, looked = Mean("time").estimate(tally), stop.interval(tally)
    assert plain.relative_width <= 0.15 < Mean("time").estimate(alone(coins(), tally.size - 1)).relative_width
    assert looked.low < plain.low < plain.high < looked.high
    assert (looked.confidence, looked.best) == (0.95, plain.best)


# Files: what is finished is not run again


def test_extra_batches_are_kept_and_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "results.jsonl"
    short = Stop(trials=100 * BATCH, width=1.0, of=Share("heads"))
    first = collect([coins()], stop=short, results=path, executor=Backwards, in_flight=6)
    counted, kept = first[coins()].size, len(read_results(path).of(coins()))
    assert 0 < counted < 6 <= kept
    again = collect([coins()], stop=short, results=path, executor=never)
    assert again[coins()] == first[coins()]
    assert again.remarks == ()


def never() -> Executor:
    """An executor that must not be used."""

    class Never(Executor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            raise AssertionError("nothing is left to run")

    return Never()


def test_a_rerun_continues(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    collect([coins()], stop=Stop(trials=3 * BATCH), results=path, executor=threads(1))
    before = path.read_bytes()
    tallies = collect([coins(), coins(2)], stop=BY_COUNT, results=path, executor=threads(2))
    assert path.read_bytes().startswith(before)
    assert len(before.splitlines()) == 5
    assert len(path.read_bytes().splitlines()) == 5 + 4 + 8
    assert [tallies[t] for t in (coins(), coins(2))] == [alone(t, 7) for t in (coins(), coins(2))]
    fewer = collect([coins()], stop=Stop(trials=2 * BATCH), results=path, executor=never)
    assert fewer[coins()] == alone(coins(), 2)


def test_other_versions_are_remarked_and_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    try:
        simulator(COIN, version="0")(sim_toys.coin)
        old = coins()
        collect([old], stop=BY_COUNT, results=path, executor=threads(1))
    finally:
        simulator(COIN, version="1")(sim_toys.coin)
    results = collect([coins()], stop=BY_COUNT, results=path, executor=threads(1))
    assert results[coins()] == alone(coins(), 7)
    assert results.remarks == (f"7 batches of {COIN} are of version 0, not 1: ignored",)
    with pytest.raises(SettingError, match="describe the task anew"):
        collect([old], stop=BY_COUNT, executor=never)
    failure = run_batch(old, 0, sim_toys.__name__)
    assert "install the same release" in str(failure), "a worker with other code"
