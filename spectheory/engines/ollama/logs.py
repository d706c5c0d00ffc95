"""Ollama's log of its MLX runner; what its llama.cpp runner prints is read as llama.cpp's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from spectheory.errors import TextError
from spectheory.trace.counters import Counters
from spectheory.trace.importers.base import Format, text_of

_MARK = "speculative decode stats"
_FIELDS = {"calls": "iterations", "drafted": "drafted", "accepted": "accepted", "k": "max_draft"}
_ROUNDS = (
    "Ollama's runner decides the length from round to round, and rounds that drafted nothing count as calls: tokens "
    "per call are those of the whole text."
)


def _read_log(path: Path) -> Counters:
    """The sum of all requests."""
    requests = [
        _request(line, f"{path} line {number}")
        for number, line in enumerate(text_of(path).split("\n"), 1)
        if _MARK in line
    ]
    drafted = [each for each in requests if each["drafted"]]
    if not drafted:
        raise TextError(
            f"{path} has no request with drafts", limit=f"needs {_MARK!r}", remedy="run a model with drafts"
        )
    totals: dict[str, Any] = {name: sum(each[name] for each in requests) for name in ("calls", "drafted", "accepted")}
    return Counters(
        **totals,
        k=max(each["k"] for each in drafted),
        engine="ollama",
        remarks=(_ROUNDS,),
        provenance={"requests": len(requests)},
    )


def _request(line: str, where: str) -> dict[str, int]:
    matches = {name: re.search(rf"\b{field}=(\d+)(?!\d|\.)", line) for name, field in _FIELDS.items()}
    if cut := [_FIELDS[name] for name, match in matches.items() if match is None]:
        raise TextError(f"{where} has no {cut[0]}", limit="needs a whole line", remedy="remove a line that was cut")
    return {name: int(match[1]) for name, match in matches.items() if match}


TOTALS = (
    Format(
        "ollama-log",
        lambda head: _MARK.encode() in head,
        _read_log,
        title="Ollama's server log, lines of `speculative decode stats`; requests are summed",
        gives="drafted and accepted tokens, rounds, the longest draft",
        lacks="survival by position; calls with drafts apart from those without; texts",
    ),
)
