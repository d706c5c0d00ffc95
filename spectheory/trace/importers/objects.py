"""Objects of a JSON file, each with its place: one document, a list, one object a line, or a stream of events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeAlias, TypeVar

from spectheory.errors import FOREIGN, SpectheoryError, TextError
from spectheory.trace.foreign import parsed_json
from spectheory.trace.importers.base import text_of

Json: TypeAlias = Mapping[str, Any]
Read = TypeVar("Read")

MOST_BYTES = 1 << 31
"""Of a log: some hundred million tokens."""
LISTS = ("requests", "responses", "results", "records")
"""Keys under which a document may hold its objects."""


def entries(path: Path) -> dict[str, Json]:
    """The objects of a file by their places; what is no object, or torn, is named."""
    text = text_of(path, most=MOST_BYTES)
    if text.lstrip().startswith(_EVENTS):
        found: dict[str, Any] = dict(_answers(text, str(path)))
    else:
        found = dict(_lines(text, path) if _first_line_is_whole(text) else _document(text, path))
    if not found:
        raise TextError(f"{path} holds no request", limit="needs at least one", remedy="log one object per line")
    for where, entry in found.items():
        if not isinstance(entry, dict):
            raise TextError(f"{where} is no object", limit="needs one object per request", remedy="check the log")
    return found


def _first_line_is_whole(text: str) -> bool:
    """Whether the first line is an object and more lines follow: then the file has one per line."""
    first, _, rest = text.lstrip().partition("\n")
    return bool(rest.strip()) and first.startswith("{") and first.rstrip().endswith("}")


def _lines(text: str, path: Path) -> Iterator[tuple[str, Any]]:
    # Splitting at "\n" alone: JSON strings may hold other line separators of Unicode.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f"{path} line {number}", parsed_json(line, f"{path} line {number}")


def _document(text: str, path: Path) -> Iterator[tuple[str, Any]]:
    whole = parsed_json(text, str(path)) if text.strip() else []
    if isinstance(whole, dict):
        listed = [whole[key] for key in LISTS if isinstance(whole.get(key), list)]
        if not listed:
            yield str(path), whole
            return
        whole = listed[0]
    for number, entry in enumerate(whole if isinstance(whole, list) else [whole], start=1):
        yield f"{path} entry {number}", entry


def at(entry: Any, *paths: str) -> Any:
    """What stands at the first of dotted paths that is there and not null; a number is a place in a list.

    Examples
    --------
    >>> at({"choices": [{"ids": [7]}]}, "token_ids", "choices.0.ids")
    [7]
    """
    for path in paths:
        found = entry
        for name in path.split("."):
            if isinstance(found, Mapping):
                found = found.get(name)
            else:
                place = name.isdecimal() and isinstance(found, list) and int(name) < len(found)
                found = found[int(name)] if place else None
        if found is not None:
            return found
    return None


def read_each(path: Path, name: str, read: Callable[[Json], Read]) -> dict[str, Read]:
    """What `read` makes of every object of a file by its place; an error names the place."""
    found = {}
    for where, entry in entries(path).items():
        try:
            found[where] = read(entry)
        except SpectheoryError as error:
            raise TextError(f"{where}: {error.what}", limit=error.limit, remedy=error.remedy) from error
        except FOREIGN as error:
            reason = f"no {error}" if isinstance(error, KeyError) else error
            raise TextError(
                f"{where} is not of the format {name} ({shorten(str(reason), 200)})",
                limit="every entry must be of one format",
                remedy="check the log for torn or mixed lines",
            ) from error
    return found


_DATA, _DONE = "data:", "[DONE]"
_EVENTS = (_DATA, "event:", "id:", "retry:", ":")
"""What a stream of events begins with."""
_JOINED = ("token_ids", "text")
"""Fields of a choice that pieces continue; of all others the last one counts."""


def _answers(text: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each answer by the place of its first event, in the order of these; events without an id are an answer each."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        content = line.strip().removeprefix(_DATA).strip()
        if not line.strip().startswith(_DATA) or content == _DONE:
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
