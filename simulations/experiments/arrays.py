"""Large arrays of a task's parameters: outside its JSON, in rows of the results file named by their hash.

Every list of at least :data:`LARGE` floats, or row of an array, is one. In JSON stands ``{"sha256": ...}`` in its
place.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.errors import SettingError
from spectheory.store import Row, payload_of

LARGE = 4096
"""Numbers from which an array is no longer written as JSON."""

_NAMED = "sha256"

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Arrays:
    """Large arrays by hash: `held` in memory, the others in `rows` of the results file at `path`."""

    held: Mapping[str, Floats] = field(default_factory=dict)
    path: Path = field(default_factory=Path)
    rows: dict[str, Row] = field(default_factory=dict)

    def of(self, name: str) -> Floats:
        """A copy of an array."""
        if name in self.held:
            return self.held[name].copy()
        if name not in self.rows:
            raise self._unreadable("its row is damaged")
        line, _, start, size = self.rows[name]
        try:
            return _read(name, self.path, line, start, size).copy()
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from error

    def only(self, names: Iterable[str]) -> Arrays:
        """Those of these names that the file has."""
        return Arrays(path=self.path, rows={name: self.rows[name] for name in names if name in self.rows})

    def _unreadable(self, why: str) -> SettingError:
        return SettingError(
            f"an array in {self.path} cannot be read ({why})",
            limit="a task's parameters hold it",
            remedy="describe the task anew, its results are found again",
        )


@lru_cache(maxsize=8)  # the next batch needs them again
def _read(name: str, path: Path, line: int, start: int, size: int) -> Floats:
    numbers = np.frombuffer(payload_of(path, Row(line, {}, start, size)))
    if digest(numbers) != name:
        raise OSError(errno.EIO, f"row {line} holds other numbers than its name says")
    return numbers


def digest(numbers: Floats) -> str:
    """SHA-256 of type, size and numbers."""
    return hashlib.sha256(f"{numbers.dtype.str}{numbers.size}:".encode() + numbers.tobytes()).hexdigest()


def folded(value: Any) -> tuple[Any, dict[str, Floats]]:
    """A value with hashes in the place of large arrays, and the arrays."""
    held: dict[str, Floats] = {}

    def name(numbers: Floats) -> dict[str, str]:
        held[digest(numbers)] = numbers
        return {_NAMED: digest(numbers)}

    return _folded(value, name), held


def _folded(value: Any, name: Callable[[Floats], Any]) -> Any:
    if isinstance(value, Mapping):
        if set(value) == {_NAMED}:
            raise SettingError(
                f"a parameter has the key {_NAMED!r} alone",
                limit="it stands for a large array",
                remedy="use another key",
            )
        return {key: _folded(value[key], name) for key in value}
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return [_folded(row, name) for row in value]
    if not isinstance(value, list | tuple | np.ndarray) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return value
    if len(value) < LARGE:
        return [_folded(item, name) for item in value] if isinstance(value, list | tuple) else value
    floats = value.dtype.kind == "f" if isinstance(value, np.ndarray) else set(map(type, value)) == {float}
    numbers = np.array(value, dtype=np.float64) if floats else None
    # What is not finite is refused where JSON is written.
    return value if numbers is None or not np.isfinite(numbers).all() else name(numbers)


def unfolded(value: Any, arrays: Arrays) -> Any:
    """The value with its arrays."""
    if isinstance(value, dict):
        if set(value) == {_NAMED}:
            return arrays.of(value[_NAMED])
        return {key: unfolded(value[key], arrays) for key in value}
    return [unfolded(item, arrays) for item in value] if isinstance(value, list) else value


def named_in(value: Any) -> list[str]:
    """The hashes that stand in a folded value."""
    if isinstance(value, dict):
        return (
            [value[_NAMED]] if set(value) == {_NAMED} else [name for each in value.values() for name in named_in(each)]
        )
    return [name for each in value for name in named_in(each)] if isinstance(value, list) else []
