"""Timed answers of Ollama: `/api/generate` and `/api/chat`, whose durations are nanoseconds.

Keys as in ollama/ollama, docs/api.md. They say nothing of drafts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from spectheory.errors import TextError
from spectheory.trace.importers.answers import entries
from spectheory.trace.timed import Answer, TimedFormat, TimedRun, Untimed, k_named, runs_of_answers

_PLAIN = "Answers of Ollama are read as plain decoding: a model with a draft needs draft_num_predict 0."


def _read(path: Path) -> Iterator[TimedRun]:
    if k_named(path.stem):
        raise TextError(
            f"{path} says no calls",
            limit="answers of Ollama have no counts of drafts",
            remedy="keep the log of ollama serve",
        )
    counted = (each for each in entries(path).values() if each.get("eval_count"))
    answers = (
        Answer(each.get("prompt_eval_count") or 0, each["eval_count"], 1e-9 * each["eval_duration"], note=_PLAIN)
        for each in counted
    )
    yield from runs_of_answers("ollama", answers, path)


TIMED = (
    TimedFormat(
        "ollama",
        lambda head: b'"eval_count"' in head and b'"eval_duration"' in head,
        _read,
        title="Ollama's `/api/generate` and `/api/chat` answers, one at a time",
        lacks="drafts: plain decoding alone; with drafts keep the log of `ollama serve`",
    ),
)
UNTIMED = (
    Untimed(
        lambda head: b"speculative decode stats" in head,
        "a log of Ollama's MLX runner",
        "it has counts, and no times",
        "time a model of its llama.cpp runner, and keep the log",
    ),
)
