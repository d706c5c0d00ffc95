"""Columns of a large trace that stay in their file: read by blocks of rows, or whole where one is asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from spectheory.errors import TraceError
from spectheory.trace import parquet
from spectheory.trace.checks import faults
from spectheory.trace.columns import COLUMNS
from spectheory.trace.lists import LIST_COLUMNS

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
        (found,) = self.rows([name], [self.shapes[name][0]])
        for fault in faults(found):
            place = "" if fault.row is None else f" of row {fault.row + 1}"
            raise TraceError(
                f"{self.path}: {fault.column}{place} {fault.what}", limit=fault.limit, remedy="measure the pair again"
            )
        return found[name]

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

    def held(self) -> dict[str, NDArray[Any]]:
        """All columns in memory, as one pass reads them."""
        (found,) = self.rows(self.shapes, [max(shape[0] for shape in self.shapes.values())])
        return found
