"""Runs that are cut off: deaths, faults, interrupts; bad settings."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from simulations.counts import Share, Tally
from simulations.experiments.collect import Stop, collect, process_pool
from simulations.experiments.results import read_results
from simulations.experiments.tasks import Task, task
from spectheory.errors import SettingError, ShapeError, WorkerError
from tests.sim_toys import BATCH, COIN, P, coins
from tests.simulations.collect_cases import BY_COUNT, alone, run_here, threads

# Runs that are cut off


def mortals(folder: Path, deaths: int) -> tuple[Task, Path]:
    """A task whose first batches bring their workers down, and the folder of deaths to come."""
    to_come = folder / "deaths"
    to_come.mkdir()
    for death in range(deaths):
        (to_come / str(death)).touch()
    return task("mortal of the tests", {"p": P, "folder": str(to_come)}, seed=1, trials=BATCH), to_come


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    """Two deaths: the batches they took with them are run again, and the numbers are those of no death."""
    wanted, deaths = mortals(tmp_path, 2)
    path = tmp_path / "results.jsonl"
    tallies = collect([wanted], stop=BY_COUNT, results=path, workers=1)
    assert not list(deaths.iterdir())
    assert tallies[wanted] == alone(wanted, 7)
    assert read_results(path).remarks == []


def test_workers_that_always_die_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    wanted = task("doomed of the tests", {}, seed=1, trials=BATCH)
    with pytest.raises(WorkerError, match="died 3 times") as caught:
        collect([coins(), wanted], stop=BY_COUNT, results=path, executor=lambda: process_pool(1), in_flight=1)
    assert "\n" not in str(caught.value)
    assert sum((tally for _, tally in sorted(read_results(path).of(coins()).items())), Tally()) == alone(coins(), 7)
    with process_pool(1) as mine, pytest.raises(WorkerError, match="pass a function that makes executors"):
        collect([wanted], stop=BY_COUNT, executor=mine)


def test_a_fault_names_its_batch_and_keeps_the_others(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    wanted = task("sloppy of the tests", {"returns": "none"}, seed=1, trials=BATCH)
    with pytest.raises(WorkerError, match=r"batch 0 of sloppy .* returned NoneType"):
        collect([coins(), wanted], stop=BY_COUNT, results=path, executor=threads(1), in_flight=2)
    assert len(read_results(path).of(coins())) == 7
    for returns in ("few", "many"):
        wanted = task("sloppy of the tests", {"returns": returns}, seed=1, trials=BATCH)
        with pytest.raises(WorkerError, match="a Tally of 200 trials was due"):
            collect([wanted], stop=BY_COUNT, executor=threads(1))


def test_errors_travel_from_workers(pool: Executor) -> None:
    """In one line, whatever their class needs to be made."""
    one = coins(missing=1)
    bad = task(COIN, {"q": 1}, seed=1, trials=BATCH)
    with pytest.raises(WorkerError, match=r"batch \d of coin of the tests .* failed \(KeyError: 'p'\)") as caught:
        collect([bad, one], stop=BY_COUNT, executor=pool)
    assert "\n" not in str(caught.value)


def test_an_interrupt_waits_for_what_runs(tmp_path: Path) -> None:
    """Two batches still run when the first is counted: they are kept too, and a fourth is not begun."""
    path, wanted = tmp_path / "results.jsonl", coins()
    begun, counted = threading.Barrier(3), threading.Event()

    class OneAhead(ThreadPoolExecutor):
        """Three batches begin together; the first ends at once, the others when it is counted."""

        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            return super().submit(self.begin_together, fn, *args, **kwargs)

        @staticmethod
        def begin_together(fn: Callable[..., Any], task: Task, batch: int, *args: Any) -> Any:
            begun.wait(timeout=60)
            assert batch == 0 or counted.wait(timeout=60)
            return fn(task, batch, *args)

    def stop_now(_: Task, tally: Tally) -> None:
        counted.set()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect([wanted], stop=BY_COUNT, results=path, executor=lambda: OneAhead(3), in_flight=3, progress=stop_now)
    assert read_results(path).of(wanted) == {batch: run_here(wanted, batch) for batch in range(3)}


@pytest.mark.parametrize("by_caller", [False, True])
def test_an_interrupt_does_not_wait_for_ever(by_caller: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A batch that takes a minute is given up after the grace; only an executor that was passed in lives on."""
    monkeypatch.setattr("simulations.experiments.collect.GRACE", 0.5)
    made: list[ProcessPoolExecutor] = []
    before = set(multiprocessing.active_children())
    path, quick, slow = tmp_path / "results.jsonl", coins(), coins(sleep=60.0)

    def maker() -> Executor:
        made.append(process_pool(2))
        return made[0]

    def stop_now(_: Task, tally: Tally) -> None:
        raise KeyboardInterrupt

    executor = maker() if by_caller else maker
    processes: list[Any] = []
    try:
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            collect(
                [quick, slow],
                stop=Stop(trials=BATCH),
                results=path,
                executor=executor,
                progress=stop_now,
            )
        assert time.monotonic() - began < 30
        assert read_results(path).of(quick) == {0: run_here(quick, 0)}
        processes = list((made[0]._processes or {}).values())
        if by_caller:
            assert made[0].submit(os.getpid).result(timeout=60) in {process.pid for process in processes}
        else:
            with pytest.raises(RuntimeError, match=r"shutdown|terminated abruptly"):
                made[0].submit(os.getpid)
            while set(multiprocessing.active_children()) - before:
                assert time.monotonic() - began < 30
                time.sleep(0.05)
    finally:
        for process in processes:
            process.kill()


# Settings


@pytest.mark.parametrize(
    "settings",
    [{"in_flight": 0}, {"workers": 0}, {"workers": 1, "executor": threads(1)}],
)
def test_settings_of_a_run(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        collect([coins()], stop=BY_COUNT, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"trials": 0},
        {"trials": 1, "width": 0.1},
        {"trials": 1, "of": Share("heads")},
        {"trials": 1, "width": 0.0, "of": Share("heads")},
        {"trials": 1, "confidence": 1.0},
    ],
)
def test_settings_of_a_rule(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        Stop(**settings)


def test_batches_that_count_other_things_do_not_add_up() -> None:
    with pytest.raises(ShapeError, match="same names and lengths"):
        alone(coins(), 1) + Tally.of(1, counts={"tails": [1]})
    assert collect([], stop=BY_COUNT).tallies == {}
