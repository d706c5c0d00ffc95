"""What a benchmark prints about the machine it ran on."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy as np


def print_machine() -> None:
    """One line: processor, cores, Python and numpy."""
    cpu = platform.processor() or "unknown processor"
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        cpu = names[0] if names else cpu
    print(f"{cpu}, {os.cpu_count()} cores, Python {platform.python_version()}, numpy {np.__version__}")
