"""Upper bounds of the errors of the race's rank law in `spectheory.measure.columns.race`, evaluated on grids.

**Trapezoid rule.** See the docstring of `race_ranks`; the general bound is theorem 5.1 of Trefethen and Weideman 2014.

**Series.** At time u the tokens of the series have x = u lambda <= x0 and sum s. Their generating function is G(z) =
prod(1 + w a), w = z-1, a = 1-e^{-x}. log(1 + w a) is a power series in x, of which four orders are kept. Its
coefficients are at most those of -log(1 - |w| (e^x - 1)). So log G is off by E, |E| <= (s/x0) times the part of order
five and more at x0. By Cauchy's estimate on |z| = rho <= 1 the probability of k arrivals is off by at most rho^-k max
|G| (e^|E| - 1), where |1 + w a| <= exp(a Re w + a^2 |w|^2/2), x - x^2/2 <= a <= x. Tokens treated exactly have
generating functions of modulus at most 1 - (1-rho)(1-e^{-x}).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from spectheory.measure.columns.race import FLOOR, LOG_TIMES, NODES, SHARE, SINGLED_OUT, _quadrature

Floats = NDArray[np.float64]
_RADII = np.linspace(0.025, 1.0, 40)
_ANGLES = np.linspace(0.0, math.pi, 61)


def trapezoid_error(arrivals: int, log_times: tuple[float, float] = LOG_TIMES, nodes: int = NODES) -> float:
    """Largest error of the probability of so many arrivals, by the best of many angles, and outside the nodes."""
    first, last = log_times
    step = (last - first) / (nodes - 1)
    angle = np.linspace(0.01, math.pi / 2 - 0.001, 5000)
    inside = 2 * np.cos(angle) ** -(arrivals + 1) / np.expm1(2 * math.pi * angle / step)
    return float(inside.min()) + math.exp(first) + math.exp(-math.exp(last))


def _remainder(r: Floats, x: float) -> Floats:
    """Orders five and more in x of -log(1 - r (e^x - 1)), a sum of positive terms."""
    total = np.zeros_like(r)
    power = np.zeros(40)
    power[0] = 1.0
    grown = np.array([0.0, *(x**n / math.factorial(n) for n in range(1, 40))])
    for j in range(1, 40):
        power = np.convolve(power, grown)[:40]
        total += r**j / j * power[5:].sum()
    return total


def _coefficient_errors(s: float, x: float, exact: int, arrivals: int) -> float:
    """Error of the probability of so many arrivals where the series has sum s and largest entry x, beside so many exact
    tokens of at least x.
    """
    z = _RADII[:, None] * np.exp(1j * _ANGLES)
    w = z - 1
    off = (s / x) * _remainder(np.abs(w), x)
    log_g = -s * ((1 - x / 2) * -w.real - x / 2 * np.abs(w) ** 2)
    log_g = np.minimum(log_g, 0.0) + exact * np.log1p(-(1 - _RADII[:, None]) * -math.expm1(-x))
    most = np.max(log_g + np.log(np.expm1(np.minimum(off, 500.0)) + 1e-300), axis=1)
    return math.exp(min(float(np.min(most - arrivals * np.log(_RADII))), 0.0))


def series_error(total: float, arrivals: int) -> float:
    """Largest error of the probability of so many arrivals from a series of rates with this sum, over all times."""
    rate = max(SHARE * total, FLOOR)
    times, weights = _quadrature()
    return sum(
        float(weight) * _coefficient_errors(float(u) * total, float(u) * rate, 0, arrivals)
        for u, weight in zip(times, weights, strict=True)
        if weight > 1e-12 and u * rate < 0.3
    )


def crowded_error(x: float, part: float, arrivals: int) -> float:
    """The same at one time where as many tokens as possible are exact; the series then has a part of s = x / SHARE."""
    return _coefficient_errors(part * x / SHARE, x, SINGLED_OUT, arrivals)
