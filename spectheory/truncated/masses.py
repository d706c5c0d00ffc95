"""The door of truncated knowledge: lists of log-probabilities checked, masses made to fit (§9)."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import as_integers, as_numpy
from spectheory.errors import PmfError, SettingError, ShapeError

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

MASS_TOLERANCE = 1e-5
"""How far masses may miss what is possible: servers compute in single precision, where logits of size 30 carry 2e-6."""

LOWEST = math.log(sys.float_info.min)
"""Log of the smallest float with all its digits, -708 nats; below it a probability and zero would be confused."""

EPS = float(np.finfo(np.float64).eps)


def column(tokens: Any, log_probs: Any, vocabulary: int, error: float, name: str) -> tuple[Ids, Floats]:
    """Return both as one-dimensional arrays of one length, entries checked; `error` is that of a log-probability."""
    logs = np.atleast_1d(as_numpy(log_probs, "the log-probabilities")).copy()
    ids = np.atleast_1d(as_integers(tokens, name))
    if ids.ndim != 1 or ids.shape != logs.shape:
        raise ShapeError(
            f"{name} has shape {ids.shape} and their log-probabilities {logs.shape}",
            limit="needs one log-probability per token",
            remedy="pass two lists of one length",
        )
    outside = ids[(ids < 0) | (ids >= vocabulary)] if len(ids) else ids
    if len(outside):
        raise SettingError(
            f"{name} has token {outside[0]}", limit=f"must be 0 to {vocabulary - 1}", remedy="check the tokenizer"
        )
    bad = ~((logs <= MASS_TOLERANCE + error) & ((logs >= LOWEST) | (logs == -math.inf)))
    if bad.any():
        raise PmfError(
            f"token {ids[bad][0]} has log-probability {logs[bad][0]:g}",
            limit=f"must be -inf or {LOWEST:.0f} to 0",
            remedy="leave out a token whose value is a stand-in such as -9999",
        )
    return ids, np.minimum(logs, 0.0)


def check_distinct(ids: Ids) -> None:
    """Refuse a token that comes twice."""
    values, counts = np.unique(ids, return_counts=True)
    if len(values) < len(ids):
        raise PmfError(
            f"token {values[counts > 1][0]} comes {counts.max()} times",
            limit="each token comes once",
            remedy="leave an extra token out if it is among the top ones",
        )


def fit(p: Floats, cap: float, vocabulary: int, error: float) -> tuple[Floats, float, float, float]:
    r"""Probabilities, cap, unseen mass and miss, after the scaling that makes the masses possible.

    A log-probability rounded by `error` scales its probability by a factor within :math:`e^{\pm\text{error}}`: the
    known mass of a pmf is then at most :math:`e^\text{error}`, and :math:`1 - e^{-\text{error}}` too little at most.
    """
    hidden = vocabulary - len(p)
    unseen = math.fsum([1.0, *(-p)])  # rounded once, so relatively exact however small
    room = hidden * cap
    above = MASS_TOLERANCE + math.expm1(error)
    if unseen < -above:
        raise PmfError(
            f"the known tokens have mass {1 - unseen:.10g}",
            limit=f"at most 1 within {above:g}",
            remedy="give natural logarithms of one pmf, and by how much they are rounded as error",
        )
    if unseen > room * math.exp(error) + MASS_TOLERANCE - math.expm1(-error):
        raise PmfError(
            f"the {hidden} unseen tokens have mass {unseen:.6g}",
            limit=f"at most {room:.6g}, as none exceeds the smallest of the top ones, {cap:.6g}",
            remedy="check the vocabulary size, and that the list holds the most probable tokens",
        )
    if 0 <= unseen <= room:
        return p, cap, unseen, 0.0
    left = room if unseen > 0 else 0.0
    total = 1 - unseen + left
    return p / total, cap / total, left / total, abs(1 - total)
