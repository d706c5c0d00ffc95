"""Lists of the most probable tokens as columns of a file, and back (§9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.errors import SpectheoryError, TraceError
from spectheory.trace.parquet import Ragged
from spectheory.truncated.top import TopLogProbs

MODELS = ("target", "draft")
RAGGED = {"top_tokens": np.int64, "top_log_probs": np.float64, "extra_tokens": np.int64, "extra_log_probs": np.float64}
"""Columns of a model with a list per row: those of a :class:`TopLogProbs`."""
SINGLE = {"vocabulary": np.int64, "error": np.float64}
"""Columns of a model with a number per row."""
LIST_COLUMNS = tuple(f"{model}_{name}" for model in MODELS for name in (*RAGGED, *SINGLE))
_FIELDS = {"top_tokens": "tokens", "top_log_probs": "log_probs"}

Pair = tuple[TopLogProbs, TopLogProbs]


def to_columns(lists: Sequence[Pair]) -> dict[str, Ragged | NDArray[Any]]:
    """Columns of the lists; none without lists."""
    columns: dict[str, Ragged | NDArray[Any]] = {}
    for model, tops in zip(MODELS, zip(*lists, strict=True), strict=bool(lists)):
        for name, kind in RAGGED.items():
            rows = [getattr(top, _FIELDS.get(name, name)) for top in tops]
            columns[f"{model}_{name}"] = Ragged.of(rows, kind)
        for name, kind in SINGLE.items():
            columns[f"{model}_{name}"] = np.array([getattr(top, name) for top in tops], kind)
    return columns


def from_columns(columns: Mapping[str, Ragged | NDArray[Any]]) -> tuple[Pair, ...]:
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
