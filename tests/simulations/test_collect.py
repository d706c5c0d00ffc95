"""Runs of experiments: on any number of workers, continued from files, cut off by deaths, faults and interrupts."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from simulations.counts import Mean, Share, Tally
from simulations.experiments import PRELOADED
from simulations.experiments.collect import Stop, collect, process_pool, run_batch
from simulations.experiments.results import read_results
from simulations.experiments.tasks import Task, simulator, task
from spectheory import processes
from spectheory.errors import SettingError, ShapeError, WorkerError
from spectheory.processes import fresh_processes
from tests import sim_toys
from tests.sim_toys import BATCH, COIN, P, coins


def alone(wanted: Task, batches: int) -> Tally:
    """The first batches of a task one after the other, here."""
    return sum((run_here(wanted, batch) for batch in range(batches)), Tally())


def run_here(wanted: Task, batch: int) -> Tally:
    tally = run_batch(wanted, batch, sim_toys.__name__)
    assert isinstance(tally, Tally), tally
    return tally


def threads(n: int) -> Callable[[], Executor]:
    return lambda: ThreadPoolExecutor(n)


# Runs: workers change nothing


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with process_pool(2) as executor:
        yield executor


BY_COUNT = Stop(trials=7 * BATCH - 50)


BY_WIDTH = Stop(trials=100 * BATCH, width=0.15, of=Share("heads"))


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


linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each worker is a new interpreter")
ROOT = Path(__file__).parents[2]


def environment(name: str) -> str | None:
    """What a worker has of this process's memory."""
    return getattr(processes, name, None)


@linux
def test_workers_begin_with_the_kernels_and_without_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The modules are there at once; what this process has in memory is not."""
    monkeypatch.setattr(processes, "of_the_run", "here", raising=False)
    assert environment("of_the_run") == "here"
    with process_pool(1) as pool:
        assert pool.submit(environment, "of_the_run").result() is None
        assert pool.submit(os.getppid).result() != os.getpid()


def test_elsewhere_each_is_a_new_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert fresh_processes(PRELOADED).get_start_method() == "spawn"


SCRIPT = """
import os, sys
from simulations.experiments.collect import process_pool
from spectheory.processes import prepare

def state():
    return PRELOADED in sys.modules, sum(name.startswith("simulations.kernels.") for name in sys.modules) > 5

PRELOADED = "simulations.preloaded"
if __name__ == "__main__":
    prepare(sys.argv[1])
    print("prepared", flush=True)
    sys.stdin.readline()
    with process_pool(2) as pool:
        print(pool.submit(state).result(), flush=True)
"""


def started(tmp_path: Path, module: str = PRELOADED) -> subprocess.Popen[str]:
    """A run whose preparation has begun, in a process group of its own."""
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    run = subprocess.Popen(
        [sys.executable, str(script), module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "prepared\n"
    return run


@linux
def test_what_is_prepared_is_loaded(tmp_path: Path) -> None:
    assert started(tmp_path).communicate("\n", timeout=120) == ("(True, True)\n", "")


@linux
def test_a_kill_while_modules_are_loaded_leaves_no_process(tmp_path: Path) -> None:
    """The preparing process holds the other end of the pipes: they end when it has left."""
    run = started(tmp_path)
    run.send_signal(signal.SIGKILL)
    began = time.monotonic()
    assert run.communicate(timeout=60) == ("", "")
    assert time.monotonic() - began < 30


SLOW = """
import pathlib, time
pathlib.Path(__file__).with_name("loading").touch()
time.sleep(2)
"""


@linux
def test_an_interrupt_while_modules_are_loaded_is_the_runs_alone(tmp_path: Path) -> None:
    """Control-C goes to all processes of a terminal: one traceback, that of the run, whatever is being loaded."""
    (tmp_path / "slow_to_load.py").write_text(SLOW)
    run = started(tmp_path, "slow_to_load")
    limit = time.monotonic() + 60
    while not (tmp_path / "loading").exists():
        assert time.monotonic() < limit
        time.sleep(0.01)
    os.killpg(run.pid, signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert said.count("KeyboardInterrupt") == 1
    assert "slow_to_load" not in said
