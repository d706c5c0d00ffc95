"""Seconds that ``import spectheory`` adds to ``import numpy``, and what it loads (limit set: 0.1 s)."""

from __future__ import annotations

import statistics
import subprocess
import sys

from _machine import print_machine

PROBE = """
import time
import numpy
began = time.perf_counter()
import spectheory
spectheory.total_variation([0.5, 0.5], [1.0, 0.0])
print(time.perf_counter() - began)
import sys
heavy = {"torch", "numba", "sympy", "matplotlib", "pyarrow", "scipy"} & set(sys.modules)
assert not heavy, heavy
"""


def main() -> None:
    """Run the probe in fresh interpreters."""
    print_machine()
    seconds = [
        float(subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True).stdout)
        for _ in range(9)
    ]
    print(f"import spectheory and a first calculator: median {statistics.median(seconds) * 1e3:.1f} ms over numpy")


if __name__ == "__main__":
    main()
