"""The record of a measured pair: its columns and their checks, its texts, its file."""

from spectheory.trace.columns import (
    BY_START,
    COLUMNS,
    DISTINCT_RANKS,
    JUDGED,
    MEASURED,
    MOST_DEPTH,
    RECORDED_RANKS,
    REQUIRED,
    START_RANKS,
    UNO_SHARES,
    Column,
)
from spectheory.trace.parquet import METADATA_KEY, SCHEMA_VERSION
from spectheory.trace.reading import read_any, read_evidence, read_files, trace_file
from spectheory.trace.record import TRACE_FILE, Trace
from spectheory.trace.text_info import (
    GIVEN_TEXT,
    IMPOSSIBLE,
    LAYERS,
    LEFT_OUT,
    PROVISIONAL,
    READ,
    RECORDED,
    SAMPLED_TEXT,
    SOURCES,
    TextInfo,
)

__all__ = [
    "BY_START",
    "COLUMNS",
    "DISTINCT_RANKS",
    "GIVEN_TEXT",
    "IMPOSSIBLE",
    "JUDGED",
    "LAYERS",
    "LEFT_OUT",
    "MEASURED",
    "METADATA_KEY",
    "MOST_DEPTH",
    "PROVISIONAL",
    "READ",
    "RECORDED",
    "RECORDED_RANKS",
    "REQUIRED",
    "SAMPLED_TEXT",
    "SCHEMA_VERSION",
    "SOURCES",
    "START_RANKS",
    "TRACE_FILE",
    "UNO_SHARES",
    "Column",
    "TextInfo",
    "Trace",
    "read_any",
    "read_evidence",
    "read_files",
    "trace_file",
]
