"""Torch's threads: one per free core, since a thread that waits for a busy core slows down every pass."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

import torch

from spectheory.errors import SettingError
from spectheory.processes import allowed_cores

_WATCHED = 0.25
"""Seconds over which the load is measured: 25 ticks of each core on Linux."""
_STAT = Path("/proc/stat")
_QUOTAS = (
    (Path("/sys/fs/cgroup/cpu.max"),),
    (Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us")),
)
"""Files with a container's quota of CPU time and its period, for both versions of the control groups."""


def use_threads(asked: int | None = None) -> str:
    """Set torch's threads and return a sentence that says how many and why.

    By default torch's own number (one per core, or ``OMP_NUM_THREADS``), at most the number of free cores that this
    process may use, from the CPU time of all processes in a quarter of a second, or the load average.
    """
    allowed = allowed_cores()
    cores = most_threads()
    if asked is not None:
        if not 1 <= asked <= cores:
            raise SettingError(
                f"threads is {asked}", limit=f"this process may use 1..{cores}", remedy="use one of these"
            )
        count, reason = asked, "as asked"
    else:
        count, reason = min(torch.get_num_threads(), cores), "torch's own choice"
        if count > 1:
            busy = _busy(allowed)
            count = max(1, min(count, round(min(len(allowed) - busy, cores))))
            reason = f"of {cores} cores, others use {busy:.1f}"
    torch.set_num_threads(count)
    return f"torch runs on {count} thread{'s' if count > 1 else ''} ({reason})"


def most_threads() -> int:
    """How many threads this process may use."""
    return math.ceil(min(len(allowed_cores()), cpu_quota()))


def threads_in_use() -> int:
    """The current number of torch's threads."""
    return torch.get_num_threads()


def cpu_quota() -> float:
    """Number of cores whose time a container may use; infinite without a limit."""
    for files in _QUOTAS:
        try:
            quota, period = " ".join(file.read_text() for file in files).split()
            return int(quota) / int(period) if int(quota) > 0 else math.inf
        except (OSError, ValueError):  # another version, or "max"
            continue
    return math.inf


def _busy(cores: frozenset[int]) -> float:
    """How many of the cores are busy now."""
    spent, total = _ticks(cores)
    time.sleep(_WATCHED)
    spent_later, total_later = _ticks(cores)
    if total_later > total:
        return len(cores) * (spent_later - spent) / (total_later - total)
    return min(os.getloadavg()[0], len(cores)) if hasattr(os, "getloadavg") else 0.0


class Watch:
    """Seconds since its beginning, and how many of this process's cores others used meanwhile."""

    def __init__(self) -> None:
        self._cores = allowed_cores()
        self._began = self._now()

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return self._now()[0] - self._began[0]

    @property
    def others(self) -> float | None:
        """The mean number of cores that other processes used; None where the system does not report it."""
        seconds, own, spent, total = (now - began for now, began in zip(self._now(), self._began, strict=True))
        return max(0.0, len(self._cores) * spent / total - own / seconds) if total > 0 else None

    def as_dict(self) -> dict[str, float | None]:
        """Both, for a table's provenance."""
        return {"seconds": self.seconds, "others": self.others}

    def _now(self) -> tuple[float, float, int, int]:
        return (time.perf_counter(), time.process_time(), *_ticks(self._cores))


def _ticks(cores: frozenset[int]) -> tuple[int, int]:
    """Ticks that these cores spent on processes, and all their ticks; zeros where the system does not report them."""
    try:
        rows = [line.split() for line in _STAT.read_text().splitlines()]
    except OSError:
        return 0, 0
    names = {f"cpu{core}" for core in cores}
    ticks = [[int(n) for n in row[1:9]] for row in rows if row and row[0] in names]
    return sum(sum(each) - each[3] - each[4] for each in ticks), sum(map(sum, ticks))
