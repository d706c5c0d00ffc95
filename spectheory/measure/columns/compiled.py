"""Which blocks the compiled kernels take, and their rows on several threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spectheory import kernels

_vocabulary: ContextVar[int] = ContextVar("vocabulary", default=0)


def fits(block: Tensor) -> bool:
    """Whether kernels take a block ``[rows, W]``: contiguous, on a CPU, with numba, V large enough to compile for."""
    size = max(block.shape[-1], _vocabulary.get())
    known = block.dtype in (torch.float32, torch.float64) and block.is_contiguous()
    return known and block.device.type == "cpu" and size >= kernels.SMALLEST and kernels.installed()


@contextmanager
def _listed_from(size: int) -> Iterator[None]:
    """Blocks list tokens of a vocabulary of this size: many positions are computed at once, so kernels pay."""
    token = _vocabulary.set(size)
    try:
        yield
    finally:
        _vocabulary.reset(token)


def on_threads(kernel: Callable[..., None], *arrays: Tensor | NDArray[Any], constants: tuple[Any, ...] = ()) -> None:
    """Call ``kernel(*arrays, *constants)`` on parts of the rows, as many as torch has threads; rows are independent."""
    whole = [np.ascontiguousarray(a) if isinstance(a, np.ndarray) else a.contiguous().numpy() for a in arrays]
    rows = len(whole[0])
    threads = max(1, min(torch.get_num_threads(), rows))

    def work(part: int) -> None:
        share = slice(rows * part // threads, rows * (part + 1) // threads)
        kernel(*(array[share] for array in whole), *constants)

    if threads == 1:
        work(0)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))
