"""Columns of a draft whose pmfs depend on where the call starts (§10).

Such a trace has, besides the columns ``[N]`` of the target, columns ``[N, K]`` by start and depth: entry ``[n, i - 1]``
is about the i-th draft of a call whose first draft stands at position n, given that the drafts before it equal the
text. Their names are those of the columns by position with the prefix ``start_``. The columns by position of the same
draft are those of depth 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.errors import SettingError, TraceError, argument

Floats = NDArray[np.float64]
Columns = Mapping[str, NDArray[Any]]
"""Statistics along a text by name; the names are those of :mod:`spectheory.trace`."""
PREFIX = "start_"
"""Begins the names of columns by start and depth."""
OF_TEXT = ("token", "log_target")
OF_TARGET = "target_"
"""Columns of the text and of the target alone, and how the others' names begin: they do not depend on the start."""


def deepest(columns: Columns) -> int | None:
    """K, the deepest draft recorded by start; None where every draft depends on its position alone.

    Examples
    --------
    >>> deepest({"log_draft": np.zeros(5)}), deepest({"start_log_draft": np.zeros((5, 3))})
    (None, 3)
    """
    return next((shape_of(columns, name)[1] for name in columns if name.startswith(PREFIX)), None)


def shape_of(columns: Columns, name: str) -> tuple[int, ...]:
    """The shape of a column; one that is still on disk is not read for it."""
    shapes: Mapping[str, tuple[int, ...]] | None = getattr(columns, "shapes", None)
    return np.shape(columns[name]) if shapes is None else shapes[name]


def _of_draft(name: str) -> bool:
    """Whether a column by position says something of the draft, so that it may depend on the start."""
    return not (name in OF_TEXT or name.startswith(OF_TARGET))


def read_as(columns: Columns, name: str) -> str:
    """The column that calls read for one by position: that by start where the draft's pmfs depend on it."""
    return PREFIX + name if deepest(columns) is not None and _of_draft(name) else name


def missing(columns: Columns, needs: Sequence[str]) -> list[str]:
    """The columns that calls read for `needs`, by their own names, and that are not there.

    Examples
    --------
    >>> missing({"log_target": np.zeros(2), "start_log_draft": np.zeros((2, 3))}, ["log_target", "race_g"])
    ['start_race_g']
    """
    return [name for name in (read_as(columns, name) for name in needs) if name not in columns]


def within(columns: Columns, k: int) -> int:
    """The most drafts of a call that are recorded, at most `k`."""
    most = deepest(columns)
    return k if most is None else min(k, most)


def by_position(columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The columns without those by start: the first draft at each position, as if its pmf served every depth.

    This is right for a draft model, and wrong for a head.

    Examples
    --------
    >>> list(by_position({"log_draft": np.zeros(5), "start_log_draft": np.zeros((5, 3))}))
    ['log_draft']
    """
    return {name: values for name, values in columns.items() if not name.startswith(PREFIX)}


def by_depth(columns: Columns, k: int) -> Iterator[AtDepth]:
    """The columns at depths 1 to k of calls that start at each row."""
    most = deepest(columns)
    if most is not None and k > most:
        raise SettingError(
            f"{k} drafts in a call are asked for",
            limit=f"the trace records this draft to depth {most}",
            remedy=f"use at most {most}, or measure again with a larger {argument('depth')}",
        )
    return (AtDepth(columns, depth) for depth in range(1, k + 1))


def along_calls(columns: Columns, k: int, at: Callable[[Columns], Floats], *, fill: float) -> Floats:
    """A statistic of the drafts of calls, by start and depth, ``[N, k]``.

    `at` makes it ``[N]`` from columns by position. Entries past the end carry no meaning; they are `fill` where the
    columns are by position.

    Examples
    --------
    >>> along_calls({"x": np.arange(3.0)}, 2, lambda columns: columns["x"], fill=9.0).tolist()
    [[0.0, 1.0], [1.0, 2.0], [2.0, 9.0]]
    """
    if deepest(columns) is not None:
        return np.stack([at(columns_at) for columns_at in by_depth(columns, k)], axis=1)
    padded = np.concatenate([at(columns), np.full(k - 1, fill)])
    return np.lib.stride_tricks.sliding_window_view(padded, k)


def log_ratio(columns: Columns) -> Floats:
    """The log-ratio log q - log p of the text's tokens, ``[N]``: -inf where the draft cannot draw one."""
    return np.asarray(columns["log_draft"] - columns["log_target"])


class AtDepth(Mapping[str, NDArray[Any]]):
    """The columns at one depth of calls that start at each row, ``[N]`` or ``[N, r]``, by the names of positions.

    Rows whose depth lies past the end of their text carry no meaning.

    Examples
    --------
    >>> at = AtDepth({"log_target": np.array([-1.0, -2.0, -3.0]), "start_log_draft": np.array([[-1, -5]] * 3)}, 2)
    >>> at["log_target"].tolist(), at["log_draft"].tolist()
    ([-2.0, -3.0, -3.0], [-5, -5, -5])
    """

    def __init__(self, columns: Columns, depth: int) -> None:
        self._columns, self._depth = columns, depth
        self._by_start = deepest(columns) is not None

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The column of that name at this depth."""
        column = self._columns.get(PREFIX + name)
        if column is not None:
            return column[:, self._depth - 1]
        values = self._columns[name]
        if self._by_start and _of_draft(name):
            raise TraceError(
                f"the trace has no {PREFIX}{name}",
                limit="the draft's pmfs depend on where the call starts, and this column is by position alone",
                remedy="use another rule, or measure again with this version",
            )
        rows = np.minimum(np.arange(len(values)) + self._depth - 1, len(values) - 1)
        return values[rows]

    def __iter__(self) -> Iterator[str]:
        """The names of positions."""
        return (name for name in self._columns if not name.startswith(PREFIX))

    def __len__(self) -> int:
        """How many there are."""
        return sum(1 for _ in self)
