"""Every column over the full vocabulary, nothing cut: thread CPU time per position and entry, one thread, by V.

Ours, compiled, against the same columns by torch and against plain numpy, and against two exponentials per entry, which
every way needs. All columns of ours and torch's are asserted to be equal, and those that numpy has, in float64.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from _columns_in_numpy import numpy_statistics
from _rows import Row, publish
from _timing import nanoseconds
from torch import Tensor

from spectheory import kernels
from spectheory.distributions import Sampling
from spectheory.measure.columns.statistics import position_statistics

SIZES = (8_192, 32_000, 64_000, 151_936)
ENTRIES, REPEATS = 2**21, 5
TWIN, DOUBLE = 1e-6, 2e-5
"""Relative and absolute, of columns by torch, and of those in double precision: logits of 30 are rounded to 1e-6."""
EQUAL = f"every column is torch's to {TWIN:g}, and numpy's in float64 to {DOUBLE:g}"
WANTED = {(32_000, False): 6.0, (151_936, False): 6.0, (32_000, True): 25.0, (151_936, True): 20.0}
COMPILE = """
import time, torch
from spectheory.distributions import Sampling
from spectheory.measure.columns.statistics import position_statistics
logits, spent = torch.zeros(1, 4096), []
for _ in range(2):
    began = time.thread_time()
    position_statistics(logits, logits, torch.tensor([0]), Sampling())
    spent.append(time.thread_time() - began)
print(spent[0] - spent[1])
"""


@contextmanager
def without_numba() -> Iterator[None]:
    """The torch functions for everything."""
    known = kernels.installed
    kernels.installed = lambda: False
    try:
        yield
    finally:
        kernels.installed = known


def example(size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of both models as language models have them, and tokens of the target."""
    generator = torch.Generator().manual_seed(size)
    target = 3 * torch.randn(ENTRIES // size, size, generator=generator)
    draft = target + torch.randn(target.shape, generator=generator)
    return target, draft, torch.multinomial(target.softmax(-1), 1, generator=generator)[:, 0]


def check(target: Tensor, draft: Tensor, tokens: Tensor) -> None:
    """Ours is the twin's and numpy's."""
    ours = position_statistics(target, draft, tokens, Sampling())
    with without_numba():
        for name, values in position_statistics(target, draft, tokens, Sampling()).items():
            if name != "distinct_rank":  # draws within rounding of a boundary differ
                np.testing.assert_allclose(ours[name], values, rtol=TWIN, atol=TWIN, err_msg=name)
    for name, values in numpy_statistics(target.double().numpy(), draft.double().numpy(), tokens.numpy(), True).items():
        np.testing.assert_allclose(ours[name], values, rtol=DOUBLE, atol=DOUBLE, err_msg=name)


def rows_of(size: int) -> Iterator[Row]:
    """The rows of a vocabulary of this size."""
    target, draft, tokens = example(size)
    check(target, draft, tokens)

    def time(work: Callable[[], object]) -> float:
        return nanoseconds(lambda _: work(), [0], target.numel(), REPEATS)

    def columns(kind: torch.dtype, race: bool) -> Callable[[], object]:
        given = target.to(kind), draft.to(kind)
        return lambda: position_statistics(*given, tokens, Sampling(), race=race)

    limit = time(lambda: (torch.exp(target), torch.exp(draft)))
    for race, label in ((False, "cheap columns"), (True, "all columns")):
        ours = time(columns(torch.float32, race))
        with without_numba():
            twin = time(columns(torch.float32, race))
        given = (target.numpy(), draft.numpy(), tokens.numpy(), race)
        common = {"limit": limit, "limit_is": "two exponentials", "wanted": WANTED.get((size, race))}
        work, unit, at = f"{label}, V = {size:,}", "ns per entry", {"V": float(size)}
        yield Row(work, unit, ours, EQUAL, twin, "torch", **common, at=at)
        if size == max(SIZES):
            yield Row(work, unit, ours, EQUAL, time(lambda given=given: numpy_statistics(*given)), "numpy", **common)
            half = time(columns(torch.bfloat16, race))
            yield Row(f"{work}, bfloat16", unit, half, EQUAL, twin, "torch, float32", **common)


def compiling() -> float:
    """Seconds of compiling everything, once per machine: the first call in a process with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-c", COMPILE]
        return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Check equality, then time, by size."""
    torch.set_num_threads(1)
    rows = [row for size in SIZES for row in rows_of(size)]
    note = (
        f"The kernels of float32 are compiled in {compiling():.0f} s, once per machine; numpy computes one of the "
        "rank laws."
    )
    publish(__file__, "All columns over the full vocabulary, one thread", rows, note)


if __name__ == "__main__":
    main()
