"""The software and hardware that a measurement ran on."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

import spectheory


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
    found: dict[str, Any] = {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu_name(),
        "threads": torch.get_num_threads(),
    }
    if torch.cuda.is_available():
        found["gpu"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return found


def _cpu_name() -> str:
    """The processor's model name, which `platform` does not report on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
