"""JSON objects of a log with their places, and what the answers of engines have in common.

Ids of prompt and output, how a text ended, its sampling, its counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeAlias, TypeVar

from spectheory.errors import FOREIGN, SpectheoryError, TextError
from spectheory.files import parsed_json
from spectheory.trace.calls import MOST_DRAFTS, CallLog, Request, is_count
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
        objects: dict[str, Any] = dict(_answers(text, str(path)))
    else:
        objects = dict(_lines(text, path) if _first_line_is_whole(text) else _document(text, path))
    if not objects:
        raise TextError(f"{path} holds no request", limit="needs at least one", remedy="log one object per line")
    for where, entry in objects.items():
        if not isinstance(entry, dict):
            raise TextError(f"{where} is no object", limit="needs one object per request", remedy="check the log")
    return objects


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
        value = entry
        for name in path.split("."):
            if isinstance(value, Mapping):
                value = value.get(name)
            else:
                place = name.isdecimal() and isinstance(value, list) and int(name) < len(value)
                value = value[int(name)] if place else None
        if value is not None:
            return value
    return None


def read_each(path: Path, name: str, read: Callable[[Json], Read]) -> dict[str, Read]:
    """What `read` makes of every object of a file by its place; an error names the place."""
    values = {}
    for where, entry in entries(path).items():
        try:
            values[where] = read(entry)
        except SpectheoryError as error:
            raise TextError(f"{where}: {error.what}", limit=error.limit, remedy=error.remedy) from error
        except FOREIGN as error:
            reason = f"no {error}" if isinstance(error, KeyError) else error
            raise TextError(
                f"{where} is not of the format {name} ({shorten(str(reason), 200)})",
                limit="every entry must be of one format",
                remedy="check the log for torn or mixed lines",
            ) from error
    return values


_DATA, _DONE = "data:", "[DONE]"
_EVENTS = (_DATA, "event:", "id:", "retry:", ":")
"""What a stream of events begins with."""
_JOINED = ("token_ids", "text")
"""Fields of a choice that pieces continue; of all others the last one counts."""


def _answers(text: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each answer by the place of its first event, in the order of these; events without an id are an answer each."""
    answers: dict[str, tuple[str, dict[str, Any]]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        content = line.strip().removeprefix(_DATA).strip()
        if not line.strip().startswith(_DATA) or content == _DONE:
            continue
        where = f"{name} line {number}"
        event = parsed_json(content, where)
        if isinstance(event, dict):
            _, whole = answers.setdefault(str(event.get("id", where)), (where, {}))
            _add(whole, event)
    yield from answers.values()


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


_NAME = ("id", "request_id", "meta_info.id", "question_id", "i", "metadata.x_request_id")
PROMPT = ("prompt_token_ids", "choices.0.prompt_token_ids", "prompt", "input_ids", "request.prompt")
OUTPUT = ("ids", "output_ids", "token_ids", "choices.0.token_ids", "generated_token_ids", "tokens")
TOKENS = (
    "usage.completion_tokens",
    "meta_info.completion_tokens",
    "completion_tokens",
    "tokens_predicted",
    "timings.predicted_n",
    "stats.tokens_emitted",
)
FINISH = ("choices.0.finish_reason", "finish_reason", "finish", "meta_info.finish_reason.type", "stop_type")
ENDED = ("stop", "eos")
"""Reasons that say that the text ended by itself."""
_SETTINGS = {"temperature": ("T", "temperature"), "top_k": ("top_k",), "top_p": ("top_p",), "min_p": ("min_p",)}
_SETTINGS_AT = ("", "sampling.", "request.", "sampling_params.")
_OFF = {"top_k": (0, -1), "top_p": (1, 1.0), "min_p": (0, 0.0)}
"""Values of a filter that keep every token."""


def ids_at(entry: Json, *paths: str) -> tuple[int, ...]:
    """Token ids at the first of the paths that has a list of them; empty where none has."""
    for path in paths:
        ids = at(entry, path)
        if isinstance(ids, list) and ids and all(type(token) is int for token in ids):
            return tuple(ids)
    return ()


def request_of(entry: Json, **counts: Any) -> Request:
    """One request: its texts as far as the entry has them, and the counts given."""
    output = ids_at(entry, *OUTPUT) or _content_ids(entry)
    tokens = None if output else at(entry, *TOKENS)
    text = {"prompt": ids_at(entry, *PROMPT), "output": output, "tokens": tokens, "seconds": at(entry, "seconds")}
    return Request(name_of(entry), **{**text, "ended": at(entry, *FINISH) in ENDED, **counts})


def name_of(entry: Json) -> str:
    """What the entry calls itself; empty where it has no name."""
    name = at(entry, *_NAME)
    return "" if name is None else str(name)


def distinct(names: Sequence[str]) -> list[str]:
    """Names that differ: nameless entries get their number, and names that come again have it added."""
    again = {name for name, count in Counter(names).items() if count > 1}
    return [f"{name} ({i})" if name in again and name else name or str(i) for i, name in enumerate(names, start=1)]


def _content_ids(entry: Json) -> tuple[int, ...]:
    """Ids of the output where only its log-probabilities have them."""
    content = at(entry, "choices.0.logprobs.content")
    ids = [at(each, "id") for each in content] if isinstance(content, list) else []
    return tuple(ids) if ids and all(type(token) is int for token in ids) else ()


def _settings_of(entry: Json) -> dict[str, Any]:
    """How the text was sampled, as far as the entry says; a filter that keeps all tokens is left out."""
    if isinstance(at(entry, "generation_settings.samplers"), list):
        return _llama_settings(entry["generation_settings"])
    settings = {name: at(entry, *(f"{p}{s}" for p in _SETTINGS_AT for s in spelt)) for name, spelt in _SETTINGS.items()}
    return _applied(settings)


def _llama_settings(given: Json) -> dict[str, Any]:
    """Settings of llama.cpp: its `samplers` alone are applied, whatever else is set."""
    settings = {name: given.get(name) for name in _SETTINGS if name in given["samplers"]}
    return _applied({"temperature": 1.0, **settings})


def _applied(settings: Json) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None and value not in _OFF.get(name, ())}


