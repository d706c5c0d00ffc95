"""Free memory of a device."""

from __future__ import annotations

import os
from pathlib import Path

import torch

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
    return max(0, min([_available(), *_left_in_container()]))


def _available() -> int:
    try:
        lines = _MEMINFO.read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return int(_UNKNOWN_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _left_in_container() -> list[int]:
    """What a container may still use; empty without a limit."""
    left = []
    for limit, used in _LIMITS:
        try:
            left.append(int(limit.read_text()) - int(used.read_text()))
        except (OSError, ValueError):  # another version, or "max"
            continue
    return left
