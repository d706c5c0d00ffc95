"""Streamed answers (server-sent events) as whole ones: the pieces of each answer put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from spectheory.trace.foreign import parsed_json

DATA, DONE = "data:", "[DONE]"
_JOINED = ("token_ids", "text")
"""Fields of a choice that pieces continue; of all others the last one counts."""


def is_streamed(text: str) -> bool:
    """Whether a text begins as a stream of events does."""
    return text.lstrip().startswith((DATA, "event:", "id:", "retry:", ":"))


def answers(text: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each answer by the place of its first event, in the order of these; events without an id are an answer each."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        content = line.strip().removeprefix(DATA).strip()
        if not line.strip().startswith(DATA) or content == DONE:
            continue
        where = f"{name} line {number}"
        event = parsed_json(content, where)
        if isinstance(event, dict):
            _, whole = found.setdefault(str(event.get("id", where)), (where, {}))
            _add(whole, event)
    yield from found.values()


def _add(whole: dict[str, Any], event: Mapping[str, Any]) -> None:
    """Continue an answer by an event."""
    for key, value in event.items():
        if key == "choices" and isinstance(value, list) and value and isinstance(value[0], dict):
            first = whole.setdefault("choices", [{}])[0]
            for field, part in value[0].items():
                before = first.get(field)
                joins = field in _JOINED and isinstance(part, list | str) and isinstance(before, type(part))
                first[field] = before + part if joins else (part if part is not None else before)
        elif value is not None:
            whole[key] = value