Requests = Callable[[Json], Sequence[Request]]


Longest = Callable[[Json], int | None]


def call_log(path: Path, name: str, read: Requests, *, k: Longest = lambda _: None, **known: Any) -> CallLog:
    """A call log of a file of one engine under one setting; `known` is what every log of the format shares.

    `k` gives the longest chain that an entry speaks of; without it, the longest one that was counted is taken.
    """
    contents = read_each(path, name, lambda entry: (read(entry), _settings_of(entry), _chain(k(entry))))
    settings = [each for requests, each, _ in contents.values() if requests]
    if not settings:
        raise TextError(
            f"{path} holds no request with counts", limit=f"needs the fields of {name}", remedy="log them on the server"
        )
    for where, (requests, other, _) in contents.items():
        if requests and other != settings[0]:
            raise TextError(
                f"{where} was sampled with {other or 'unknown settings'}, others with {settings[0]}",
                limit="requests are judged under one setting",
                remedy="import each setting on its own",
            )
    listed = [request for requests, _, _ in contents.values() for request in requests]
    names = distinct([each.id for each in listed])
    named = tuple(replace(each, id=name) for each, name in zip(listed, names, strict=True))
    counted = [drafted for each in named for drafted in (*each.drafted, *each.by_drafted)]
    chain = max([0, *counted, *(each for _, _, each in contents.values())]) or None
    return CallLog(named, k=chain, **settings[0], **known)


def _chain(k: Any) -> int:
    """The longest chain that an entry speaks of; 0 where it says none."""
    if k is not None and not is_count(k):
        raise ValueError(f"k is {k!r}")
    return k or 0


STEPS, _ACCEPTED, _DRAFTED = "num_spec_steps", "num_accepted_draft_tokens", "num_draft_tokens"


def counts_of(record: Json) -> dict[str, Any]:
    """Counts of a request: totals, calls by accepted tokens, and every call where the record is detailed."""
    counts: dict[str, Any] = {
        "calls": record[STEPS],
        "total_accepted": record[_ACCEPTED],
        "total_drafted": record[_DRAFTED],
        "accepted": tuple(record.get("per_step_accepted") or ()),
        "drafted": tuple(record.get("per_step_drafted") or ()),
        "by_drafted": _by_drafted(record),
    }
    pooled = histogram(record.get("acceptance_histogram"))
    if len(counts["accepted"]) == counts["calls"] and pooled and pooled != histogram(Counter(counts["accepted"])):
        raise TextError(
            "per_step_accepted and acceptance_histogram differ",
            limit="both count the same calls",
            remedy="check the log for torn or mixed lines",
        )
    return counts


def histogram(row: Any) -> tuple[int, ...]:
    """Calls by accepted tokens, 0 first and without zeros at the end, from a list or a sparse mapping."""
    if isinstance(row, dict):
        sparse = {int(accepted): count for accepted, count in row.items()}
        if outside := [accepted for accepted in sparse if not 0 <= accepted <= MOST_DRAFTS]:
            raise ValueError(f"{outside[0]} accepted tokens in a call, 0..{MOST_DRAFTS} are possible")
        row = [sparse.get(i, 0) for i in range(max(sparse, default=-1) + 1)]
    counts = list(row or ())
    while counts and counts[-1] == 0:
        counts.pop()
    return tuple(counts)


def _by_drafted(record: Json) -> dict[int, tuple[int, ...]]:
    """Calls by drafted and accepted tokens; one row if every call drafted as many."""
    by_length = at(record, "acceptance_histogram_by_draft_length")
    if by_length:
        return {int(k): histogram(row) for k, row in by_length.items() if histogram(row)}
    return one_length(
        record.get("acceptance_histogram"), record[STEPS], record[_DRAFTED], record.get("num_spec_tokens")
    )


def one_length(row: Any, calls: int, drafted: int, longest: int | None = None) -> dict[int, tuple[int, ...]]:
    """Calls by accepted tokens under the one number of drafts that every call had; empty if there were several.

    Without the `longest` chain, calls are taken to have had as many if their number divides the drafted tokens.
    """
    each, rest = divmod(drafted, calls) if calls else (0, 1)
    if not row or rest or len(histogram(row)) > each + 1 or each != (longest or each):
        return {}
    return {each: histogram(row)}
