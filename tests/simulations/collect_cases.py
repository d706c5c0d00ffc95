"""Executors and counts that the tests of runs share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor

import pytest

from simulations.counts import Share, Tally
from simulations.experiments.collect import Stop, process_pool, run_batch
from simulations.experiments.tasks import Task
from tests import sim_toys
from tests.sim_toys import BATCH


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
