r"""B3, B3': the branching bound from the whole law of a step, by a renewal recursion on a grid.

S_n is the walk whose steps are i.i.d. from the law, :math:`U(t) = \sum_{n \ge 1} \Pr(S_n \le t)`. The expected weight
of the prefixes of length n with a property of their surprisal is its probability for S_n (many-to-one).

- B3. Of P prefixes, those more probable than e^-t weigh at most U(t-) in all, the others at most e^-t each.
- B3'. For weights w and any t, :math:`\sum_{v \in T} w_v \le \sum_v (w_v - e^{-t})_+ + P e^{-t}`, and the mean of the
  first sum over all prefixes is :math:`\sum_n E(1 - e^{S_n - t})_+ = \int_0^t U(s) e^{-(t-s)} ds`, by parts.

On a grid of span h let m_j be the expected visits to jh. The slope of B3' in t is :math:`e^{-t}(G(t) - P)` with
:math:`G(t) = \sum_{ih \le t} m_i e^{ih}`, the expected number of prefixes of probability >= e^-t. So the smallest value
is at the first jh where G reaches P: :math:`U((j-1)h) + (P - G((j-1)h)) e^{-jh}`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Literal

import numpy as np

from spectheory.checks import amount, choice, real
from spectheory.distributions import Floats
from spectheory.errors import SettingError
from spectheory.intervals import CONFIDENCE, Interval
from spectheory.limits.inputs import checked_capacity
from spectheory.limits.step_law import StepLaw, a_step_law

RenewalForm = Literal["plain", "dual"]
Rounding = Literal["down", "up", "spread"]

_SNAP = 1e-14
"""Relative distance at which a step is on a grid point: logarithm and division are rounded."""

_OUTWARD = 1e-13
"""Relative outward shift of both ends: ten times the rounding of the recursion (positive terms only), as compared with
extended precision."""

_MOST_POINTS = 1 << 20
"""Most grid points: a vector of 8 MB, and minutes of recursion."""

_COARSEST = 700.0
"""Spans of the grid are below it: exponentials of it are floats."""

_NEGLIGIBLE = 40.0
"""Default of max_t minus log P: a larger t could gain less than e^-40 tokens."""


def renewal_bound(
    law: StepLaw,
    capacity: float,
    *,
    form: RenewalForm = "dual",
    grid: float = 1e-3,
    max_t: float | None = None,
) -> Interval:
    r"""Upper bound on E[X], the correctly predicted tokens of a call without the bonus token (B3, B3').

    .. math:: \text{dual (B3'):}\ \min_t \int_0^t U(s) e^{-(t-s)} ds + P e^{-t}
              \qquad \text{plain (B3):}\ \min_t U(t-) + P e^{-t}, \qquad \text{both at most } P.

    P is `capacity`, the draft nodes per call, root excluded. The interval holds the numerical value of the bound for
    the law as given. Use ``high``: it is never below the bound, so it is itself an upper bound on E[X] (``best = high``
    for a known law). ``low`` is the other end of the *numerical* error, no lower bound on E[X]. ``low`` takes every
    step rounded up to the grid, of span `grid` nats. ``high`` takes it rounded down (plain), or (dual) split between
    both neighbouring points with the mean of :math:`e^{step}` kept: :math:`(1 - e^{-t} \prod e^{step})_+` is convex in
    each factor, so by Jensen's inequality this raises the bound, but not above rounding down; for a law of many atoms
    by the square of the grid only. Both ends are then moved outwards by 1e-13 of themselves, for float rounding;
    without this they agree if all steps lie on the grid. `max_t` is the largest t tried, by default log P + 40; every t
    gives a bound, so a small one only widens the interval.

    If the law is an estimate, the interval is *statistical*: the 95% interval of the bound (delta method over
    independent draws, Student) joined to the numerical one. The estimate itself tends to be low, by a second-order
    amount, as t is fitted to the sample. Assumes conditional pmfs i.i.d. across prefixes and drafts that do not sample
    (B4).

    Examples
    --------
    >>> fair = StepLaw.from_pmfs([0.5, 0.5])
    >>> print(renewal_bound(fair, 62, grid=math.log(2)))  # 2 + 4 + ... + 32 prefixes: five whole levels
    5.000
    >>> round(renewal_bound(fair, 62, form="plain", grid=math.log(2)).high, 4)
    5.9375
    """
    a_step_law(law)
    choice("form", form, ("dual", "plain"), remedy="dual is the tighter")
    capacity = checked_capacity(capacity)
    limit, remedy = f"must be > 0 and below {_COARSEST:g}", "give it in nats; 0.001 suits nearly every law"
    grid = real("grid", grid, lambda nats: 0 < nats < _COARSEST, limit=limit, remedy=remedy)
    points = _points(grid, math.log(capacity) + _NEGLIGIBLE if max_t is None else max_t)
    minimum = _dual if form == "dual" else _plain
    above = _on_grid(law, grid, points, "spread" if form == "dual" else "down")
    high, _, at = minimum(_visits(above), capacity, grid)
    _, low, _ = minimum(_visits(_on_grid(law, grid, points, "up")), capacity, grid)
    high = min(high * (1 + _OUTWARD), float(capacity))  # t = 0 gives P
    low = min(low * (1 - _OUTWARD), high)
    if not law.estimated:
        return Interval(low, high, high, "bound")
    error = _sampling_error(law, _influence(above, at, form, grid), grid)
    if error == math.inf:
        return Interval.estimate(high)
    return Interval(max(low - error, 0.0), high, min(high + error, float(capacity)), "statistical")


def _points(grid: float, max_t: float) -> int:
    max_t = amount("max_t", max_t, remedy="give it in nats")
    if not max_t / grid < _MOST_POINTS:
        raise SettingError(
            f"grid is {grid:g}, max_t is {max_t:g}",
            limit=f"needs at most {_MOST_POINTS} grid points",
            remedy="a grid of 0.001 nats suits nearly every law",
        )
    return int(max_t / grid) + 1


def _cells(law: StepLaw, grid: float) -> tuple[Floats, Floats, Floats]:
    """The grid points below and above each step, and the share above that keeps the mean of e^step."""
    position = law.steps / grid
    nearest = np.rint(position)
    position = np.where(np.abs(position - nearest) <= _SNAP * nearest, nearest, position)
    below = np.floor(position)
    return below, np.ceil(position), np.expm1((position - below) * grid) / math.expm1(grid)


def _on_grid(law: StepLaw, grid: float, points: int, rounding: Rounding) -> Floats:
    """The law of the rounded step, ``[points + 1]``; the last entry is the mass beyond the grid."""
    below, above, share = _cells(law, grid)
    if rounding != "spread":
        share = np.full_like(share, float(rounding == "up"))
    places = np.minimum(np.concatenate([below, above]), points).astype(np.int64)
    masses = np.concatenate([law.weights * (1 - share), law.weights * share])
    return np.bincount(places, masses, points + 1).astype(np.float64)


def _visits(step: Floats) -> Iterator[float]:
    """Expected visits m_0, m_1, ... of S_1, S_2, ... to the grid points; the last entry of `step` is beyond the grid.

    By the first step m_j = f_j + sum_{i<=j} f_i m_{j-i}; solved for m_j with positive terms alone.
    """
    moving = float(np.sum(step[1:]))
    if moving == 0:  # the walk never leaves 0
        yield math.inf
        return
    points = len(step) - 1
    visits = np.empty(points)
    longest = int(np.flatnonzero(step[:points]).max(initial=0))
    backwards = step[points - 1 :: -1].copy()  # backwards[points - 1 - i] is f_i; BLAS wants it contiguous
    for j in range(points):
        first = max(0, j - longest)
        visits[j] = (step[j] + visits[first:j] @ backwards[points - 1 - j + first : points - 1]) / moving
        yield float(visits[j])


def _dual(visits: Iterator[float], capacity: float, grid: float) -> tuple[float, float, int]:
    """Smallest value of B3' on the grid, a number below its value at every t, and the grid point."""
    inside = prefixes = 0.0
    weight, at = 1.0, 0
    for at, visit in enumerate(visits):
        weight = math.exp(-at * grid)
        if prefixes + visit / weight >= capacity:
            value = inside + (capacity - prefixes) * weight
            return value, value, at
        inside += visit
        prefixes += visit / weight
    # Prefixes at larger t only add to `inside`: each weighs more than the e^-t it takes from P.
    return inside + (capacity - prefixes) * weight, inside, at


def _plain(visits: Iterator[float], capacity: float, grid: float) -> tuple[float, float, int]:
    """As :func:`_dual` for B3: U is constant on [jh, (j+1)h), so t = (j+1)h is the best there; t = 0 gives P."""
    inside, best, at = 0.0, float(capacity), -1
    for j, visit in enumerate(visits):
        inside += visit
        if inside >= best:  # U is nondecreasing
            return best, best, at
        value = inside + capacity * math.exp(-(j + 1) * grid)
        if value < best:
            best, at = value, j
    return best, min(best, inside), at


def _influence(step: Floats, at: int, form: RenewalForm, grid: float) -> Floats:
    r"""Derivative of the bound when mass is added to the law at each grid point up to `at`; t is optimal and stays
    fixed.

    :math:`\sum_{n\ge 1} F^{*n}` changes by R * dF * R with :math:`R = \sum_{n\ge 0} F^{*n}`.
    """
    from scipy.signal import fftconvolve

    if at < (1 if form == "dual" else 0):
        return np.zeros(1)
    renewals = np.fromiter(islice(_visits(step), at + 1), dtype=np.float64)
    renewals[0] += 1
    gain = -np.expm1(-grid * np.arange(at + 1)) if form == "dual" else np.ones(at + 1)
    twice = fftconvolve(renewals, renewals)[: at + 1]
    return fftconvolve(twice, gain)[at::-1]


def _sampling_error(law: StepLaw, influence: Floats, grid: float) -> float:
    """Half the width of the 95% interval from the influence of each independent draw."""
    from scipy.special import stdtrit

    known, draw = np.unique(np.asarray(law.draws), return_inverse=True)
    if len(known) < 2:
        return math.inf
    below, above, share = _cells(law, grid)
    reach = np.append(influence, 0.0)
    lower, upper = (reach[np.minimum(place, len(influence)).astype(np.int64)] for place in (below, above))
    value = (1 - share) * lower + share * upper
    centred = law.weights * (value - law.weights @ value)
    per_draw = np.bincount(draw, centred)
    spread = math.sqrt(len(known) / (len(known) - 1) * float(per_draw @ per_draw))
    return float(stdtrit(len(known) - 1, (1 + CONFIDENCE) / 2)) * spread
