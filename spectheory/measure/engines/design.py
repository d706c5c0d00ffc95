"""The points at which a server is timed: as few as determine the time of a step, and one more for the error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from spectheory.checks import in_range
from spectheory.errors import SettingError, argument

__all__ = ["Point", "timed_points"]

_MOST = {"--batch": 4096, "--context": 1 << 24, "--k": 1024}


@dataclass(frozen=True, order=True)
class Point:
    """`batch` requests that decode together, each with `context` cached tokens in the mean, and `k` drafts per call.

    k = 0 is plain decoding.
    """

    k: int
    batch: int
    context: int


def timed_points(batches: Sequence[int], contexts: Sequence[int], ks: Sequence[int]) -> tuple[Point, ...]:
    r"""The points of a plan, by k: at each k three corners of batch and context, and the middle.

    At a fixed k the time of a step is :math:`t = a + bB + cBL` (C3). Of all three points in the ranges of B and L, the
    smallest and the largest batch at the shortest context and the largest batch at the longest have the largest
    determinant, :math:`B_1 (B_1 - B_0)(L_1 - L_0)` (D-optimal, for equal errors): they tell the three terms apart best.
    The middle, at the geometric mean of the batches and the mean of the contexts, is the point for the error. A plan
    needs k = 0 and one or more other k. Points of different k do not depend on each other, so further k can be added.

    With one context, or one batch, two corners remain. Batches and contexts between the ends replace the means.

    Parameters
    ----------
    batches, contexts, ks
        Sequences decoded together; mean cached tokens of each; drafts per call, 0 for plain decoding.

    Raises
    ------
    SettingError
        If a number is out of range.

    Examples
    --------
    >>> [(point.batch, point.context) for point in timed_points([1, 16], [200, 1000], [0])]
    [(1, 200), (16, 200), (16, 1000), (4, 600)]
    >>> [(point.k, point.batch) for point in timed_points([1, 8], [200], [0, 3])]
    [(0, 1), (0, 8), (0, 3), (3, 1), (3, 8), (3, 3)]
    """
    batches, contexts = (
        in_range(argument(name, option), values, _MOST[option])
        for name, option, values in (("batches", "--batch", batches), ("contexts", "--context", contexts))
    )
    for name, values in (("batches", batches), ("contexts", contexts)):
        if not values:
            raise SettingError(f"{name} is empty", limit="needs one at least", remedy="name numbers")
    drafted = in_range(argument("ks", "--k"), [k for k in ks if k], _MOST["--k"])
    (small, *between), large = sorted(set(batches))[:-1] or batches[:1], max(batches)
    (short, *inside), long = sorted(set(contexts))[:-1] or contexts[:1], max(contexts)
    corners = dict.fromkeys([(small, short), (large, short), (large, long)])
    middle = product(between or [round(math.sqrt(small * large))], inside or [(short + long) // 2])
    points = [*corners, *middle]
    return tuple(Point(k, *at) for k in sorted({*drafted, *([0] if 0 in ks else [])}) for at in points)
