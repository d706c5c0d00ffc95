"""How columns by start stand on disk: numbers of few bits, counts in the smallest type."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.trace.columns import COLUMNS


def stored(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """A column as it is stored: by start in the smallest type that holds it, all others unchanged.

    Examples
    --------
    >>> stored("start_draft_rank", np.array([[1, 300]])).dtype, stored("draft_rank", np.array([1, 300])).dtype
    (dtype('uint16'), dtype('int64'))
    """
    if name not in COLUMNS or not COLUMNS[name].by_start:
        return values
    if values.dtype.kind == "f":
        return _rounded(values, COLUMNS[name].bits)
    return values.astype(np.min_scalar_type(values.max(initial=0)), copy=False) if values.dtype.kind in "iu" else values


def _rounded(values: NDArray[Any], kept: int) -> NDArray[np.float32]:
    """The nearest numbers of few significant bits; infinities stay."""
    dropped = np.uint32(np.finfo(np.float32).nmant + 1 - kept)
    with np.errstate(over="ignore"):
        bits = values.astype(np.float32).view(np.uint32)
    half = (np.uint32(1) << (dropped - np.uint32(1))) - np.uint32(1)
    even = (bits >> dropped) & np.uint32(1)
    return ((bits + half + even) >> dropped << dropped).view(np.float32)
