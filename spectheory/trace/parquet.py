"""Columns and a header as one Parquet file, and back: what is no such file is named."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from reprlib import repr as brief
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.errors import TornTraceError, TraceError, load_extra
from spectheory.files import write_whole

SCHEMA_VERSION = 1
METADATA_KEY = b"spectheory"


def write(path: Path, columns: Mapping[str, NDArray[Any]], header: Mapping[str, Any]) -> None:
    """Write a file that appears when whole; the header gets the schema version."""
    pa, pq = load_extra("pyarrow", extra=None), load_extra("pyarrow.parquet", extra=None)
    arrays = {
        name: pa.FixedSizeListArray.from_arrays(pa.array(c.reshape(-1)), c.shape[1]) if c.ndim == 2 else pa.array(c)
        for name, c in columns.items()
    }
    content = json.dumps({"schema": SCHEMA_VERSION, **header})
    table = pa.table(arrays).replace_schema_metadata({METADATA_KEY: content.encode()})
    write_whole(path, lambda partial: pq.write_table(table, partial))


def read(path: Path, names: Collection[str]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The columns of these names that are there, and the header with a list of texts and the provenance."""
    pa, pq = load_extra("pyarrow", extra=None), load_extra("pyarrow.parquet", extra=None)
    try:
        with path.open("rb") as file:
            _refuse_twice(pq.read_schema(file).names, path)
            file.seek(0)
            table = pq.ParquetFile(file).read(use_threads=False)
        header = _header(table.schema.metadata, path)
        return {name: _to_numpy(table.column(name), name, path) for name in table.column_names if name in names}, header
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
        raise TraceError(
            f"{path} is missing" if missing else f"{path} cannot be read ({reason})",
            limit="needs a trace written by spectheory",
            remedy="run spectheory measure" if missing else "check the path and its permissions",
        ) from error


def _header(metadata: Mapping[bytes, bytes] | None, path: Path) -> dict[str, Any]:
    try:
        header: dict[str, Any] = json.loads((metadata or {})[METADATA_KEY])
        version = header["schema"]
        if version == SCHEMA_VERSION and not (header["texts"] and isinstance(header["provenance"], dict)):
            raise ValueError("no texts, or a provenance of another kind")
    except (KeyError, ValueError, TypeError, RecursionError) as error:
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


def _to_numpy(column: Any, name: str, path: Path) -> NDArray[Any]:
    """Chunked column as an array ``[N]`` or ``[N, r]``; lower precision is widened so that theory stays in float64."""
    merged = column.combine_chunks()
    _refuse_nulls(merged, name, path)
    if hasattr(merged.type, "value_field"):  # a list of some kind
        width, flat = _width(merged, name, path), merged.flatten()
        _refuse_nulls(flat, name, path, per_row=width)
        array = flat.to_numpy(zero_copy_only=False).reshape(len(merged), width)
    else:
        array = merged.to_numpy(zero_copy_only=False)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _width(lists: Any, name: str, path: Path) -> int:
    """Entries of every row; rows of different lengths are refused."""
    lengths = load_extra("pyarrow.compute", extra=None).list_value_length(lists).to_numpy(zero_copy_only=False)
    other = np.flatnonzero(lengths != lengths[:1])
    if len(other):
        raise TraceError(
            f"{path}: {name} of row {other[0] + 1} has {lengths[other[0]]} entries",
            limit=f"all rows of a column have as many, here {lengths[0]}",
            remedy="measure the pair again",
        )
    return int(lengths[0]) if len(lengths) else 1


def _refuse_nulls(values: Any, name: str, path: Path, per_row: int = 1) -> None:
    if values.null_count:
        row = values.is_null().to_numpy(zero_copy_only=False).argmax() // per_row
        raise TraceError(
            f"{path}: {name} of row {row + 1} is null",
            limit="needs a value for every token",
            remedy="measure the pair again",
        )
