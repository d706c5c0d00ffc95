"""Seconds that ``import spectheory`` adds to ``import numpy``, and what it loads (limit set: 0.1 s)."""

from __future__ import annotations

import statistics
import subprocess
import sys

from _rows import Row, publish

PROBE = """
import time
import numpy
began = time.perf_counter()
import spectheory
found = spectheory.total_variation([0.5, 0.5], [1.0, 0.0])
print(time.perf_counter() - began)
assert found == 0.5
import sys
heavy = {"torch", "numba", "sympy", "matplotlib", "pyarrow", "scipy"} & set(sys.modules)
assert not heavy, heavy
"""


def main() -> None:
    """Run the probe in fresh interpreters."""
    seconds = [
        float(subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True).stdout)
        for _ in range(9)
    ]
    took = 1e3 * statistics.median(seconds)
    row = Row("import spectheory and a first value, beyond numpy", "ms", took, "the value", wanted=100)
    publish(__file__, "Time to import the package", [row])


if __name__ == "__main__":
    main()
