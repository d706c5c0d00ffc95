"""Fast loops for float64 theory on one core: compiled where numba is installed, plain Python or arrays otherwise.

Kernels of pmfs have a twin in the array API that gives the same numbers with any array library. Inputs are trusted;
:func:`usable` says which arrays the kernels take. numba compiles a kernel when a large vocabulary
first needs it: a few seconds once per machine.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SMALLEST = 4096
"""Vocabulary size below which array operations are fast enough without compiling."""


@cache
def installed() -> bool:
    """Whether numba can be imported; a version too old for this numpy counts as missing."""
    try:
        importlib.import_module("numba")
    except ImportError:
        return False
    return True


def pays(positions: int) -> bool:
    """Whether so many positions of texts are worth a compiled loop, and there is one."""
    return positions >= SMALLEST and installed()


def usable(*arrays: Any, dtypes: tuple[type[np.floating[Any]], ...] = (np.float64,)) -> bool:
    """Whether the kernels take these arrays ``[..., V]``: numpy, of these types, V >= :data:`SMALLEST`, and numba."""
    fitting = (type(a) is np.ndarray and a.dtype in dtypes and a.ndim > 0 and a.shape[-1] >= SMALLEST for a in arrays)
    return all(fitting) and installed()


def rows(*arrays: NDArray[Any]) -> Iterator[tuple[tuple[int, ...], list[NDArray[Any]]]]:
    """Contiguous vectors of arrays ``[..., V]`` that broadcast in their leading dimensions, each with its index."""
    for at in np.ndindex(np.broadcast_shapes(*(a.shape[:-1] for a in arrays))):
        yield at, [_row(a, at) for a in arrays]


def _row(array: NDArray[Any], at: tuple[int, ...]) -> NDArray[Any]:
    sizes = array.shape[:-1]
    places = zip(at[len(at) - len(sizes) :], sizes, strict=True)
    return np.require(array[tuple(i if size > 1 else 0 for i, size in places)], requirements=("C", "W"))
