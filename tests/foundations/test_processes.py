"""Worker processes: the cores that they keep to, and the interrupts that they do not hear."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from spectheory.processes import allowed_cores, share_of, starting_on

linux = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores are chosen on Linux alone")


@linux
def test_a_process_keeps_to_the_cores_it_was_started_on() -> None:
    first, before = min(allowed_cores()), allowed_cores()
    code = "import os, signal; print(os.sched_getaffinity(0), signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    with starting_on([first]):
        started = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert started.stdout.strip() == f"{{{first}}} {{{signal.SIGINT!r}}}"
    assert allowed_cores() == before
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_an_interruption_meanwhile_is_not_lost() -> None:
    before = allowed_cores()

    def start() -> None:
        with starting_on(sorted(before)[:1]):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        start()
    assert allowed_cores() == before
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.parametrize(("workers", "cores"), [(1, 5), (2, 5), (3, 8), (8, 8), (5, 2)])
def test_every_core_has_a_worker_and_shares_are_even(workers: int, cores: int) -> None:
    shares = [share_of(i, workers, range(cores)) for i in range(workers)]
    assert {core for share in shares for core in share} == set(range(cores))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    if workers <= cores:
        assert sum(map(len, shares)) == cores
