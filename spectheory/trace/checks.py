"""Check the columns of a trace against their table, and against each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.trace.columns import BY_START, COLUMNS, REQUIRED, ROUNDING
from spectheory.verification.by_start import PREFIX, deepest

Columns = Mapping[str, NDArray[Any]]
Bad = NDArray[np.bool_]

_FAR = 1e30
"""Ratios p/q beyond it may overflow single precision in the sums behind ``race_g``."""


@dataclass(frozen=True)
class Fault:
    """What is wrong with a column: in which row (None: in all), what stands there, and what could."""

    column: str
    row: int | None
    what: str
    limit: str


def faults(columns: Columns) -> Iterator[Fault]:
    """What is wrong with equally long columns: types and shapes, then entries, then columns that contradict others."""
    known = {name: values for name, values in columns.items() if name in COLUMNS}
    for name, values in known.items():
        if not (isinstance(values, np.ndarray) and COLUMNS[name].fits(values)):
            yield Fault(name, None, f"is {_described(values)}", f"needs for each token {COLUMNS[name].type}")
            return  # the checks below assume the types
    for name in BY_START:
        if name in known and known[name].shape[1] != (depth := deepest(known)):
            yield Fault(name, None, f"has {known[name].shape[1]} depths", f"other columns by start have {depth}")
            return
    for name, values in known.items():
        yield from _entries(name, values)
        if COLUMNS[name].law:
            yield from _sums(name, values.sum(axis=-1))
    for relation in _RELATIONS:
        if {relation.column, *relation.beside} <= set(known):
            yield from relation.check(known)


def _entries(name: str, values: NDArray[Any]) -> Iterator[Fault]:
    """The first entry that is out of range."""
    bad = COLUMNS[name].outside(values)
    if bad.any():
        row, *entry = (int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
        value, at = _shown(values[(row, *entry)]), _depth(name, entry)
        place = entry[1:] if at else entry
        what = f"has {value} as entry {place[0] + 1}" if place else f"is {value}"
        yield Fault(name, row, what + at, f"must be {COLUMNS[name].type}")


def _sums(name: str, sums: NDArray[Any]) -> Iterator[Fault]:
    """The first row of probabilities with too large a sum."""
    bad = sums > 1 + _slack(name)
    if bad.any():
        row, *entry = (int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
        what = f"sums to {_shown(sums[(row, *entry)])}{_depth(name, entry)}"
        yield Fault(name, row, what, "a row of probabilities sums to at most 1")


def _slack(name: str) -> float:
    """Relative error of a column: that of its sums, or of its bits on disk."""
    return max(ROUNDING, 2.0 ** -COLUMNS[name].bits)


def _depth(name: str, entry: Sequence[int]) -> str:
    """The depth of an entry in words, if its column is by start."""
    return f" at depth {entry[0] + 1}" if COLUMNS[name].by_start else ""


def _described(values: Any) -> str:
    if isinstance(values, np.ndarray):
        return f"an array {list(values.shape)} of {values.dtype.name}"
    return f"a {type(values).__name__}"


def _shown(value: Any) -> str:
    return f"{value:.6g}" if np.issubdtype(type(value), np.floating) else str(value)


@dataclass(frozen=True)
class _Relation:
    """A column that others bound: `broken` gets its values, then those beside it."""

    column: str
    beside: tuple[str, ...]
    limit: str
    broken: Callable[..., Bad]

    def check(self, columns: Columns) -> Iterator[Fault]:
        """The first row where the relation is broken."""
        values = columns[self.column]
        bad = self.broken(values, *(columns[name] for name in self.beside))
        if bad.any():
            row = int(np.argmax(bad))
            yield Fault(self.column, row, f"is {_shown(np.ravel(values[row])[0])}", self.limit)


def _below_square(moment: NDArray[Any], entropy: NDArray[Any]) -> Bad:
    """Where the mean square of -log p is below the square of its mean."""
    square = entropy.astype(np.float64) ** 2
    return np.asarray(moment < square - ROUNDING * (1 + square))


def _impossible_race(g: NDArray[Any], log_target: NDArray[Any], log_draft: NDArray[Any]) -> Bad:
    """Where g(c), the sum of (c q - p)_+ at c = p/q of the token, is not in [c - 1, c]; where q = 0 it is infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        c = np.exp(log_target - log_draft)
        slack = ROUNDING * (1 + c)
        off = ~((g >= c - 1 - slack) & (g <= c + slack))
    return np.asarray(np.where(c < _FAR, off, (log_draft == -math.inf) & (g != math.inf)))


def _not_the_first(slack: float, by_start: NDArray[Any], by_position: NDArray[Any]) -> Bad:
    """Where a column by start has another first draft than the column by position; of laws the ranks that both have."""
    first = by_start[:, 0]
    if first.ndim == 2:
        ranks = min(first.shape[1], by_position.shape[1])
        first, by_position = first[:, :ranks], by_position[:, :ranks]
    same = first == by_position
    if first.dtype.kind == "f":
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(first - by_position) <= slack * (1 + np.abs(by_position))
        same |= near & np.isfinite(by_position)
    return np.asarray(~same if same.ndim == 1 else ~same.all(axis=1))


_RELATIONS = (
    *(
        _Relation(name, (of_first,), f"at depth 1 it is what {of_first} says", partial(_not_the_first, _slack(name)))
        for name in BY_START
        if (of_first := name.removeprefix(PREFIX)) in COLUMNS
    ),
    _Relation(
        "target_second_moment", ("target_entropy",), "must be at least the square of target_entropy", _below_square
    ),
    _Relation("race_g", REQUIRED, "must be in [c - 1, c], c = exp(log_target - log_draft)", _impossible_race),
    _Relation("lookup_match", ("lookup_drafted",), "must be at most lookup_drafted", np.greater),
    _Relation("suffix_match", ("suffix_drafted",), "must be at most suffix_drafted", np.greater),
    _Relation("ngram_match", ("ngram_drafted",), "must be at most ngram_drafted", np.greater),
)
