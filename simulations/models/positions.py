"""Pmfs of single positions, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import validate_pair, validate_pmf
from spectheory.errors import SettingError, ShapeError

Floats = NDArray[np.float64]

MOST_OUTPUTS = 4096
"""Largest vocabulary whose outputs are counted and compared one by one: each is a number of every saved batch."""


def one_pair(target: Any, draft: Any) -> tuple[Floats, Floats]:
    """Check the pmfs ``[V]`` of one position."""
    p, q, _ = validate_pair(np.asarray(target, dtype=np.float64), np.asarray(draft, dtype=np.float64))
    if p.ndim != 1 or q.ndim != 1:
        raise ShapeError(
            f"target {p.shape} and draft {q.shape}", limit="needs [V], one position", remedy="simulate row by row"
        )
    return np.ascontiguousarray(p), np.ascontiguousarray(q)


def paired_rows(target: Any, draft: Any) -> tuple[Floats, Floats]:
    """Check pairs of pmfs ``[n, V]``; a single pair ``[V]`` becomes one row, and one row serves many."""
    p, q, _ = validate_pair(np.asarray(target, dtype=np.float64), np.asarray(draft, dtype=np.float64))
    shape = np.broadcast_shapes((1, p.shape[-1]), p.shape, q.shape)
    _check_rows(shape)
    return np.ascontiguousarray(np.broadcast_to(p, shape)), np.ascontiguousarray(np.broadcast_to(q, shape))


def pmf_rows(pmfs: Any) -> Floats:
    """Check a family of pmfs ``[n, V]``; a single pmf ``[V]`` becomes one row."""
    rows = np.atleast_2d(validate_pmf(np.asarray(pmfs, dtype=np.float64), "pmfs"))
    _check_rows(rows.shape)
    return np.ascontiguousarray(rows)


def _check_rows(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] == 0:
        raise ShapeError(f"the pmfs have shape {shape}", limit="needs [n, V], n >= 1", remedy="one pmf a row")


def by_output(counts: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """The counts of each token ``[V]`` as a part of a tally; none beyond :data:`MOST_OUTPUTS`."""
    return {"output": counts} if counts.size <= MOST_OUTPUTS else {}


def whole_number(name: str, value: int) -> int:
    """Check a number of trials, ranks or nodes.

    Examples
    --------
    >>> whole_number("trials", 0)
    Traceback (most recent call last):
    spectheory.errors.SettingError: trials is 0: must be a whole number >= 1; nothing can be counted below 1
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise SettingError(
            f"{name} is {value!r}", limit="must be a whole number >= 1", remedy="nothing can be counted below 1"
        )
    return int(value)
