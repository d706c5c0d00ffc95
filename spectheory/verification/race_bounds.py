"""A2 between certain ends, without a sort: rounding and the order of nearly equal ratios included."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from array_api_compat import to_device

from spectheory import kernels
from spectheory.distributions import validate_pair
from spectheory.divergences import hockey_stick_at_ratios
from spectheory.errors import ShapeError
from spectheory.intervals import Interval

WIDTH = 5e-10
"""Width left to the cells that are not summed exactly; rounding may add as much, and 1e-9 is kept in all."""

ERRORS_PER_ADDITION = 16
"""The result moves by at most this many half-precisions per addition in the longest chain behind a sum.

A chain of n additions of non-negative terms is off by n half-precisions, relative. Cells: N >= 1/2 takes its two sums
with a factor of 6, an upper end 10 in all, a lower end, where the place in the cell counts too, 13. Sort: 3.
"""


def race_enclosure(target: Any, draft: Any) -> Interval:
    r"""Certain ends of the acceptance of the race at one position (A2, bounds; ``kobus2025``).

    They enclose :math:`\sum_x 1/\sum_y\max(p_y/p_x, q_y/q_x)` of the entries as given, taken as exact numbers, and
    :math:`\sum_x p_x/(1+g(p_x/q_x))`, which differs from it as far as the entries sum to other than one. Rounding is
    included. Language models' pmfs in double precision give a width below 1e-9; those rounded to single sum to one less
    exactly, and the width is as much wider.

    Parameters
    ----------
    target, draft : array ``[V]``
        Pmfs over one vocabulary; any precision, summed in double.

    Returns
    -------
    Interval
        Of kind ``bound``; the best value is its middle.

    Raises
    ------
    PmfError, ShapeError
        If the arrays are not pmfs of one position, or do not fit.

    Examples
    --------
    >>> found = race_enclosure([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    >>> found.low < 8.2 / 13 < found.high, found.high - found.low < 1e-9
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
        from spectheory.kernels.race_bracket import race_bracket

        low, high, additions = race_bracket(p, q, WIDTH)
    else:
        low = high = float(np.sum(p / (1 + hockey_stick_at_ratios(p, q, np))))
        additions = p.size
    off = abs(float(np.sum(p)) - 1) + ERRORS_PER_ADDITION * (additions + 8) * sys.float_info.epsilon / 2
    low, high = max(low - off, 0.0), high + off
    return Interval(low, (low + high) / 2, high, "bound")
