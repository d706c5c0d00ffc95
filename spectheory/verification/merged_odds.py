r"""A mixture of geometric laws with its odds merged, between two mixtures of few odds.

Let :math:`P_\mu(r) = \int g^{r-1}/(1+g)^r \, d\mu(g)`. For a concave function :math:`\varphi` of the rank,
:math:`\int E_g[\varphi(R)] \, d\mu` falls when mass is spread out at its mean: R - 1 is Poisson of mean g E with E ~
Exp(1), and the second derivative in g of a Poisson mean of :math:`\varphi` is a mean of second differences. log r is
concave. So is :math:`-\log P_\mu`, as a mixture of geometric laws is log-convex. If :math:`\nu` is :math:`\mu` spread
out, then

.. math:: H(P_\nu) \le E_\nu[-\log P_\mu] \le E_\mu[-\log P_\mu] = H(P_\mu),

the first step by Gibbs. So merging tokens at their mean odds can only raise the entropy and E log R, and moving them to
the ends of their cell at the same mean can only lower both. What is lost is of second order in the width of a cell.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


_LARGEST = math.log(sys.float_info.max)
"""The largest log(1 + g)."""


class Atoms(NamedTuple):
    """Weights and odds of a mixture."""

    weights: Floats
    odds: Floats


def merged(weights: Floats, odds: Floats, step: float) -> tuple[Atoms, Atoms]:
    """Two mixtures around that of finite `odds`: a lower one, spread out to the ends of cells of log(1 + g) that are
    `step` wide, and an upper one, at the cells' means (exact up to rounding); twice the same if that saves nothing.
    """
    number, cell = np.unique(np.floor(np.log1p(odds) / step), return_inverse=True)
    if 2 * number.size >= odds.size:
        return (Atoms(weights, odds),) * 2
    left, right = _edge(number, step), _edge(number + 1, step)
    width = right - left
    share = np.clip((odds - left[cell]) / width[cell], 0.0, 1.0)
    mass, up = (_summed(cell, each) for each in (weights, weights * share))
    upper = Atoms(mass, left + width * np.minimum(up / mass, 1.0))
    ends, place = np.unique(np.concatenate([number, number + 1]), return_inverse=True)
    lower = Atoms(_summed(place, np.concatenate([np.maximum(mass - up, 0.0), up])), _edge(ends, step))
    return lower, upper


def _summed(place: NDArray[np.int64], values: Floats) -> Floats:
    """Sums of the values of each place."""
    return np.bincount(place, values).astype(np.float64, copy=False)


def _edge(number: Floats, step: float) -> Floats:
    """The odds at which a cell begins."""
    return np.expm1(np.minimum(number * step, _LARGEST))
