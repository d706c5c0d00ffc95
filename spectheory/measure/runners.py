"""Where the prompts are read: in this process, in processes of this machine, on a Dask cluster."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import pickle
import signal
import socket
import threading
import time
import traceback
import uuid
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from spectheory.errors import ModelError, SettingError, WorkerError, load_extra
from spectheory.measure.job import Encoded, MeasureSettings, texts_of, traces_of
from spectheory.measure.machine import _cpu_quota, find_device, versions
from spectheory.measure.pair import ModelPair
from spectheory.processes import DEATHS, WHY_WORKERS_DIE, allowed_cores, begin, share_of, starting_on
from spectheory.runner import Seat, Spread
from spectheory.trace import Trace

CONNECT_SECONDS = 10.0
"""Seconds to wait for a Dask scheduler that does not answer."""
WORKER_SECONDS = 10.0
"""Seconds to wait for the first worker of a Dask scheduler that has none."""
_KEPT = "finished prompts are kept"

T = TypeVar("T")
Load = Callable[[str | None], ModelPair]
"""Loads the pair on a device, None: the one that it chooses. It is sent to workers, so it must be picklable."""

# Tasks


@dataclass(frozen=True)
class Sample:
    """Sample the texts of a batch: prompts that are sampled together, always the same ones."""

    prompts: tuple[Encoded, ...]

    def __str__(self) -> str:
        first, last = (repr(each.prompt.id) for each in (self.prompts[0], self.prompts[-1]))
        return f"prompt {first}" if len(self.prompts) == 1 else f"the batch of prompts {first} to {last}"


@dataclass(frozen=True)
class Read:
    """Read the texts of one prompt with both models."""

    prompt: Encoded
    texts: tuple[Tensor, ...]

    @property
    def prompts(self) -> tuple[Encoded, ...]:
        """The one prompt."""
        return (self.prompt,)

    def __str__(self) -> str:
        return f"prompt {self.prompt.prompt.id!r}"


Task = Sample | Read
Done = list[list[Tensor]] | Trace
"""What a task gives: sampled texts of each prompt, token ids ``[n]``, or the trace of a prompt."""
Due = deque[Task]
"""Tasks that wait, the first to be done first; sampled texts put further ones in front."""
Runner = Callable[[ModelPair, MeasureSettings, Due], Generator[tuple[Task, Done], None, None]]
"""Does the tasks that are due, those that are added meanwhile too, and gives each with its result when it is finished,
in whatever order. Closing it ends the work at once.
"""


def _workers_of(runner: Runner) -> int:
    """The most processes that a runner starts on one device, each with the pair; 0 if it starts none there."""
    return getattr(runner, "workers", 0)


def _perform(
    pair: ModelPair, task: Task, settings: MeasureSettings, remark: Callable[[str], None] | None = None
) -> Done:
    """Do a task; `remark` takes what the user should know of it."""
    if isinstance(task, Sample):
        return texts_of(pair, task.prompts, settings, remark=remark)
    (trace,) = traces_of(pair, task.prompt, task.texts, [settings])
    return trace


def here(
    pair: ModelPair, settings: MeasureSettings, due: Due, remark: Callable[[str], None] | None = None
) -> Generator[tuple[Task, Done], None, None]:
    """In this process, one after the other."""
    while due:
        task = due.popleft()
        yield task, _perform(pair, task, settings, remark)


def works_here(runner: Runner) -> bool:
    """Whether all work is done in this process, so that nothing of it goes on while a result is looked at."""
    return getattr(runner, "func", runner) is here


# Processes of this machine


def local_workers(load: Load, devices: Sequence[str | None], *, threads: int | None = None) -> Runner:
    """A runner of processes of this machine, one for each of `devices`.

    Every process loads the pair once. Each is kept on its share of the cores, and torch has as many threads there, or
    `threads`. No more processes are started than there are prompts. One that dies is replaced and its prompt is done
    again; a ``WorkerError`` names a prompt with which workers died three times. A script must call this under
    ``if __name__ == "__main__":``.

    Examples
    --------
    >>> from spectheory.pairs import PairSource
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
        devices = self.devices[: sum(len(task.prompts) for task in due)]
        cores, order = sorted(allowed_cores()), _Order(self.load, _identity(pair), settings)
        threads = self.threads or max(1, int(min(len(cores), _cpu_quota()) / max(len(devices), 1)))
        seats = [
            _Process(
                replace(order, worker=f"worker {number + 1}", device=device, threads=threads),
                share_of(number, len(devices), cores),
            )
            for number, device in enumerate(devices)
        ]
        with _aside(pair):
            yield from _spread(seats, due)

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


