"""Whether the parts of a trace fit together, and the errors that say which do not."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import instance, instances, several
from spectheory.errors import SpectheoryError, TextError, TraceError
from spectheory.trace.checks import Fault
from spectheory.trace.columns import REQUIRED
from spectheory.trace.text_info import TextInfo
from spectheory.verification.by_start import deepest, shape_of

Columns = Mapping[str, NDArray[Any]]
_AGAIN = "Trace.from_log_probabilities makes a trace"


def recorded(columns: Columns) -> bool:
    """Whether there are the accepted lengths of a log in place of log-probabilities (§10)."""
    return not {*REQUIRED} <= set(columns) and "recorded_match" in columns


def check_parts(columns: Columns, texts: Sequence[TextInfo], lists: Sequence[Any]) -> None:
    """Refuse missing columns, columns and lists that have no row per token, and lists beside columns by start."""
    instances("the names of columns", instance("columns", columns, Mapping, remedy=_AGAIN).keys(), str, remedy=_AGAIN)
    texts, lists = instances("texts", texts, TextInfo, remedy=_AGAIN), several("lists", lists, remedy=_AGAIN)
    if not hasattr(columns, "shapes"):  # not on disk
        for name, values in columns.items():
            if not isinstance(values, np.ndarray) or isinstance(values, np.ma.MaskedArray):
                what = f"{name} is a {type(values).__name__}"
                raise TraceError(
                    what, limit="needs a numpy array without a mask", remedy="convert it, or fill the mask"
                )
    missing = [name for name in REQUIRED if name not in columns]
    if missing and not recorded(columns):
        raise TraceError(
            f"the trace lacks {', '.join(missing)}",
            limit="both are required, or recorded lengths",
            remedy="measure the pair again",
        )
    tokens = sum(text.tokens for text in texts)
    wrong = {name: shape for name in columns if (shape := shape_of(columns, name))[:1] != (tokens,)}
    if wrong or not texts:
        others = {name: shape[0] if shape else "no rows" for name, shape in wrong.items()}
        shown = reprlib.repr(others) if others else "none"
        raise TraceError(
            f"{len(texts)} texts of {tokens} tokens in all, columns of other lengths: {shown}",
            limit="needs at least one text and one row per token",
            remedy="measure the pair again",
        )
    if lists and deepest(columns) is not None:
        raise TraceError(
            "the trace has lists of the most probable tokens and columns by start",
            limit="lists are by position",
            remedy="leave one of them out",
        )
    if lists and (len(lists) != tokens or "token" not in columns):
        raise TraceError(
            f"there are {len(lists)} lists for {tokens} tokens",
            limit="needs one pair, and an id, per token",
            remedy="list every position",
        )


def check_depth(columns: Columns, stated: object) -> None:
    """Refuse columns by start that are not as deep as the provenance says, if it does."""
    depth = deepest(columns)
    if depth is not None and stated is not None and stated != depth:
        raise TraceError(
            f"columns by start have {depth} depths",
            limit=f"the provenance says {stated!r}",
            remedy="measure the pair again",
        )


def refused(fault: Fault, columns: Columns, place: tuple[TextInfo, int] | None) -> SpectheoryError:
    """The error of a column, whose row is at a `place` in a text; impossible log-probabilities are the text's fault."""
    if place is None:
        return TraceError(f"{fault.column} {fault.what}", limit=fault.limit, remedy="measure the pair again")
    text, position = place
    what = f"{fault.column} of text {text.id!r}, token {position + 1} {fault.what}"
    if fault.column not in REQUIRED:
        return TraceError(what, limit=fault.limit, remedy="measure the pair again")
    impossible = columns[fault.column][fault.row] == -np.inf
    return TextError(
        what,
        limit="a log-probability is <= 0, and an output token is possible under the target",
        remedy="use the sampling settings that made the text" if impossible else "pass natural logs of probabilities",
    )
