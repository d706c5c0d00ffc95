"""Columns and a header as one Parquet file, and back: what is no such file is named."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as brief
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.errors import FOREIGN, TornTraceError, TraceError, argument, load_extra
from spectheory.files import loaded_json, write_whole

SCHEMA_VERSION = 3
"""Of a trace file; no other is read."""
METADATA_KEY = b"spectheory"

_GROUP = 1 << 18
"""Rows of a file that are written together."""
_BATCH = 1 << 16
"""Rows that are read together."""
_LOOKED_AT = 1 << 16
"""Values that decide about a column's encoding."""
_REPEATED = 0.25
"""With a smaller share of distinct values a dictionary of them is shorter than the bytes themselves."""


@dataclass(frozen=True)
class _Ragged:
    """A column with a list per row, of any length: row i is ``flat[offsets[i]:offsets[i + 1]]``."""

    flat: NDArray[Any]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[NDArray[Any]], kind: Any) -> _Ragged:
        """The column of these rows."""
        ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return cls(np.concatenate([np.zeros(0, kind), *rows]).astype(kind), ends)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """The rows."""
        return iter(np.split(self.flat, self.offsets[1:-1])[: len(self.offsets) - 1])


Columns = Mapping[str, NDArray[Any] | _Ragged]


def parts_of(path: Path) -> Path:
    """The file of the finished prompts of a measurement, until its trace is whole."""
    return path.with_name(path.name + ".parts")


def write(path: Path, columns: Columns, header: Mapping[str, Any]) -> None:
    """Write a file that appears when whole; the header gets the schema version."""
    pq, how = load_extra("pyarrow.parquet", extra=None), _encoding(columns)
    content = to_table(columns, header)
    write_whole(path, lambda partial: pq.write_table(content, partial, row_group_size=_GROUP, **how))


def to_table(columns: Columns, header: Mapping[str, Any]) -> Any:
    """The columns as an Arrow table with the header in its metadata."""
    pa = load_extra("pyarrow", extra=None)
    arrays = {name: _to_arrow(column, pa) for name, column in columns.items()}
    content = json.dumps({"schema": SCHEMA_VERSION, **header})
    return pa.table(arrays).replace_schema_metadata({METADATA_KEY: content.encode()})


def _to_arrow(column: NDArray[Any] | _Ragged, pa: Any) -> Any:
    if isinstance(column, _Ragged):
        return pa.LargeListArray.from_arrays(pa.array(column.offsets), pa.array(column.flat))
    array = pa.array(column.reshape(-1))
    for width in column.shape[:0:-1]:
        array = pa.FixedSizeListArray.from_arrays(array, width)
    return array


def _encoding(columns: Columns) -> dict[str, Any]:
    """How values are written: a dictionary where they repeat, else numbers by byte; all compressed."""
    by_value: list[str] = []
    by_byte: list[str] = []
    for name, column in columns.items():
        flat, lists = (column.flat, 1) if isinstance(column, _Ragged) else (column.reshape(-1), column.ndim - 1)
        first = flat[:_LOOKED_AT]
        few = flat.dtype.kind != "f" or len(np.unique(first)) <= _REPEATED * len(first)
        (by_value if few else by_byte).append(name + ".list.element" * lists)
    return {"compression": "zstd", "use_dictionary": by_value, "use_byte_stream_split": by_byte}


def read(
    path: Path, names: Collection[str], ragged: Collection[str] = ()
) -> tuple[dict[str, NDArray[Any]], dict[str, Any], dict[str, Any]]:
    """The columns of these names that are there, the header with texts and provenance, and those that may be ragged."""
    pq = load_extra("pyarrow.parquet", extra=None)
    with _reading(path), path.open("rb") as file:
        _refuse_twice(pq.read_schema(file).names, path)
        file.seek(0)
        table = pq.ParquetFile(file).read(use_threads=False)
        header = _header(table.schema.metadata, path)
        here = table.column_names
        columns = {name: _to_numpy(table.column(name), name, path) for name in here if name in names}
        return columns, header, {name: _to_rows(table.column(name), name, path) for name in here if name in ragged}


def shapes(path: Path) -> tuple[dict[str, tuple[int, ...]], dict[str, Any]]:
    """The shape of each column, empty where rows may differ in length, and the header; no column is read."""
    pq = load_extra("pyarrow.parquet", extra=None)
    with _reading(path), path.open("rb") as file:
        opened = pq.ParquetFile(file)
        schema, rows = opened.schema_arrow, int(opened.metadata.num_rows)
        _refuse_twice(schema.names, path)
        return {field.name: _shape(field.type, rows) for field in schema}, _header(schema.metadata, path)


def _shape(kind: Any, rows: int) -> tuple[int, ...]:
    shape = [rows]
    while hasattr(kind, "value_field"):
        if not hasattr(kind, "list_size"):
            return ()
        shape.append(int(kind.list_size))
        kind = kind.value_type
    return tuple(shape)


