"""A2 between certain ends, without a sort: rounding and the order of nearly equal ratios included."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import to_device

from spectheory import kernels
from spectheory.distributions import Array, validate_pair
from spectheory.divergences import hockey_stick_at_ratios
from spectheory.errors import ShapeError
from spectheory.intervals import Interval

WIDTH = 5e-10
"""Width left to the cells that are not summed exactly; rounding may add as much and 1e-9 is still kept."""

ROUNDOFFS_PER_ADDITION = 16
"""How many units of roundoff (2^-53) either end moves by at most, per addition in the longest chain behind a sum.

n additions of non-negative terms leave a relative error of n units. Every N(t), at least 1/2, is made of two such sums
weighed 1 - t and t, the first one a difference from the whole: 6 n units at a cell's mean t, 4 n at an edge. With the
cell's own masses and the last sum an upper end is off by 10 n; a lower end by 6 n, and as the slope of F is at most 3
and all masses weigh 2, by another 6 n for the place in the cell. The sorted form is off by 3 n. Terms without n, the
order of ratios that round to ties among them, are below 100 units, less than the 16 times 8 that are added to n.
"""


def race_enclosure(target: Any, draft: Any) -> Interval:
    r"""Certain ends of the acceptance of the race at one position (A2, bounds; ``kobus2025``).

    They enclose :math:`\sum_x 1/\sum_y\max(p_y/p_x, q_y/q_x)` of the entries as given, taken as exact numbers, and
    :math:`\sum_x p_x/(1+g(p_x/q_x))`, which differs from it as far as the entries sum to other than one. Rounding is
    included. Language models' pmfs in double precision give a width below 1e-9; those rounded to single sum to one less
    exactly, and the width is as much wider.

    Examples
    --------
    >>> enclosure = race_enclosure([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    >>> enclosure.low < 8.2 / 13 < enclosure.high, enclosure.high - enclosure.low < 1e-9
    (True, True)
    """
    pair = validate_pair(target, draft)[:2]
    if pair[0].ndim != 1 or pair[1].ndim != 1:
        raise ShapeError(
            f"target is {pair[0].ndim}- and draft {pair[1].ndim}-dimensional",
            limit="an interval is of one position",
            remedy="pass one row at a time",
        )
    p, q = (np.require(to_device(x, "cpu"), np.float64, ("C", "W")) for x in pair)
    if kernels.usable(p, q):
        from spectheory.kernels.race import race_bracket

        low, high, additions = race_bracket(p, q, WIDTH)
    else:
        low = high = float(np.sum(p / (1 + hockey_stick_at_ratios(p, q, np))))
        additions = p.size
    off = abs(float(np.sum(p)) - 1) + ROUNDOFFS_PER_ADDITION * (additions + 8) * sys.float_info.epsilon / 2
    low, high = max(low - off, 0.0), high + off
    return Interval(low, (low + high) / 2, high, "bound")


# A3: closed forms around the acceptance rate of the race


class RaceInequalities(NamedTuple):
    """Bounds ``[...]`` on the race's acceptance rate (A3): three from below, then two from above.

    In order: half the harmonic-mean similarity; the sum of 1/(1/p + 1/q - 1), never below the first; (1 - TV)/(1 + TV);
    1 - TV; the harmonic-mean similarity, never below the fourth.

    Examples
    --------
    >>> RaceInequalities(0.4, 0.5, 0.5, 0.7, 0.8)._fields[3]
    'token'
    """

    half_similarity: Array
    reciprocals: Array
    from_total_variation: Array
    token: Array
    similarity: Array


def race_inequalities(target: Any, draft: Any) -> RaceInequalities:
    r"""The bounds of A3 on the acceptance rate of the race, each ``[..., V]`` to ``[...]``.

    .. math:: \tfrac12 S_{HM} = \sum_x\frac{p_xq_x}{p_x+q_x} \le \sum_x\frac{1}{1/p_x+1/q_x-1} \le \alpha_{race}, \qquad
        \frac{1-TV}{1+TV} \le \alpha_{race} \le 1-TV \le S_{HM}

    The first is the form that Lemma 3.1 of ``kobus2025`` most likely has, the fraction is ``daliri2025``'s. Every step
    holds term by term. The look-alike :math:`S/(2-S) \le \alpha_{race}` is false.

    Examples
    --------
    >>> bounds = race_inequalities([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    >>> [round(float(value), 4) for value in bounds]
    [0.4357, 0.5098, 0.5385, 0.7, 0.8714]
    """
    p, q, xp = validate_pair(target, draft)
    total = p + q
    safe = xp.where(total > 0, total, xp.ones_like(total))
    # 1/(1/p + 1/q - 1) = pq/(p + q - pq), without a reciprocal of a small number.
    both = xp.where(total > 0, total - p * q, xp.ones_like(total))
    half = xp.sum(p * (q / safe), axis=-1)
    token = xp.sum(xp.minimum(p, q), axis=-1)
    return RaceInequalities(
        half_similarity=half,
        reciprocals=xp.sum(p * (q / both), axis=-1),
        from_total_variation=token / (2 - token),
        token=token,
        similarity=2 * half,
    )
