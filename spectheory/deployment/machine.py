"""Whether latencies were measured on the machine at hand."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def other_machine(hardware: object) -> str | None:
    """How the machine at hand differs, in words; None if it is the same as far as can be checked cheaply.

    `hardware` is that of a latency table's provenance: ``system``, ``cpu``, and ``gpu`` where there is one.
    """
    if not isinstance(hardware, Mapping):
        return None
    here: dict[str, Any] = {"system": f"{platform.system()} {platform.machine()}", "cpu": _cpu()}
    if hardware.get("gpu"):
        here["gpu"] = _gpus()
    for name, value in here.items():
        there = hardware.get(name)
        if there is not None and value is not None and there != value:
            return f"measured on {_words(there)}, this is {_words(value) or 'without one'}"
    return None


def _words(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)


def _cpu() -> str | None:
    """The processor's name as a measurement records it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or None
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or None


def _gpus() -> list[str] | None:
    """Names of the accelerators; none without torch, None if it is not installed."""
    with suppress(ImportError):
        import torch

        return [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return None
