"""Counts held against a law, cell by cell, each wrongly refuted with probability `ALARM` at most."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, hypergeom

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

UNEVEN = np.random.default_rng(1).dirichlet(np.ones(5), size=2)
PAIRS: dict[str, tuple[Floats, Floats]] = {
    "crossed": (np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])),
    "draft lacks a token": (np.array([0.3, 0.1, 0.2, 0.4]), np.array([0.1, 0.5, 0.4, 0.0])),
    "target lacks a token": (np.array([0.0, 0.6, 0.3, 0.1]), np.array([0.4, 0.1, 0.3, 0.2])),
    "one-hot draft": (np.array([0.2, 0.3, 0.5]), np.array([1.0, 0.0, 0.0])),
    "random": (UNEVEN[0], UNEVEN[1]),
}
"""Target and draft pmfs of every kind."""

ALARM = 1e-11
ROUNDED = 1e-12
"""A probability is known to this; one that is smaller is none."""


def straying(counts: Any, shares: Any, trials: int | None = None) -> list[int]:
    """Cells, flattened, whose count is impossible or too unlikely under its share (exact binomial tails).

    Of so many trials; as many as are counted, if every trial is in one cell.
    """
    observed, law = np.ravel(counts), np.ravel(shares)
    low, high = np.maximum(law - ROUNDED, 0.0), np.where(law > ROUNDED, np.minimum(law + ROUNDED, 1.0), 0.0)
    of = int(observed.sum()) if trials is None else trials
    tails = np.minimum(binom.cdf(observed, of, low), binom.sf(observed - 1, of, high))
    return [int(i) for i in np.flatnonzero(tails < ALARM / 2)]


def apart(one: Any, two: Any) -> list[int]:
    """Cells whose counts in two samples differ too much for one law (exact hypergeometric tails)."""
    first, second = np.ravel(one), np.ravel(two)
    law = hypergeom(first.sum() + second.sum(), first + second, first.sum())
    tails = np.minimum(law.cdf(first), law.sf(first - 1))
    return [int(i) for i in np.flatnonzero(tails < ALARM / 2)]


def strays(total: float, expected: float, variance: float, largest: float) -> bool:
    """Whether a sum of independent terms of that total variance, each within `largest` of its mean, is too far off."""
    log = math.log(2 / ALARM)
    slack = largest * log / 3
    return abs(total - expected) > slack + math.sqrt(slack**2 + 2 * variance * log)
