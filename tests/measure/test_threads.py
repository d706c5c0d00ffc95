"""Torch's threads: no more than there are free cores, or as many as are asked for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import spectheory.measure.machine as threads
from spectheory.cli.loading import earlier_threads
from spectheory.cost import LatencyTable
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.measure.machine import hardware, use_threads

Machine = Callable[..., None]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Return a function that makes this a machine of some cores, some busy, with a quota; torch takes all cores."""
    before = torch.get_num_threads()
    monkeypatch.setattr(threads, "_STAT", tmp_path / "stat")
    monkeypatch.setattr(threads, "_QUOTAS", ((tmp_path / "cpu.max",), (tmp_path / "quota", tmp_path / "period")))

    def make(
        cores: int,
        *,
        busy: float = 0.0,
        quota: str = "max 100000",
        older: str = "",
        allowed: int | None = None,
        set_by_hand: int | None = None,
    ) -> None:
        mine = range(cores - (allowed or cores), cores)  # the last ones
        monkeypatch.setattr(threads, "allowed_cores", lambda: frozenset(mine))
        ticks = [0] * cores

        def rows() -> str:
            """Each look finds 100 ticks more of each core; the first cores that are allowed spent theirs."""
            lines = ["cpu  9 9 9 9 9 9 9 9 0 0"]
            for core in range(cores):
                share = min(max(busy - (core - mine[0]), 0.0), 1.0) if core in mine else 1.0
                spent = round(share * ticks[core])
                lines.append(f"cpu{core} {spent} 0 0 {ticks[core] - spent} 0 0 0 0 0 0")
                ticks[core] += 100
            return "\n".join([*lines, "intr 1 2 3"])

        def later(_: float) -> None:
            (tmp_path / "stat").write_text(rows())

        later(0)
        monkeypatch.setattr(threads.time, "sleep", later)
        if older:
            (tmp_path / "quota").write_text(f"{older}\n")
            (tmp_path / "period").write_text("100000\n")
        else:
            (tmp_path / "cpu.max").write_text(f"{quota}\n")
        torch.set_num_threads(set_by_hand or cores)

    yield make
    torch.set_num_threads(before)


BUSY = [(2, 0.0, 2), (2, 0.3, 2), (2, 1.0, 1), (2, 2.0, 1), (8, 2.6, 5), (8, 8.0, 1), (1, 0.0, 1), (1, 1.0, 1)]
MACHINES: list[tuple[dict[str, Any], int, str]] = [
    *(({"cores": n, "busy": b}, free, f"(of {n} cores, others use {b:.1f})" if n > 1 else "") for n, b, free in BUSY),
    ({"cores": 8, "allowed": 4, "busy": 1.0}, 3, "(of 4 cores, others use 1.0)"),  # the other four are all busy
    *(({"cores": 8, "quota": q}, n, "") for q, n in (("max 100000", 8), ("200000 100000", 2), ("150000 100000", 2))),
    *(({"cores": 8, "older": q}, n, "") for q, n in (("-1", 8), ("300000", 3))),  # control groups of version 1
    ({"cores": 8, "set_by_hand": 3}, 3, ""),  # as by OMP_NUM_THREADS
]


@pytest.mark.parametrize(("how", "expected", "words"), MACHINES, ids=str)
def test_as_many_as_cores_are_free(how: dict[str, Any], expected: int, words: str, machine: Machine) -> None:
    machine(**how)
    said = use_threads()
    assert torch.get_num_threads() == expected
    assert said.startswith(f"torch runs on {expected} thread")
    assert words in said


@pytest.mark.parametrize(("value", "words"), [("1", "OMP_NUM_THREADS is set"), (None, "torch's own choice")])
def test_who_chose_one_thread(value: str | None, words: str, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(4, set_by_hand=1)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if value:
        monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert use_threads() == f"torch runs on 1 thread ({words})"


def test_without_counts_of_ticks_the_load_is_taken(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(8)
    monkeypatch.setattr(threads.time, "sleep", lambda _: (tmp_path / "stat").write_text("cpu0 0 0 0 0 0 0 0 0"))
    (tmp_path / "stat").write_text("cpu0 0 0 0 0 0 0 0 0")
    monkeypatch.setattr(threads.os, "getloadavg", lambda: (3.1, 9.0, 9.0))
    use_threads()
    assert torch.get_num_threads() == 5
    (tmp_path / "stat").unlink()
    torch.set_num_threads(8)
    monkeypatch.setattr(threads.time, "sleep", lambda _: None)
    use_threads()
    assert torch.get_num_threads() == 5


def test_as_asked(machine: Machine) -> None:
    machine(8, busy=8.0)
    assert use_threads(6) == "torch runs on 6 threads (as asked)"
    assert torch.get_num_threads() == 6
    for wrong in (0, -1, 9):
        with pytest.raises(SettingError, match=rf"threads is {wrong}: this process may use 1\.\.8"):
            use_threads(wrong)


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="only Linux counts ticks")
def test_a_busy_process_is_seen() -> None:
    """On the machine at hand: a process that never rests takes a share of a core."""
    burning = subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE)
    try:
        assert burning.stdout
        burning.stdout.readline()
        assert threads._busy(threads.allowed_cores()) > 0.5
    finally:
        burning.kill()
        burning.communicate()


def test_a_run_goes_on_with_the_threads_it_began_with() -> None:
    assert earlier_threads([]) is None
    second = Interval.exact(1.0)
    for machine, expected in (({"system": "Plan9 mips"}, None), (hardware(), 5)):
        provenance = {"hardware": machine | {"threads": 5}}
        assert earlier_threads([LatencyTable({1: second}, {1: second, 2: second}, 8, provenance)]) == expected


def test_what_others_use_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four cores 2.5 were busy, and this process used 1.5 of them."""
    clock = {"perf_counter": 10.0, "process_time": 7.0}
    monkeypatch.setattr(threads, "_STAT", tmp_path / "stat")
    monkeypatch.setattr(threads, "allowed_cores", lambda: frozenset(range(4)))
    for name in clock:
        monkeypatch.setattr(threads.time, name, lambda name=name: clock[name])

    def ticks(spent: int, idle: int) -> None:
        rows = [f"cpu{core} {spent} 0 0 {idle} 0 0 0 0 0 0" for core in range(4)]
        (tmp_path / "stat").write_text("\n".join(rows))

    ticks(500, 20)
    watch = threads.Watch()
    assert watch.others is None, "no time has passed"
    clock.update(perf_counter=12.0, process_time=10.0)
    ticks(500 + 125, 20 + 75)
    assert watch.others == pytest.approx(1.0)
    assert watch.seconds == 2.0
    clock.update(process_time=20.0)
    assert watch.others == 0.0, "ticks are coarser than the process's own clock"
    (tmp_path / "stat").unlink()
    assert threads.Watch().others is None
