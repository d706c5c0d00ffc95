"""The machine: its devices and their memory, torch's threads, and what a trace says of software and hardware."""

from __future__ import annotations

import math
import os
import platform
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor

import spectheory
from spectheory.errors import ModelError, SettingError
from spectheory.processes import allowed_cores


def widest(values: Tensor) -> torch.dtype:
    """float64 on devices that have it; float32 on Apple's."""
    return torch.float32 if values.device.type == "mps" else torch.float64


def find_device(name: str | None) -> torch.device:
    """The device of that name, or the best device of this machine if no name is given."""
    counts = {"cpu": 1, "mps": int(torch.backends.mps.is_available()), "cuda": torch.cuda.device_count()}
    kinds = [kind for kind, count in counts.items() if count]
    if name is None:
        return torch.device(kinds[-1])
    try:
        device = torch.device(name)
    except RuntimeError:  # torch knows no device of that name
        device = None
    if device is None or (device.index or 0) >= counts.get(device.type, 0):
        there = [kind if counts[kind] == 1 else f"{kind}:{i}" for kind in kinds for i in range(counts[kind])]
        raise ModelError(f"device is {name!r}", limit=f"this machine has {', '.join(there)}", remedy="use one of them")
    return device


def wait_for(device: torch.device) -> None:
    """Wait until a device has finished all its work; a CPU has when a call returns."""
    if device.type == "mps":
        torch.mps.synchronize()
    elif device.type in ("cuda", "xpu"):
        getattr(torch, device.type).synchronize(device)


_MEMINFO = Path("/proc/meminfo")
_LIMITS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes")),
)
"""Files with a container's limit and what it uses, for both versions of the control groups."""
_UNKNOWN_SHARE = 0.25
"""Share of a machine's memory that is taken to be free where the system does not say."""


def free_bytes(device: torch.device) -> int:
    """Bytes that `device` has free; of a CPU those that the system and a container's limit leave (an estimate)."""
    if device.type in ("cuda", "xpu"):
        return int(getattr(torch, device.type).mem_get_info(device)[0])
    if device.type == "mps":
        return max(0, torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    try:
        lines = _MEMINFO.read_text().splitlines()
        left = [1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))]
    except (OSError, StopIteration):
        left = [int(_UNKNOWN_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))]
    for limit, used in _LIMITS:
        with suppress(OSError, ValueError):  # another version, or "max"
            left.append(int(limit.read_text()) - int(used.read_text()))
    return max(0, min(left))


_WATCHED = 0.25
"""Seconds over which the load is measured: 25 ticks of each core on Linux."""
_STAT = Path("/proc/stat")
_QUOTAS = (
    (Path("/sys/fs/cgroup/cpu.max"),),
    (Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us")),
)
"""Files with a container's quota of CPU time and its period, for both versions of the control groups."""


_OMP = "OMP_NUM_THREADS"
"""What torch takes its number of threads from."""


def use_threads(asked: int | None = None) -> str:
    """Set torch's threads and return a sentence that says how many and why.

    One per free core, since a thread that waits for a busy core slows down every pass.
    By default torch's own number (one per core, or ``OMP_NUM_THREADS``), at most the number of free cores that this
    process may use, from the CPU time of all processes in a quarter of a second, or the load average.
    """
    allowed = allowed_cores()
    cores = _most_threads()
    if asked is not None:
        if not 1 <= asked <= cores:
            raise SettingError(
                f"threads is {asked}", limit=f"this process may use 1..{cores}", remedy="use one of these"
            )
        count, reason = asked, "as asked"
    else:
        count = min(torch.get_num_threads(), cores)
        reason = f"{_OMP} is set" if _OMP in os.environ else "torch's own choice"
        if count > 1:
            busy = _busy(allowed)
            count = max(1, min(count, round(min(len(allowed) - busy, cores))))
            reason = f"of {cores} cores, others use {busy:.1f}"
    torch.set_num_threads(count)
    return f"torch runs on {count} thread{'s' if count > 1 else ''} ({reason})"


def _most_threads() -> int:
    """How many threads this process may use."""
    return math.ceil(min(len(allowed_cores()), _cpu_quota()))


def threads_in_use() -> int:
    """The current number of torch's threads."""
    return torch.get_num_threads()


def _cpu_quota() -> float:
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
        seconds, cpu, spent, total = (now - began for now, began in zip(self._now(), self._began, strict=True))
        return max(0.0, len(self._cores) * spent / total - cpu / seconds) if total > 0 else None

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


def versions() -> dict[str, str]:
    """Versions of everything that affects the numbers."""
    return {
        "spectheory": spectheory.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "numpy": np.__version__,
    }


def hardware() -> dict[str, Any]:
    """Processor, threads and accelerators of this machine."""
    try:  # `platform` does not report the processor's model on Linux
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cpu = names[0] if names else platform.processor() or "unknown"
    description: dict[str, Any] = {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": cpu,
        "threads": torch.get_num_threads(),
    }
    if torch.cuda.is_available():
        description["gpu"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return description
