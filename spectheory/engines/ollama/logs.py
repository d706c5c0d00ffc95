"""Ollama's log of its MLX runner; what its llama.cpp runner prints is read as llama.cpp's."""

from __future__ import annotations

from pathlib import Path

from spectheory.errors import TextError
from spectheory.trace.counters import Counters
from spectheory.trace.importers.base import Format, fields_of, text_of

_MARK = "speculative decode stats"
_FIELDS = {name: rf"\b{name}=(\d+)(?![\d.])" for name in ("iterations", "drafted", "accepted", "max_draft")}
_ROUNDS = (
    "Ollama's runner decides the length from round to round, and rounds that drafted nothing count as calls: tokens "
    "per call are those of the whole text."
)


def _read_log(path: Path) -> Counters:
    """The sum of all requests."""
    lines = [(n, line) for n, line in enumerate(text_of(path).split("\n"), 1) if _MARK in line]
    requests = [{name: int(v) for name, v in fields_of(s, _FIELDS, f"{path} line {n}").items()} for n, s in lines]
    calls, drafted, accepted = (sum(each[name] for each in requests) for name in [*_FIELDS][:3])
    if not drafted:
        raise TextError(
            f"{path} has no request with drafts", limit=f"needs {_MARK!r}", remedy="run a model with drafts"
        )
    return Counters(
        calls,
        drafted,
        accepted,
        k=max(each["max_draft"] for each in requests),
        engine="ollama",
        remarks=(_ROUNDS,),
        provenance={"requests": len(requests)},
    )


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
