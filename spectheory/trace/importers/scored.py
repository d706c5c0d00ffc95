"""What logs of log-probabilities have in common: the text's own fields, and lists of the most probable tokens.

Beside what the server returned, a line may have ``prompt_tokens`` (leading tokens that are no output), ``sampling``
(as ``{"temperature": 0.7}``: how the text was drawn), ``processed`` (true if the server applied it), ``vocabulary``
(number of tokens) and ``error`` (rounding of a log-probability, nats).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spectheory.errors import TextError
from spectheory.trace.importers.entries import Json, at, read_each
from spectheory.trace.importers.responses import ENDED, FINISH, distinct, name_of, settings_of
from spectheory.trace.scored_text import ScoredText, Top
from spectheory.trace.scores import Scores
from spectheory.trace.texts import MISSING

MARKED = "token_id:"
"""How vLLM writes a token with ``return_tokens_as_token_ids``."""


def scores(path: Path, name: str, read: Callable[[Json], ScoredText]) -> Scores:
    """Every text of a file under one model."""
    found = read_each(path, name, lambda entry: (read(entry), str(at(entry, "model") or "")))
    names = distinct([text.id for text, _ in found.values()])
    texts = tuple(replace(text, id=name) for (text, _), name in zip(found.values(), names, strict=True))
    models = {model for _, model in found.values()}
    if len(models) > 1:
        raise TextError(
            f"{path} holds scores of {' and '.join(sorted(models))}",
            limit="a log of log-probabilities is of one model",
            remedy="keep one file per model",
        )
    return Scores(texts, name, models.pop())


def said(entry: Json) -> dict[str, Any]:
    """The fields of a text that the entry says itself."""
    found: dict[str, Any] = {"id": name_of(entry), "ended": at(entry, *FINISH) in ENDED}
    found |= {name: at(entry, name) for name in ("vocabulary", "error") if at(entry, name) is not None}
    settings = settings_of(entry)
    return {**found, "sampling": settings or None, "processed": entry.get("processed") is True}


def strings_or_ids(tokens: Sequence[Any]) -> dict[str, Any]:
    """Strings of tokens, and their ids where the strings are such."""
    strings = tuple(str(token) for token in tokens)
    if strings and all(each.startswith(MARKED) for each in strings):
        return {"tokens": tuple(int(each.removeprefix(MARKED)) for each in strings)}
    return {"strings": strings}


def top(pairs: Iterable[tuple[Any, Any]]) -> Top | None:
    """A list of the most probable ids, without stand-ins for missing values; None without ids."""
    listed = [(token, log) for token, log in pairs if log is not None and log > MISSING]
    if not listed or any(type(token) is not int for token, _ in listed):
        return None
    if len(dict(listed)) < len(listed):
        raise ValueError("a list names a token twice")
    return dict(listed)


def mostly(tops: Iterable[Top | None]) -> tuple[Top | None, ...]:
    """The lists, or nothing where no position has one."""
    found = tuple(tops)
    return found if any(found) else ()
