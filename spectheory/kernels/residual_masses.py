"""Masses of positive parts of combinations of two pmfs: one pass each, terms in the pmfs' precision, sums in double."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.kernels import Floats
from spectheory.kernels.compiling import compiled, compiled_in_any_order


@compiled
def residual_masses(p: NDArray[Any], q: NDArray[Any], left: Floats) -> None:
    r"""Write :math:`G_0 = 1, G_m = \sum(p - s_{m+1} q)_+, s_{m+1} = s_m + G_{m-1}` to `left` ``[rows, ranks]`` (R3)."""
    for row in range(p.shape[0]):
        own, taken = left[row], 0.0
        own[0] = 1.0
        for rank in range(1, own.size):
            taken += own[rank - 1]
            own[rank] = min(_above(p[row], q[row], p.dtype.type(taken)), own[rank - 1])


@compiled
def uno_losses(p: NDArray[Any], q: NDArray[Any], kept: Floats, losses: Floats, shares: Floats) -> None:
    """Write the masses of (1-t) min(p,q) + t q above kept p for each share t to `losses` ``[rows, shares]`` (Y5)."""
    for row in range(p.shape[0]):
        for i in range(shares.size):
            part, both = p.dtype.type(shares[i]), p.dtype.type(1 - shares[i])
            losses[row, i] = _above_kept(p[row], q[row], p.dtype.type(kept[row, i]), part, both)


@compiled_in_any_order
def _plus(total: float, term: float) -> float:
    return total + term


@compiled
def _above(p: NDArray[Any], q: NDArray[Any], taken: float) -> float:
    total, none = 0.0, taken * 0
    for i in range(p.size):
        rest = p[i] - taken * q[i]
        total = _plus(total, np.float64(rest if rest > none else none))
    return total


@compiled
def _above_kept(p: NDArray[Any], q: NDArray[Any], kept: float, part: float, both: float) -> float:
    total, none = 0.0, kept * 0
    for i in range(p.size):
        lower = p[i] if p[i] < q[i] else q[i]
        rest = both * lower + (part * q[i] - kept * p[i])
        total = _plus(total, np.float64(rest if rest > none else none))
    return total
