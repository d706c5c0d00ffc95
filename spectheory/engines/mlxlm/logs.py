"""mlx-lm: the responses of ``stream_generate``, a line for each token, which say whether the draft proposed it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spectheory.errors import TextError
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.importers.answers import Json, entries
from spectheory.trace.importers.base import Format

_FLAG, _TOKEN, _END = "from_draft", "token", "finish_reason"


def _read_responses(path: Path) -> CallLog:
    """A request ends with a ``finish_reason``; a call with a token that is not the draft's, or with its request."""
    requests: list[Request] = []
    responses: list[Json] = []
    for where, entry in entries(path).items():
        if type(entry.get(_FLAG)) is not bool or type(entry.get(_TOKEN)) is not int:
            raise TextError(
                f"{where} has {_TOKEN} {entry.get(_TOKEN)!r} and {_FLAG} {entry.get(_FLAG)!r}",
                limit="needs a number and true or false",
                remedy="write both of every response",
            )
        responses.append(entry)
        if entry.get(_END) is not None:
            requests.append(_request(str(len(requests) + 1), responses))
            responses = []
    if responses:
        raise TextError(
            f"{path} ends within a request ({len(responses)} tokens without {_END})",
            limit=f"the last response of a request says its {_END}",
            remedy=f"write {_END} too, and remove a text that was cut",
        )
    if not any(each.total_accepted for each in requests):
        raise TextError(f"{path} has no token of a draft", limit=f"needs {_FLAG} true", remedy="give a draft model")
    return CallLog(tuple(requests), engine="mlx-lm", prefill_emits_token=False, counts_past_end=False)


def _request(name: str, responses: list[Json]) -> Request:
    return Request(
        name,
        output=tuple(each[_TOKEN] for each in responses),
        ended=responses[-1][_END] == "stop",
        accepted=tuple(_calls(responses)),
    )


def _calls(responses: list[Json]) -> Iterator[int]:
    """Accepted drafts of each call; the last one may end with the text, without a token of its own."""
    accepted: Any = 0
    for each in responses:
        if each[_FLAG]:
            accepted += 1
        else:
            yield accepted
            accepted = 0
    if accepted:
        yield accepted


REQUESTS = (
    Format(
        "mlx-lm",
        lambda head: b'"from_draft"' in head,
        _read_responses,
        title='mlx-lm\'s `stream_generate`, a line `{"token": 5, "from_draft": true, "finish_reason": null}` for each '
        "response",
        gives="accepted tokens of every call, and token ids of the output",
        lacks="drafted tokens and k, which is at least the longest run of accepted ones; prompts",
    ),
)
