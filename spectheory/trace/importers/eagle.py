"""Answer files of EAGLE's evaluation: calls and tokens of each turn."""

from __future__ import annotations

from pathlib import Path

from spectheory.trace.calls import CallLog, Request
from spectheory.trace.importers.base import Format
from spectheory.trace.importers.entries import Json
from spectheory.trace.importers.responses import call_log, name_of

NAME = "eagle"


def read_eagle(path: Path) -> CallLog:
    """Read a question per line, a request per turn: ``idxs`` holds the number of the last call, counted from 0.

    Every call outputs its accepted drafts and one token more, so accepted = new tokens - calls.
    """
    return call_log(path, NAME, _requests)


def _requests(entry: Json) -> list[Request]:
    found = []
    for choice in entry["choices"]:
        counted = zip(choice["idxs"], choice["new_tokens"], choice["wall_time"], strict=True)
        for turn, (last, tokens, seconds) in enumerate(counted, start=1):
            name = f"{name_of(entry)} choice {choice['index']} turn {turn}"
            calls = last + 1
            found.append(Request(name, tokens=tokens, calls=calls, total_accepted=tokens - calls, seconds=seconds))
    return found


EAGLE = Format(
    NAME,
    lambda head: b'"idxs"' in head and b'"new_tokens"' in head,
    read_eagle,
    title="EAGLE's answer files",
    gives="mean tokens per call of each turn",
    lacks="accepted tokens of single calls, drafted tokens, temperature and token ids",
)
