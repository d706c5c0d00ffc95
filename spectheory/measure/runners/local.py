"""Worker processes of this machine: each with its own cores or GPU, and replaced when it dies."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

from spectheory.errors import SettingError, WorkerError
from spectheory.measure.devices import find_device
from spectheory.measure.pair import ModelPair
from spectheory.measure.runners.serving import Failure, Load, Order, attempt, identity
from spectheory.measure.runners.tasks import Done, Due, Runner, Task, perform
from spectheory.measure.settings import MeasureSettings
from spectheory.measure.threads import cpu_quota
from spectheory.processes import DEATHS, WHY_WORKERS_DIE, allowed_cores, begin, share_of, starting_on


def local_workers(load: Load, devices: Sequence[str | None], *, threads: int | None = None) -> Runner:
    """A runner of processes of this machine, one for each of `devices`.

    Every process loads the pair once. Each is kept on its share of the cores, and torch has as many threads there, or
    `threads`. No more processes are started than there are prompts. One that dies is replaced and its prompt is done
    again; a ``WorkerError`` names a prompt with which workers died three times. A script must call this under
    ``if __name__ == "__main__":``.

    Examples
    --------
    >>> from spectheory.pairs.source import PairSource
    >>> source = PairSource("builtin:target", "builtin:draft")
    >>> runner = local_workers(source.load, ["cpu", "cpu"], threads=1)  # measure(..., runner=runner) starts them
    """
    if not devices:
        raise SettingError("there are 0 workers", limit="needs at least one", remedy="name a device for each")
    return _Local(load, devices, threads)


@dataclass(frozen=True)
class _Local:
    """A runner that says how many processes it starts on one device."""

    load: Load
    devices: Sequence[str | None]
    threads: int | None

    def __call__(
        self, pair: ModelPair, settings: MeasureSettings, due: Due
    ) -> Generator[tuple[Task, Done], None, None]:
        prompts = sum(len(task.prompts) for task in due)
        order = Order(self.load, identity(pair), settings)
        with _aside(pair), _Crew(order, self.devices[:prompts], self.threads, due) as crew:
            yield from crew.results()

    @property
    def workers(self) -> int:
        """The most processes on one device."""
        return max(Counter(self.devices).values())


def devices_for(workers: int, asked: str | None) -> list[str | None]:
    """The device of each worker: the one that is asked for; of several GPUs one each, in turn."""
    device = find_device(asked)
    index: int | None = device.index
    if device.type != "cuda" or index is not None:
        return [asked] * workers
    return [f"cuda:{i % torch.cuda.device_count()}" for i in range(workers)]


class _Worker:
    """A process that does one task at a time; `ready` when it has loaded the pair."""

    def __init__(self, number: int, order: Order, device: str | None, threads: int, cores: Sequence[int]) -> None:
        context = multiprocessing.get_context("spawn")
        self.number, self.ready = number, False
        self.task: Task | None = None
        self.connection, theirs = context.Pipe()
        work = (theirs, order, f"worker {number + 1}", device, threads)
        self.process = context.Process(target=_serve, args=work, daemon=True)
        with starting_on(cores):
            self.process.start()
        theirs.close()

    def do(self, task: Task) -> None:
        self.task = task
        with contextlib.suppress(OSError):  # it died, which is noticed where results are awaited
            _send(self.connection, task)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


class _Crew:
    """All workers of a run."""

    def __init__(self, order: Order, devices: Sequence[str | None], threads: int | None, due: Due) -> None:
        self._order, self._devices, self._due = order, devices, due
        self._cores = sorted(allowed_cores())
        self._threads = threads
        self._deaths: Counter[str] = Counter()
        self._workers: list[_Worker] = []

    def __enter__(self) -> _Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()

    def results(self) -> Iterator[tuple[Task, Done]]:
        """Have all that is due done."""
        self._workers += [self._started(number) for number in range(len(self._devices))]
        while self._due or any(worker.task for worker in self._workers):
            self._hand_out()
            for connection in wait([worker.connection for worker in self._workers]):
                (worker,) = (each for each in self._workers if each.connection is connection)
                finished = self._received(worker)
                self._hand_out()  # before the result is kept, which takes time
                if finished is not None:
                    yield finished

    def _started(self, number: int) -> _Worker:
        workers = len(self._devices)
        threads = self._threads or max(1, int(min(len(self._cores), cpu_quota()) / workers))
        return _Worker(number, self._order, self._devices[number], threads, share_of(number, workers, self._cores))

    def _hand_out(self) -> None:
        for worker in self._workers:
            if self._due and worker.ready and worker.task is None:
                worker.do(self._due.popleft())

    def _received(self, worker: _Worker) -> tuple[Task, Done] | None:
        """The next finished task of a worker that has something to say: that it is ready, or dead, or a result."""
        try:
            message = pickle.loads(worker.connection.recv_bytes())
        except (EOFError, ConnectionResetError):
            self._replace(worker)
            return None
        if isinstance(message, Failure):
            raise message.error
        task, worker.task, worker.ready = worker.task, None, True
        return None if task is None else (task, message)

    def _replace(self, dead: _Worker) -> None:
        dead.process.join(1.0)
        dead.end()
        what = str(dead.task or "no prompt yet")
        self._deaths[what] += 1
        if self._deaths[what] >= DEATHS:
            raise WorkerError(
                f"workers died {DEATHS} times with {what} (the last by {_cause(dead.process.exitcode)})",
                limit="finished prompts are kept",
                remedy=f"{WHY_WORKERS_DIE}; fewer workers need less memory",
            )
        if dead.task is not None:
            self._due.appendleft(dead.task)
        self._workers[dead.number] = self._started(dead.number)


def _cause(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        return signal.Signals(-exitcode).name
    return f"exit status {exitcode}"


@contextlib.contextmanager
def _aside(pair: ModelPair) -> Iterator[None]:
    """Keep the client's weights off its GPU while workers use it."""
    there = [(model.network, model.device) for model in (pair.target, pair.draft) if model.device.type == "cuda"]
    for network, _ in there:
        network.to("cpu")
    if there:
        torch.cuda.empty_cache()
    try:
        yield
    finally:
        for network, device in there:
            network.to(device)


def _send(connection: Connection, message: Any) -> None:
    """Plain pickles: those of multiprocessing would put each tensor into shared memory."""
    connection.send_bytes(pickle.dumps(message))


def _serve(connection: Connection, order: Order, name: str, device: str | None, threads: int) -> None:
    """The life of a worker."""
    begin()
    where = f"{name} (process {os.getpid()})"
    pair = attempt(partial(order.pair, where, device=device, threads=threads))
    with contextlib.suppress(EOFError, OSError):  # the client has gone
        if isinstance(pair, Failure):
            return _send(connection, pair)
        _send(connection, None)
        while True:
            task = pickle.loads(connection.recv_bytes())
            _send(connection, attempt(partial(perform, pair, task, order.settings)))
