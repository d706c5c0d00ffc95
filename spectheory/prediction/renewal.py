r"""Survival of chains of one k read as that of another: matches along the text have an age (§14, an estimate).

A draft that reads the text alone, verified position by position, matches or misses each token of a text. Model: the
next token matches with a probability h(a) that depends on the *age* a, the tokens since the last miss, and no longer
from age k - 1 on. A call from age a accepts i drafts with probability :math:`\prod_{j<i} h(a+j)`. After a rejection the
next call starts at age 0; after k accepted drafts its bonus token matches with h(a + k). The ages at which calls of one
k start are a Markov chain, whose stationary law gives the survival. So k counted shares fix k hazards, and these the
survival of every other k. Exact if matches renew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import least_squares

from spectheory.distributions import Floats
from spectheory.intervals import Interval
from spectheory.prediction.over_prompts import reach

_STEP = 1e-6
"""Of a hazard or share, in a derivative."""


def _survival_of(hazards: Floats, k: int) -> Floats:
    """P(tau >= i) of chains of k drafts, i = 1..k, at the starts that they visit in the long run.

    Examples
    --------
    Matches that do not depend on their age are accepted alike at every position:

    >>> _survival_of(np.array([0.5, 0.5]), 3)
    array([0.5  , 0.25 , 0.125])
    """
    oldest = len(hazards) - 1
    ages = np.arange(oldest + 1)
    ahead = hazards[np.minimum(ages[:, None] + np.arange(k + 1), oldest)]
    survival = ahead[:, :k].cumprod(axis=1)
    kept = survival[:, -1] * ahead[:, k]
    moves = np.zeros((oldest + 1, oldest + 1))
    moves[ages, np.minimum(ages + k + 1, oldest)] += kept
    moves[:, 0] += 1 - kept
    system = np.vstack([moves.T - np.eye(oldest + 1), np.ones(oldest + 1)])
    starts = np.linalg.lstsq(system, np.append(np.zeros(oldest + 1), 1.0), rcond=None)[0]
    return np.asarray(starts @ survival)


@lru_cache(maxsize=64)
def _fitted(shares: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Hazards by age, and the survival's derivatives by them."""
    counted = np.array(shares, dtype=np.float64)
    above = np.append(1.0, counted[:-1])
    first = np.divide(counted, above, out=np.zeros_like(counted), where=above > 0)
    fit = least_squares(
        lambda hazards: _survival_of(hazards, len(counted)) - counted,
        np.clip(first, 1e-9, 1 - 1e-9),
        bounds=(0.0, 1.0),
        xtol=1e-14,
        ftol=1e-14,
        gtol=1e-14,
    )
    return fit.x, fit.jac


@dataclass(frozen=True)
class _Reading:
    """Survival at every k from the counted survival of one, with what the counts move it by."""

    counted: tuple[float, ...]

    def survival(self, k: int) -> Floats:
        """P(tau >= i) of chains of k drafts, ``[k]``."""
        raise NotImplementedError

    def jacobian(self, k: int) -> Floats:
        """Derivatives of :meth:`survival` by the counted shares, ``[k, counted]``."""
        raise NotImplementedError

    def tokens(self, k: int) -> float:
        """Tokens per call of chains of k drafts."""
        return 1 + math.fsum(self.survival(k))

    def gradient(self, k: int) -> Floats:
        """Derivatives of :meth:`tokens` by the counted shares."""
        return np.asarray(self.jacobian(k).sum(axis=0))


class Renewal(_Reading):
    """Matches renew at every miss."""

    def survival(self, k: int) -> Floats:
        """P(tau >= i) at the starts of calls of k drafts, ``[k]``."""
        return _survival_of(_fitted(self.counted)[0], k)

    def jacobian(self, k: int) -> Floats:
        """Derivatives of :meth:`survival` by the counted shares."""
        hazards, by_hazard = _fitted(self.counted)
        moved = _differences(lambda values: _survival_of(values, k), hazards)
        return np.asarray(moved @ np.linalg.pinv(by_hazard, rcond=1e-9))


class Summed(_Reading):
    """The counted shares hold at every k, and beyond the last one its hazard."""

    def survival(self, k: int) -> Floats:
        """The counted shares, and beyond them the last hazard, ``[k]``."""
        return np.array(_extended(self.counted, k))

    def jacobian(self, k: int) -> Floats:
        """Derivatives of :meth:`survival` by the counted shares."""
        return _differences(lambda shares: np.array(_extended(shares.tolist(), k)), np.array(self.counted))


def _differences(values: Callable[[Floats], Floats], at: Floats) -> Floats:
    """Derivatives ``[values, arguments]`` by steps towards 1/2."""
    steps = np.where(at > 0.5, -_STEP, _STEP)
    moved = [values(at + np.eye(len(at))[i] * step) for i, step in enumerate(steps)]
    return np.asarray((np.array(moved) - values(at)).T / steps)


def _extended(counted: Sequence[float], k: int) -> list[float]:
    """Survival up to k: beyond the last share with the hazard that led to it."""
    above = counted[-2] if len(counted) > 1 else 1.0
    hazard = min(counted[-1] / above, 1.0) if above else 0.0
    later = [counted[-1] * hazard**i for i in range(1, k - len(counted) + 1)]
    return [*counted[:k], *later]


def read_at(counted: Sequence[float], k: int, spread: Floats | None = None, *, renews: bool = False) -> Interval:
    """Tokens per call at another k (§14, estimate): by renewal if matches are said to renew, else the middle of both.

    The range holds both readings, and the 95% error of the counts if `spread` ``[k, k]`` is their covariance.
    """
    used = (Renewal(tuple(counted)), *(() if renews else (Summed(tuple(counted)),)))
    values = [each.tokens(k) for each in used]
    halves = [0.0 if spread is None else _half(each.gradient(k), spread) for each in used]
    low = min(value - half for value, half in zip(values, halves, strict=True))
    high = max(value + half for value, half in zip(values, halves, strict=True))
    return Interval(max(low, 1.0), min(max(sum(values) / len(values), 1.0), k + 1.0), min(high, k + 1.0), "estimate")


def _half(gradient: Floats, spread: Floats) -> float:
    """Half of the 95% interval of a function of counted shares."""
    return reach(np.inf) * math.sqrt(max(float(gradient @ spread @ gradient), 0.0))


def spread_of_calls(counted: Sequence[float], calls: int) -> Floats:
    """Covariance ``[k, k]`` of counted shares as if calls were independent; 0 or all of them count as one."""
    one = 1 / (calls + 2)
    shares, places = np.clip(np.array(counted, dtype=np.float64), one, 1 - one), np.arange(len(counted))
    return np.asarray((shares[np.maximum.outer(places, places)] - np.outer(shares, shares)) / calls)


def tokens_counted(counted: Sequence[float], calls: int) -> Interval:
    """Tokens per call of the counted survival itself, with the 95% interval of independent calls."""
    mean, variance = 1 + math.fsum(counted), float(spread_of_calls(counted, calls).sum())
    half = reach(np.inf) * math.sqrt(max(variance, 0.0))
    return Interval(max(mean - half, 1.0), mean, min(mean + half, len(counted) + 1.0), "statistical")
