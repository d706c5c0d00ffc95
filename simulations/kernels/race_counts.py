"""What the kernels of the races take and give: two pmfs at one position in, counts of ranks out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulations.draws.streams import Words
from simulations.models.chains import checked_stream
from spectheory.distributions import validate_pair
from spectheory.errors import PmfError, SettingError, ShapeError

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class Race(NamedTuple):
    """Checked inputs of a race.

    - ``ratios``, ``[V]``: p/q, 0 where neither has mass and infinite outside the draft's support.
    - ``counts``, ``[1, max_rank + 2]`` or ``[V, max_rank + 2]``: zeros, to be filled: column 0 for outputs without a
      rank, r for rank r, the last for higher ranks.
    """

    target: Floats
    draft: Floats
    ratios: Floats
    counts: Counts


def enter_race(target: Any, draft: Any, *, trials: int, max_rank: int, state: Words, by_output: bool = False) -> Race:
    """Check what a race is given."""
    pmfs = validate_pair(target, draft)
    p, q = (np.require(pmf, dtype=np.float64, requirements=("C", "W")) for pmf in pmfs[:2])
    if p.shape != q.shape or p.ndim != 1:
        raise ShapeError(
            f"target is {p.shape} and draft {q.shape}", limit="a race is at one position", remedy="pass two arrays [V]"
        )
    for name, value in (("trials", trials), ("max_rank", max_rank)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise SettingError(f"{name} is {value!r}", limit="must be a whole number >= 1", remedy="ask for at least 1")
    checked_stream(state)
    with np.errstate(over="ignore"):
        ratios = np.divide(p, q, out=np.where(p > 0, np.inf, 0.0), where=q > 0)
    beyond = np.flatnonzero((q > 0) & np.isinf(ratios))
    if beyond.size:
        x = int(beyond[0])
        raise PmfError(
            f"target/draft at token {x} is {p[x]:g}/{q[x]:g}",
            limit="p/q must be a finite float where q > 0",
            remedy="set the draft to 0 there",
        )
    counts = np.zeros((p.size if by_output else 1, int(max_rank) + 2), dtype=np.int64)
    return Race(p, q, ratios, counts)
