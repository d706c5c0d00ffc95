"""The workers of a Dask scheduler: each loads the pair once and does one task at a time."""

from __future__ import annotations

import contextlib
import logging
import pickle
import socket
import threading
import time
import uuid
from collections.abc import Generator, Iterator
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from spectheory.errors import WorkerError, load_extra
from spectheory.measure.pair import ModelPair
from spectheory.measure.runners.serving import Failure, Load, Order, attempt, identity
from spectheory.measure.runners.tasks import Done, Due, Runner, Task, perform
from spectheory.measure.settings import MeasureSettings

PATIENCE = 10.0
"""Seconds to wait for a scheduler that does not answer, or that has no worker."""
_LOOK = 1.0
"""Seconds between two looks at the scheduler."""
_KEPT = "finished prompts are kept"


def dask_workers(load: Load, address: str, *, threads: int | None = None) -> Runner:
    """A runner on the Dask cluster whose scheduler is at `address`.

    Workers that join later are used too. Torch has as many threads as a Dask worker, or `threads`. The work of a worker
    that dies goes to the others. A ``WorkerError`` says that the scheduler cannot be reached, has no worker or is lost,
    or names a prompt with which workers died again and again. Needs the extra ``distributed``.

    Examples
    --------
    >>> from spectheory.pairs.source import PairSource
    >>> source = PairSource("builtin:target", "builtin:draft")
    >>> runner = dask_workers(source.load, "tcp://10.0.0.1:8786")  # measure(..., runner=runner) connects
    """

    def run(pair: ModelPair, settings: MeasureSettings, due: Due) -> Generator[tuple[Task, Done], None, None]:
        if not due:
            return
        order, key = Order(load, identity(pair), settings), uuid.uuid4().hex
        with connected(address) as client:
            yield from _Cluster(client, address, partial(_work, key, order, threads), due).results()
            with contextlib.suppress(OSError, RuntimeError):
                client.run(_forget, key, on_error="ignore")

    return run


@contextlib.contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the scheduler at `address`, which has a worker."""
    distributed = load_extra("distributed", extra="distributed")
    with _quiet():
        try:
            client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise WorkerError(
                f"no Dask scheduler answers at {address!r}",
                limit=f"waited {PATIENCE:.0f} seconds",
                remedy="start one with `dask scheduler`, and pass the address that it prints",
            ) from error
        try:
            _wait_for_workers(client, address)
            yield client
        finally:
            client.close(timeout=2.0)


def _wait_for_workers(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError as error:
        raise WorkerError(
            f"the Dask scheduler at {address} has no worker",
            limit=f"waited {PATIENCE:.0f} seconds",
            remedy=f"start some with `dask worker {address}`",
        ) from error


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


class _Cluster:
    """Tasks under way on a cluster, at most one for each of its workers."""

    def __init__(self, client: Any, address: str, work: partial[bytes], due: Due) -> None:
        self._client, self._address, self._work, self._due = client, address, work, due
        self._flying: dict[Any, Task] = {}
        self._finished: SimpleQueue[Any] = SimpleQueue()
        self._seen = time.monotonic()
        """When there last was a worker."""

    def results(self) -> Iterator[tuple[Task, Done]]:
        """Have all that is due done."""
        while self._due or self._flying:
            self._submit()
            with contextlib.suppress(Empty):
                future = self._finished.get(timeout=_LOOK)
                finished = self._flying[future], self._result(future)
                del self._flying[future]
                self._submit()  # before the result is kept, which takes time
                yield finished

    def _submit(self) -> None:
        for _ in range(self._workers() - len(self._flying)):
            if not self._due:
                return
            task = self._due.popleft()
            future = self._client.submit(self._work, pickle.dumps(task), key=f"spectheory-{uuid.uuid4().hex}")
            self._flying[future] = task
            future.add_done_callback(self._finished.put)

    def _workers(self) -> int:
        """How many workers there are now."""
        try:
            count = len(self._client.nthreads())
        except (OSError, RuntimeError) as error:
            raise self._lost() from error
        now = time.monotonic()
        self._seen = now if count else self._seen
        if now - self._seen > PATIENCE:
            raise WorkerError(
                f"the Dask scheduler at {self._address} has no worker any more",
                limit=_KEPT,
                remedy="start some and run the same command again",
            )
        return count

    def _result(self, future: Any) -> Done:
        """What a task gave; a worker's errors are raised."""
        task = self._flying[future]
        if future.cancelled():
            raise self._lost()
        error = future.exception()
        if error is None:
            outcome: Done | Failure = pickle.loads(future.result())
            if isinstance(outcome, Failure):
                raise outcome.error
            return outcome
        died = type(error).__name__ == "KilledWorker"
        raise WorkerError(
            f"Dask workers died again and again with {task}" if died else f"Dask workers fail at {task} ({error})",
            limit=_KEPT,
            remedy="check the workers' memory" if died else "install the same release with the extra 'models' on each",
        ) from error

    def _lost(self) -> WorkerError:
        return WorkerError(
            f"the connection to the Dask scheduler at {self._address} is lost",
            limit=_KEPT,
            remedy="start it again and run the same command",
        )


_loaded: dict[str, ModelPair | Failure] = {}
"""On a worker: the pair of the latest measurement."""
_one = threading.Lock()
"""On a worker: one task at a time, whatever the number of its threads."""


def _work(key: str, order: Order, threads: int | None, task: bytes) -> bytes:
    """Do a task on a worker, which loads the pair when it is given its first one."""
    with _one:
        if key not in _loaded:
            _loaded.clear()
            _loaded[key] = attempt(partial(_pair, order, threads))
        pair = _loaded[key]
        if isinstance(pair, Failure):
            return pickle.dumps(pair)
        return pickle.dumps(attempt(partial(perform, pair, pickle.loads(task), order.settings)))


def _pair(order: Order, threads: int | None) -> ModelPair:
    from distributed import get_worker

    worker = get_worker()
    where = f"the Dask worker {worker.address} on {socket.gethostname()}"
    return order.pair(where, threads=threads or worker.state.nthreads)


def _forget(key: str) -> None:
    """Free the memory of a worker."""
    _loaded.pop(key, None)
