"""Pmfs and their logarithms from logits in single precision: two passes over each row, exponentials vectorised."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from spectheory.kernels.compiling import compiled, plus

Singles = NDArray[np.float32]

LOWEST = np.float32(-104.0)
"""Smaller arguments count as this one, whose exponential is rounded to 0."""
BLOCK = 4096
"""Entries whose exponentials are added up before they leave the nearest cache."""

_LOG2_E = np.float32(1 / math.log(2))
_LOG2_HIGH = np.float32(355 / 512)  # log 2 with its low bits cleared: its product with any exponent is exact
_LOG2_LOW = np.float32(math.log(2) - 355 / 512)
_TO_INTEGER = np.float32(1.5 * 2.0**23)  # adding it rounds to an integer, which is then in the low bits
_ZERO = np.int32(_TO_INTEGER.view(np.int32))
_BIAS, _MANTISSA, _ONE = np.int32(127), np.int32(23), np.int32(1)
_UNIT = np.float32(1)  # a plain 1 would widen all to double precision
_E2, _E3, _E4, _E5, _E6, _E7 = (np.float32(1 / math.factorial(n)) for n in range(2, 8))


@compiled
def softmax(log: Singles, pmf: Singles, finite: NDArray[np.bool_], warmth: float) -> None:
    """Make logits ``[rows, V]`` relative to their largest log-probabilities, in place, and write the pmfs.

    The logits are divided by the temperature `warmth`; `finite` says where no logarithm is -inf.
    """
    for row in range(log.shape[0]):
        total = 0.0
        for start in range(0, log.shape[1], BLOCK):
            end = start + BLOCK
            total += _exponentials(log[row, start:end], pmf[row, start:end], np.float32(warmth))
        finite[row] = _normalise(pmf[row], log[row], np.float32(1 / total), np.float32(math.log(total))) == 0


@compiled
def _exponentials(log: Singles, pmf: Singles, warmth: np.float32) -> float:
    total = 0.0
    for i in range(log.size):
        log[i] /= warmth
        pmf[i] = _exp(log[i])
        total = plus(total, np.float64(pmf[i]))
    return total


@compiled
def _exp(x: np.float32) -> np.float32:
    """exp(x) for x <= 0 by x = n log 2 + r, to 1e-7 of itself or of the smallest normal float."""
    x = x if x > LOWEST else LOWEST
    shifted = np.float32(x * _LOG2_E + _TO_INTEGER)
    n = shifted - _TO_INTEGER
    r = (x - n * _LOG2_HIGH) - n * _LOG2_LOW
    s = _E2 + r * (_E3 + r * (_E4 + r * (_E5 + r * (_E6 + r * _E7))))
    exponent = np.int32(shifted.view(np.int32) - _ZERO)
    half = np.int32(exponent >> _ONE)  # two factors, each a normal float, also where the product is not
    return np.float32((_UNIT + (r + r * r * s)) * _power(half) * _power(np.int32(exponent - half)))


@compiled
def _power(exponent: np.int32) -> np.float32:
    return np.int32((exponent + _BIAS) << _MANTISSA).view(np.float32)


@compiled
def _normalise(pmf: Singles, log: Singles, factor: np.float32, shift: np.float32) -> int:
    """Scale and shift in place; return the number of logarithms that are -inf."""
    excluded = np.int32(0)
    for i in range(pmf.size):
        pmf[i] *= factor
        log[i] -= shift
        excluded += np.int32(log[i] == -np.inf)
    return int(excluded)
