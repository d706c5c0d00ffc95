"""Texts of two log-probabilities per token, and perhaps lists, as a trace (§7, §9)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from spectheory.errors import TextError
from spectheory.trace.record import LOWEST, Trace
from spectheory.trace.top_lists import Text, as_drawn, has_lists, positions

MISSING = -9999.0
"""What servers of OpenAI's format write in place of a log-probability that they do not have."""


def trace_of(texts: Mapping[str, Text], provenance: Mapping[str, Any] | None = None) -> Trace:
    """A trace of texts by their places: the keys of :mod:`spectheory.trace.importers.logprobs`, values checked."""
    drawn = {where: checked(text, where) for where, text in texts.items()}
    trace = Trace.from_log_probabilities(
        ((text["target"], text["draft"]) for text in drawn.values()),
        ids=[str(text["id"]) for text in drawn.values()],
        ended=[text.get("ended") is True for text in drawn.values()],
        provenance=provenance,
    )
    if not any(has_lists(text) for text in drawn.values()):
        return trace
    found = [each for where, text in drawn.items() for each in positions(text, where)]
    token, lists = zip(*found, strict=True)
    return replace(trace, columns={**trace.columns, "token": np.array(token)}, lists=lists)


def checked(text: Any, where: str) -> Text:
    """The text with the log-probabilities of what it was drawn from; malformed ones are named."""
    for name in ("target", "draft"):
        values = text.get(name) if isinstance(text, dict) else None
        if not isinstance(values, list):
            raise TextError(
                f"{where} has no list of numbers {name!r}",
                limit='needs {"target": [...], "draft": [...]}',
                remedy="give the log-probability of each token under both models",
            )
        for position, value in enumerate(values, start=1):
            _check_value(value, f"{where}, token {position} of {name!r}")
    return as_drawn(text, where)


def _check_value(value: Any, where: str) -> None:
    """Refuse what is no number, and finite numbers whose sums overflow; the trace checks the rest."""
    number = type(value) in (int, float)
    if number and value != MISSING and (value == -math.inf or not abs(value) > -LOWEST):
        return
    shown = json.dumps(value)
    missing = number and value == MISSING
    raise TextError(
        f"{where} is {shown if len(shown) <= 40 else shown[:37] + '...'}",
        limit="this stands for a missing value" if missing else _limit(number),
        remedy="write -Infinity for probability zero" if number else "write natural logarithms",
    )


def _limit(number: bool) -> str:
    return f"must be in {LOWEST:g}..0" if number else "must be a number"
