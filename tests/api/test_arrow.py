"""A trace as an Arrow table is read through Arrow's C interface alone, as polars and others do."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from spectheory.trace import TextInfo, Trace
from tests.made_up import head_columns, trace


class CInterface:
    """A table that offers the C stream and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """The stream."""
        return self._table.__arrow_c_stream__(requested_schema)


def test_every_column_passes_the_c_interface() -> None:
    """By position with two dimensions, and by start with three."""
    of_head = Trace(head_columns(20, 8), (TextInfo("a", 20),), {"settings": {"depth": 8}})
    for made in (trace(3, 4), of_head):
        table = made.to_arrow()
        read = pa.RecordBatchReader.from_stream(CInterface(table)).read_all()
        assert read.equals(table)
        assert read.schema.metadata == table.schema.metadata
        assert set(read.column_names) == {"text", "place", *made.columns}


def test_data_frames_have_the_same_numbers() -> None:
    made = trace(3, 4)
    frame = made.to_pandas()
    assert frame.groupby("text", sort=False).size().tolist() == [3, 4]
    assert frame["log_target"].tolist() == made.columns["log_target"].tolist()
    assert [list(row) for row in frame["rejection_rank"]] == made.columns["rejection_rank"].tolist()
