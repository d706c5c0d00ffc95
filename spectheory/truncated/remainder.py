r"""What recursive rejection leaves over (R3) when only the largest probabilities are known.

With :math:`E(s) = \sum_x(p_x-sq_x)_+ = 1-s+g(s)` the mass left after m rejections is :math:`G_m = P(R>m) = E(s_{m+1})`,
:math:`s_1 = 0`, :math:`s_{r+1} = s_r + E(s_r)`. E is largest at the disjoint tails and least at the best completion,
and s + E(s) never falls in s: by induction each :math:`s_r` lies between its values at these two.

**G does not, for m > 1**: where more is left at first, s goes further. Of p = (.8, .15, .05, 0), q = (.2, .1, .1, .6)
the merger of the second and third token lowers every g, and yet P(R <= 2) falls, from .53 to .52. So G is enclosed.
E(s) is C(s), over the tokens known to both, and a *tail* of mass T and draft mass U, which falls in s, is convex, and
lies between the tail of the best completion, t(s), and T.

- *Low*. Let the tail at s_{m+1} have fallen by a slope of u in the mean, to :math:`T-us_{m+1}`. Before, it is below T -
  us; so every s_r is at most what C(s) + T - us makes it, S(u), and G_m at least C + T - us at S(u), and C + t.
- *High*. Let the tail at s_{m+1} be v. Before, it is at least v, and t; so every s_r is at least what C + max(t, v)
  makes it, S(v), and G_m is at most C + v at s = S(v).

The ranges [0, U] of u and [0, T] of v are cut into cells, and of each the worse end is taken: the result is certain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spectheory.truncated.completions import best_completion, disjoint_tails
from spectheory.truncated.masses import Floats
from spectheory.truncated.top import TopLogProbs

_CELLS = 512
"""Cells of an unknown slope or height; the ends are loose by about k^2/2 times the tail over this number."""


class Remainders(NamedTuple):
    """Ranges of :math:`s_{m+1}` and :math:`G_m`, m = 0..k, each ``[k + 1]``."""

    s_low: Floats
    s_high: Floats
    left_low: Floats
    left_high: Floats


def remainders(target: TopLogProbs, draft: TopLogProbs, k: int) -> Remainders:
    """Certified ranges for k rejections, up to rounding: 512 O(k m)."""
    near, far = best_completion(target, draft), disjoint_tails(target, draft)
    both = len(far[0]) - 2
    known, tail = (near[0][:both], near[1][:both]), (near[0][both:], near[1][both:])
    mass, slope = far[0][-2], far[1][-1]
    cells = np.linspace(0.0, 1.0, _CELLS + 1)
    s_most, s_least = np.zeros(_CELLS), np.zeros(_CELLS)
    rows = [(0.0, 0.0, 1.0, 1.0)]
    for _ in range(k):
        s_most = s_most + _left(*known, s_most) + np.maximum(mass - slope * cells[:-1] * s_most, _left(*tail, s_most))
        s_least = s_least + _left(*known, s_least) + np.maximum(mass * cells[:-1], _left(*tail, s_least))
        low = _left(*known, s_most) + np.maximum(mass - slope * cells[1:] * s_most, _left(*tail, s_most))
        high = _left(*known, s_least) + mass * cells[1:]
        rows.append((float(s_least[0]), float(s_most[0]), float(low.min()), float(high.max())))
    s_low, s_high, left_low, left_high = np.array(rows).T
    return Remainders(s_low, np.maximum(s_low, s_high), left_low, np.maximum(left_low, left_high))


def remainder_scale(k: int) -> float:
    """How much a change of either pmf by a distance of d moves these ranges, in units of d; E(s) by max(1, s)."""
    return 2.0 * (k + 1) ** 2


def _left(p: Floats, q: Floats, s: Floats) -> Floats:
    """The sum of (p - s q)+ at each s."""
    return np.asarray(np.maximum(p - s[:, None] * q, 0.0).sum(axis=-1))