def stream(path: Path, names: Sequence[str], sizes: Iterable[int]) -> Iterator[dict[str, NDArray[Any]]]:
    """The columns of these names in runs of so many rows; no more than a run and a batch are held."""
    pa, pq = load_extra("pyarrow", extra=None), load_extra("pyarrow.parquet", extra=None)
    with _reading(path), path.open("rb") as file:
        batches = pq.ParquetFile(file).iter_batches(_BATCH, columns=list(names), use_threads=False)
        rows: Any = None
        before = 0
        for size in sizes:
            while rows is None or rows.num_rows < size:
                if (batch := next(batches, None)) is None:
                    raise TornTraceError(
                        f"{path} has {before + (rows.num_rows if rows else 0)} rows, fewer than when it was opened",
                        limit="a trace stays as it is while it is read",
                        remedy="run the command again when nothing writes the file",
                    )
                more = pa.Table.from_batches([batch])
                rows = more if rows is None else pa.concat_tables([rows, more])
            run, rows = rows.slice(0, size), rows.slice(size)
            yield {name: _to_numpy(run.column(name), name, path, before) for name in names}
            before += size


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """What goes wrong while a file is read, as errors of a trace."""
    pa = load_extra("pyarrow", extra=None)
    try:
        yield
    except MemoryError as error:
        raise TraceError(
            f"{path} does not fit in memory",
            limit="all columns are held at once",
            remedy="free memory, or measure fewer or shorter texts",
        ) from error
    except (OSError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None)  # the system's; a Parquet reader has none
        if reason is None:
            raise TornTraceError(
                f"{path} is truncated or no Parquet file",
                limit="needs a trace written by spectheory",
                remedy="run spectheory measure",
            ) from error
        missing = isinstance(error, FileNotFoundError)
        if missing and parts_of(path).exists():
            raise TraceError(
                f"{path} is missing: its measurement is unfinished",
                limit="needs the texts of all its prompts",
                remedy=argument(
                    "measure again with the same settings",
                    "run spectheory predict or measure with the same settings and --out, without --quick",
                ),
            ) from error
        if missing:
            raise TraceError(f"{path} is missing", limit="there is no such file", remedy="check the path") from error
        raise TraceError(
            f"{path} cannot be read ({reason})",
            limit="needs a trace or an engine's log",
            remedy="check the path and its permissions",
        ) from error


def _header(metadata: Mapping[bytes, bytes] | None, path: Path) -> dict[str, Any]:
    try:
        header: dict[str, Any] = loaded_json((metadata or {})[METADATA_KEY])
        version = header["schema"]
        if version == SCHEMA_VERSION and not (header["texts"] and isinstance(header["provenance"], dict)):
            raise ValueError("no texts, or a provenance of another kind")
    except FOREIGN as error:
        raise TraceError(
            f"{path} is a Parquet file but no trace",
            limit="needs the header that spectheory measure writes",
            remedy="run spectheory measure",
        ) from error
    if version != SCHEMA_VERSION:
        raise TraceError(
            f"{path} has trace schema {brief(version)}",
            limit=f"this version reads schema {SCHEMA_VERSION}",
            remedy="measure again, or use the version that wrote it",
        )
    return header


def _refuse_twice(names: Sequence[str], path: Path) -> None:
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise TraceError(
            f"{path} has {names.count(twice[0])} columns {brief(twice[0])}",
            limit="each column of a trace has a name of its own",
            remedy="write the trace again with one of them",
        )


def _to_numpy(column: Any, name: str, path: Path, before: int = 0) -> NDArray[Any]:
    """Chunked column as an array ``[N]``, or of more dimensions where rows are lists, or lists of lists.

    Lower precision is widened so that theory stays in float64. `before` are the rows of the file above it.
    """
    values = column.combine_chunks()
    shape, per_row = [len(values)], 1
    _refuse_nulls(values, name, path, before=before)
    while hasattr(values.type, "value_field"):  # a list of some kind
        shape.append(_width(values, name, path, per_row, before))
        per_row *= shape[-1]
        values = values.flatten()
        _refuse_nulls(values, name, path, per_row, before)
    array = values.to_numpy(zero_copy_only=False).reshape(shape)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _to_rows(column: Any, name: str, path: Path) -> NDArray[Any] | _Ragged:
    """Chunked column as an array of numbers, or as lists of any length."""
    merged = column.combine_chunks()
    if not hasattr(merged.type, "value_field"):
        return _to_numpy(column, name, path)
    _refuse_nulls(merged, name, path)
    lengths = load_extra("pyarrow.compute", extra=None).list_value_length(merged).to_numpy(zero_copy_only=False)
    flat = merged.flatten()
    _refuse_nulls(flat, name, path)
    return _Ragged(flat.to_numpy(zero_copy_only=False), np.cumsum([0, *lengths], dtype=np.int64))


def _width(lists: Any, name: str, path: Path, per_row: int = 1, before: int = 0) -> int:
    """Entries of every list; lists of different lengths are refused."""
    lengths = load_extra("pyarrow.compute", extra=None).list_value_length(lists).to_numpy(zero_copy_only=False)
    other = np.flatnonzero(lengths != lengths[:1])
    if len(other):
        raise TraceError(
            f"{path}: {name} of row {before + other[0] // per_row + 1} has {lengths[other[0]]} entries",
            limit=f"all rows of a column have as many, here {lengths[0]}",
            remedy="measure the pair again",
        )
    return int(lengths[0]) if len(lengths) else 1


def _refuse_nulls(values: Any, name: str, path: Path, per_row: int = 1, before: int = 0) -> None:
    if values.null_count:
        row = values.is_null().to_numpy(zero_copy_only=False).argmax() // per_row
        raise TraceError(
            f"{path}: {name} of row {before + row + 1} is null",
            limit="needs a value for every token",
            remedy="measure the pair again",
        )