class _Process(Seat):
    """A process that does one task at a time, on its own cores."""

    def __init__(self, order: _Order, cores: Sequence[int]) -> None:
        context = multiprocessing.get_context("spawn")
        super().__init__(partial(ProcessPoolExecutor, 1, mp_context=context, initializer=begin), lambda: 1)
        self._order, self._cores = order, cores

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Have a task done by this worker."""
        with starting_on(self._cores):
            return super().submit(function, self._order, *arguments)


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


# A Dask cluster


def dask_workers(load: Load, address: str, *, threads: int | None = None) -> Runner:
    """A runner on the Dask cluster whose scheduler is at `address`.

    Workers that join later are used too. Torch has as many threads as a Dask worker, or `threads`. The work of a worker
    that dies goes to the others. A ``WorkerError`` says that the scheduler cannot be reached, has no worker or is lost,
    or names a prompt with which workers died again and again. Needs the extra ``distributed``.

    Examples
    --------
    >>> from spectheory.pairs import PairSource
    >>> source = PairSource("builtin:target", "builtin:draft")
    >>> runner = dask_workers(source.load, "tcp://10.0.0.1:8786")  # measure(..., runner=runner) connects
    """

    def run(pair: ModelPair, settings: MeasureSettings, due: Due) -> Generator[tuple[Task, Done], None, None]:
        if not due:
            return
        order = _Order(load, _identity(pair), settings, threads=threads)
        with connected(address) as client:
            yield from _spread([_Cluster(client, address, order)], due)
            with contextlib.suppress(OSError, RuntimeError):
                client.run(_forget, order.key, on_error="ignore")

    return run


@contextlib.contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the scheduler at `address`, which has a worker."""
    distributed = load_extra("distributed", extra="distributed")
    with _quiet():
        client = distributed.Client.__new__(distributed.Client)
        try:
            client.__init__(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            # Collected later, it would stop its loop while the next client starts one, under the same lock.
            with contextlib.suppress(AttributeError, OSError):
                client.close(timeout=2.0)
            raise WorkerError(
                f"no Dask scheduler answers at {address!r}",
                limit=f"waited {CONNECT_SECONDS:.0f} seconds",
                remedy="start one with `dask scheduler`, and pass the address that it prints",
            ) from error
        try:
            with contextlib.suppress(TimeoutError):
                client.wait_for_workers(1, timeout=WORKER_SECONDS)
            if not client.nthreads():
                raise WorkerError(
                    f"the Dask scheduler at {address} has no worker",
                    limit=f"waited {WORKER_SECONDS:.0f} seconds",
                    remedy=f"start some with `dask worker {address}`",
                )
            yield client
        finally:
            client.close(timeout=2.0)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without Dask's log, which tells of each lost connection many times."""
    known = [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"]
    loud = [logger for logger in map(logging.getLogger, known) if not logger.disabled]
    for logger in loud:
        logger.disabled = True
    try:
        yield
    finally:
        for logger in loud:
            logger.disabled = False


class _Cluster(Seat):
    """The executor of a cluster: at most one task for each of its workers."""

    def __init__(self, client: Any, address: str, order: _Order) -> None:
        super().__init__(client.get_executor(pure=False), self._workers)
        self._client, self._address, self._order = client, address, order
        self._seen = time.monotonic()
        """When there last was a worker."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Have a task done by some worker."""
        return super().submit(function, self._order, *arguments)

    def _workers(self) -> int:
        """How many workers there are now."""
        try:
            count = len(self._client.nthreads())
        except (OSError, RuntimeError) as error:
            raise self.lost() from error
        now = time.monotonic()
        self._seen = now if count else self._seen
        if now - self._seen > WORKER_SECONDS:
            raise WorkerError(
                f"the Dask scheduler at {self._address} has no worker any more",
                limit=_KEPT,
                remedy="start some and run the same command again",
            )
        return count

    def lost(self) -> WorkerError:
        """The connection is lost."""
        return WorkerError(
            f"the connection to the Dask scheduler at {self._address} is lost",
            limit=_KEPT,
            remedy="start it again and run the same command",
        )

    def failed(self, task: Task, error: BaseException) -> WorkerError:
        """What a task failed at that is no error of its own."""
        died = type(error).__name__ == "KilledWorker"
        return WorkerError(
            f"Dask workers died again and again with {task}" if died else f"Dask workers fail at {task} ({error})",
            limit=_KEPT,
            remedy="check the workers' memory" if died else "install the same release with the extra 'models' on each",
        )


# What all workers do


@dataclass(frozen=True)
class _Order:
    """What a worker is told of a measurement; `expected` is what :func:`_identity` says of the client's pair.

    Processes of this machine have a name and a device, a Dask worker says where it is.
    """

    load: Load
    expected: Mapping[str, str]
    settings: MeasureSettings
    worker: str | None = None
    device: str | None = None
    threads: int | None = None
    key: str = field(default_factory=lambda: uuid.uuid4().hex)

    def pair(self) -> ModelPair:
        """The pair, loaded by this worker; a ``ModelError`` names what differs from the client's."""
        where, threads = f"{self.worker} (process {os.getpid()})", self.threads
        if self.worker is None:
            from distributed import get_worker

            dask = get_worker()
            where = f"the Dask worker {dask.address} on {socket.gethostname()}"
            threads = threads or dask.state.nthreads
        if threads is not None:
            torch.set_num_threads(threads)
        _compare(_versions(), self.expected, where)
        pair = self.load(self.device)
        _compare(_identity(pair), self.expected, where)
        return pair


@dataclass(frozen=True)
class _Failure:
    """Why a worker has no result."""

    error: Exception


def _identity(pair: ModelPair) -> dict[str, str]:
    """Everything that client and workers must have in common for their numbers to belong to one trace."""
    facts = _versions()
    for role, model in (("target", pair.target), ("draft", pair.draft)):
        facts |= {f"a {role} with fingerprint": model.fingerprint, f"a {role} in": model.dtype}
    return facts | {"token ids:": str(pair.vocabulary), "ends of text:": " ".join(map(str, sorted(pair.end_of_text)))}


def _versions() -> dict[str, str]:
    """Versions without the part after the plus sign, which names the build for a kind of device."""
    return {name: version.partition("+")[0] for name, version in versions().items() if name != "python"}


def _compare(actual: Mapping[str, str], expected: Mapping[str, str], where: str) -> None:
    for name, value in actual.items():
        if value != expected[name]:
            raise ModelError(
                f"{where} has {name} {value}",
                limit=f"the measurement has {expected[name]}",
                remedy="install the same versions and models there; copied files keep their times (cp -p, rsync -t)",
            )


def _attempt(work: Callable[[], T]) -> T | _Failure:
    """What `work` returns, or why it failed, in a form that can be sent."""
    try:
        return work()
    except Exception as error:
        error.add_note(traceback.format_exc())
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return _Failure(RuntimeError(f"{type(error).__name__}: {error}"))
        return _Failure(error)


_loaded: dict[str, ModelPair | _Failure] = {}
"""At a worker: the pair of the latest measurement."""
_one = threading.Lock()
"""At a worker: one task at a time, whatever the number of its threads."""


def _work(order: _Order, task: bytes) -> bytes:
    """Do a task at a worker, which loads the pair when it is given its first one.

    Plain pickles: those of multiprocessing would put each tensor into shared memory.
    """
    with _one:
        if order.key not in _loaded:
            _loaded.clear()
            _loaded[order.key] = _attempt(order.pair)
        pair = _loaded[order.key]
        if isinstance(pair, _Failure):
            return pickle.dumps(pair)
        return pickle.dumps(_attempt(partial(_perform, pair, pickle.loads(task), order.settings)))


def _forget(key: str) -> None:
    """Free the memory of a worker."""
    _loaded.pop(key, None)


def _spread(seats: Sequence[_Process | _Cluster], due: Due) -> Generator[tuple[Task, Done], None, None]:
    """Have all that is due done by these workers."""
    spread = Spread[Task](seats, lambda task: (_work, pickle.dumps(task)), str, _dead)
    try:
        for task, future in spread.results(lambda: due.popleft() if due else None):
            yield task, _result(task, future, seats[0])
    finally:
        spread.close(at_once=True)


def _result(task: Task, future: Future[bytes], seat: _Process | _Cluster) -> Done:
    """What a task gave; a worker's errors are raised."""
    if isinstance(seat, _Cluster):
        if future.cancelled():
            raise seat.lost()
        if (error := future.exception()) is not None:
            raise seat.failed(task, error) from error
    outcome: Done | _Failure = pickle.loads(future.result())
    if isinstance(outcome, _Failure):
        raise outcome.error
    return outcome


def _dead(tasks: list[Task], exit_codes: list[int]) -> WorkerError:
    code = exit_codes[0] if exit_codes else 0
    cause = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    return WorkerError(
        f"workers died {DEATHS} times with {tasks[0] if tasks else 'no prompt yet'} (the last by {cause})",
        limit=_KEPT,
        remedy=f"{WHY_WORKERS_DIE}; fewer workers need less memory",
    )
