"""How kernels are compiled, and their scratch memory. Only kernels import this file, as it needs numba."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])

_of_thread = threading.local()


def compiled(function: F) -> F:
    """Compile a function on its first call, and cache it on disk if a folder is writable.

    Products may be fused into sums, nothing else: sums keep their order, and infinities and NaN their meaning.
    Functions compiled into one another must share a file, all but :func:`plus`, which stays as it is: the disk cache is
    renewed only when *its* file changes.
    """
    return _compiled(function, {"contract"})


def compiled_in_any_order(function: F) -> F:
    """Compile an addition of two numbers (nothing else: it would be wrong) so that a loop of it is vectorised in any
    order.
    """
    return _compiled(function, {"reassoc"})


def _compiled(function: F, freedoms: set[str]) -> F:
    # nogil: other threads must run, such as one that takes signals and one that ends a worker with its parent.
    options: dict[str, Any] = {"error_model": "numpy", "fastmath": freedoms, "nogil": True}
    try:
        return cast(F, numba.njit(cache=True, **options)(function))
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        return cast(F, numba.njit(**options)(function))


@compiled_in_any_order
def plus(total: Any, term: Any) -> Any:
    """A sum whose order is free."""
    return total + term


def scratch(name: str, size: int, dtype: Any = np.float64) -> NDArray[Any]:
    """Uninitialised memory of this thread, valid until the same name is requested again; kept, as fresh pages cost
    time.
    """
    array = getattr(_of_thread, name, None)
    if array is None or array.size < size:
        array = np.empty(size, dtype=dtype)
        setattr(_of_thread, name, array)
    return cast("NDArray[Any]", array[:size])
