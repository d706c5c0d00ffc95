"""Exponentials divided by their sum, and their logarithms shifted accordingly: two passes over each row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.kernels.compiling import compiled, compiled_in_any_order


@compiled
def normalise(pmf: NDArray[Any], log: NDArray[Any], finite: NDArray[np.bool_]) -> None:
    """Normalise exponentials ``[rows, V]`` and their logarithms in place; `finite` says where no logarithm is -inf."""
    for row in range(pmf.shape[0]):
        total = _total(pmf[row])
        finite[row] = _scale(pmf[row], log[row], pmf.dtype.type(1 / total), pmf.dtype.type(math.log(total))) == 0


@compiled_in_any_order
def _plus(total: float, term: float) -> float:
    return total + term


@compiled
def _total(values: NDArray[Any]) -> float:
    total = 0.0
    for i in range(values.size):
        total = _plus(total, np.float64(values[i]))
    return total


@compiled
def _scale(pmf: NDArray[Any], log: NDArray[Any], factor: float, shift: float) -> int:
    """Scale and shift in place; return the number of logarithms that are -inf."""
    excluded = np.int32(0)
    for i in range(pmf.size):
        pmf[i] *= factor
        log[i] -= shift
        excluded += np.int32(log[i] == -np.inf)
    return int(excluded)
