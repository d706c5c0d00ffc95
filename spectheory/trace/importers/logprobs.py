"""JSON lines of log-probabilities that any server can give: two numbers per token (§7), and perhaps lists (§9)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.errors import TextError
from spectheory.trace.importers.base import Format, text_of
from spectheory.trace.importers.top_lists import Text, as_drawn, has_lists, positions
from spectheory.trace.record import Trace

LOWEST = -1e300
"""No log-probability comes near it, and sums of thousands of such values stay finite."""
MOST_BYTES = 1 << 31
"""Of a file of log-probabilities: some hundred million tokens."""


def read_log_probabilities(path: Path) -> Trace:
    """Read one text per line: ``{"target": [...], "draft": [...], "id": "optional"}``, natural logarithms.

    Each list holds the log-probabilities of the text's own tokens under that model, with the sampling settings in use
    and on one tokenisation. Token and block verification follow exactly; the one-call bound and B6 are estimates.
    ``"ended": true`` says that the text ended by itself and was not cut at a length. Blank lines are skipped. With the
    lists of :mod:`spectheory.trace.importers.top_lists` the trace has ``token`` and :attr:`Trace.lists` besides. A
    ``TextError`` names the line that is malformed.
    """
    # Splitting at "\n" alone: JSON strings may hold other line separators of Unicode.
    lines = text_of(path, most=MOST_BYTES).split("\n")
    texts = {number: _parse(line, f"{path} line {number}") for number, line in enumerate(lines, 1) if line.strip()}
    if not texts:
        raise TextError(f"{path} holds no text", limit="needs at least one line", remedy="write one text per line")
    trace = Trace.from_log_probabilities(
        ((text["target"], text["draft"]) for text in texts.values()),
        ids=[str(text.get("id", f"line {number}")) for number, text in texts.items()],
        ended=[text.get("ended") is True for text in texts.values()],
    )
    if not any(has_lists(text) for text in texts.values()):
        return trace
    found = [each for number, text in texts.items() for each in positions(text, f"{path} line {number}")]
    token, lists = zip(*found, strict=True)
    return Trace({**trace.columns, "token": np.array(token)}, trace.texts, trace.provenance, lists)


def _parse(line: str, where: str) -> Text:
    try:
        text = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TextError(
            f"{where} is not JSON ({error})", limit="needs one object per line", remedy="write it with json.dumps"
        ) from error
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
    if number and (value == -math.inf or not abs(value) > -LOWEST):
        return
    shown = json.dumps(value)
    raise TextError(
        f"{where} is {shown if len(shown) <= 40 else shown[:37] + '...'}",
        limit=f"must be in {LOWEST:g}..0" if number else "must be a number",
        remedy="write -Infinity for probability zero" if number else "write natural logarithms",
    )


LOG_PROBABILITIES = Format(
    "log-probabilities",
    lambda head: head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{") and b'"target"' in head,
    read_log_probabilities,
    title="JSON lines `{\"target\": [...], \"draft\": [...]}`, two numbers per token",
    gives="a trace: exact for token and block verification, ranges for other rules where lists are given",
    lacks="rules that need full pmfs, where no lists are given",
)
