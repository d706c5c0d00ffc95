"""The machine and the versions that a benchmark ran with."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("spectheory", "numpy", "scipy", "numba", "torch", "transformers", "pyarrow", "distributed")


def machine() -> dict[str, str]:
    """Processor, cores, Python, and the versions of what is installed."""
    return {"processor": _processor(), "cores": str(os.cpu_count()), "python": platform.python_version(), **_versions()}


def print_machine() -> None:
    """One line: processor, cores, Python and numpy."""
    found = machine()
    print(f"{found['processor']}, {found['cores']} cores, Python {found['python']}, numpy {found['numpy']}")


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.processor() or "unknown processor"


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
