"""Columns of a trace in its file: types and lists as stored, runs of texts, and large columns that stay there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.errors import SpectheoryError, TraceError
from spectheory.trace import parquet
from spectheory.trace.checks import faults
from spectheory.trace.columns import COLUMNS
from spectheory.trace.parquet import _Ragged
from spectheory.truncated.top import TopLogProbs

BLOCK = 1 << 15
"""Positions of a block: 16 numbers for each are 4 MB. A longer text is a block of its own."""


def _whole_texts(lengths: NDArray[np.int64], positions: int) -> Iterator[slice]:
    """Runs of texts of at most so many positions, each of one text at least.

    Examples
    --------
    >>> [(run.start, run.stop) for run in _whole_texts(np.array([3, 3, 9, 1]), 6)]
    [(0, 2), (2, 3), (3, 4)]
    """
    ends = np.cumsum(lengths)
    first = 0
    while first < len(lengths):
        before = int(ends[first] - lengths[first])
        last = max(int(np.searchsorted(ends, before + positions, side="right")), first + 1)
        yield slice(first, last)
        first = last


def _rows_of(
    columns: Mapping[str, NDArray[Any]], names: Collection[str], sizes: Iterable[int]
) -> Iterator[dict[str, NDArray[Any]]]:
    """The columns of these names in runs of so many rows, from the first on."""
    first = 0
    for size in sizes:
        yield {name: columns[name][first : first + size] for name in columns if name in names}
        first += size


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


MODELS = ("target", "draft")
RAGGED = {"top_tokens": np.int64, "top_log_probs": np.float64, "extra_tokens": np.int64, "extra_log_probs": np.float64}
"""Columns of a model with a list per row: those of a :class:`TopLogProbs`."""
SINGLE = {"vocabulary": np.int64, "error": np.float64}
"""Columns of a model with a number per row."""
LIST_COLUMNS = tuple(f"{model}_{name}" for model in MODELS for name in (*RAGGED, *SINGLE))
_FIELDS = {"top_tokens": "tokens", "top_log_probs": "log_probs"}

Pair = tuple[TopLogProbs, TopLogProbs]


def _to_columns(lists: Sequence[Pair]) -> dict[str, _Ragged | NDArray[Any]]:
    """Columns of the lists; none without lists."""
    columns: dict[str, _Ragged | NDArray[Any]] = {}
    for model, tops in zip(MODELS, zip(*lists, strict=True), strict=bool(lists)):
        for name, kind in RAGGED.items():
            rows = [getattr(top, _FIELDS.get(name, name)) for top in tops]
            columns[f"{model}_{name}"] = _Ragged.of(rows, kind)
        for name, kind in SINGLE.items():
            columns[f"{model}_{name}"] = np.array([getattr(top, name) for top in tops], kind)
    return columns


def _from_columns(columns: Mapping[str, _Ragged | NDArray[Any]]) -> tuple[Pair, ...]:
    """The lists that the columns hold; a list that no pmf agrees with is named by its row."""
    if not columns:
        return ()
    missing = [name for name in LIST_COLUMNS if name not in columns]
    if missing:
        raise TraceError(f"lacks {missing[0]}", limit="lists need all their columns", remedy="import the log again")
    rows = zip(*(columns[name] for name in LIST_COLUMNS), strict=True)
    each = len(LIST_COLUMNS) // 2
    return tuple((_top(row[:each], number), _top(row[each:], number)) for number, row in enumerate(rows, start=1))


def _top(values: Sequence[Any], row: int) -> TopLogProbs:
    tokens, logs, extra, extra_logs, vocabulary, error = values
    try:
        return TopLogProbs(tokens, logs, int(vocabulary), extra, extra_logs, float(error))
    except SpectheoryError as wrong:
        raise TraceError(f"lists of row {row}: {wrong.what}", limit=wrong.limit, remedy=wrong.remedy) from wrong


HELD = 1 << 18
"""Positions up to which a trace is held in memory: every column together is 80 MB."""


class OnDisk(Mapping[str, NDArray[Any]]):
    """The columns of a trace file by name, each read when it is asked for; `shapes` are known without reading.

    A column that is read is checked for itself, and in blocks beside the others that are read.
    """

    def __init__(self, path: Path, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.path, self.shapes = path, dict(shapes)

    @classmethod
    def of(cls, path: Path) -> tuple[OnDisk, dict[str, Any]] | None:
        """The columns and the header of a large trace; None for one that is read at once.

        That are small ones, those with lists, and those whose rows might differ in length.
        """
        shapes, header = parquet.shapes(path)
        known = {name: shape for name, shape in shapes.items() if name in COLUMNS}
        rows = max((shape[0] for shape in shapes.values() if shape), default=0)
        if rows <= HELD or {*LIST_COLUMNS} & set(shapes) or not all(known.values()):
            return None
        return cls(path, known), header

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The whole column."""
        if name not in self.shapes:
            raise KeyError(name)
        (columns,) = self.rows([name], [self.shapes[name][0]])
        for fault in faults(columns):
            place = "" if fault.row is None else f" of row {fault.row + 1}"
            raise TraceError(
                f"{self.path}: {fault.column}{place} {fault.what}", limit=fault.limit, remedy="measure the pair again"
            )
        return columns[name]

    def __contains__(self, name: object) -> bool:
        """Whether there is such a column."""
        return name in self.shapes

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self.shapes)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.shapes)

    def rows(self, names: Collection[str], sizes: Iterable[int]) -> Iterator[dict[str, NDArray[Any]]]:
        """The columns of these names in runs of so many rows, from the first on; unchecked."""
        return parquet.stream(self.path, [name for name in self.shapes if name in names], sizes)

    def in_memory(self) -> dict[str, NDArray[Any]]:
        """All columns in memory, as one pass reads them."""
        (columns,) = self.rows(self.shapes, [max(shape[0] for shape in self.shapes.values())])
        return columns
