"""What an engine says of its calls, request by request; texts as token ids where they are known."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from reprlib import repr as brief
from typing import Any, TypeGuard

from spectheory.distributions import Sampling
from spectheory.errors import FOREIGN, TextError
from spectheory.files import loaded_json, read_text, write_whole

CALLS_FILE = "calls.jsonl"
"""Name of a call log in a folder."""
MARK = "spectheory calls"
"""What the first line of a call log says of itself."""
SCHEMA = 1


MOST_DRAFTS = 1024
"""Drafts of a call; engines take far fewer."""
MOST_COUNTED = 2**63 - 1
"""Of whatever is counted."""


def is_count(value: Any) -> TypeGuard[int]:
    """Whether a value from a log is an integer >= 0 that a counter can hold; truth values are none."""
    return type(value) is int and 0 <= value <= MOST_COUNTED


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value from a log is a number; truth values are none."""
    return type(value) in (int, float)


@dataclass(frozen=True)
class Request:
    """One request: its prompt and output as token ids (empty where unknown), and what was counted.

    A *call* is a target pass that verifies drafts; the prompt's own pass is none if it emits a token. `accepted` and
    `drafted` have an entry per call in their order, without recovered and bonus tokens; `by_drafted` has for each
    number of drafted tokens the calls by accepted tokens, 0 first. Totals (`calls`, `total_accepted`, `total_drafted`)
    are filled in from these where they are not given; None is unknown. `tokens` counts the output's; `ended` says that
    the text ended by itself.
    """

    id: str
    prompt: tuple[int, ...] = ()
    output: tuple[int, ...] = ()
    tokens: int | None = None
    ended: bool = False
    accepted: tuple[int, ...] = ()
    drafted: tuple[int, ...] = ()
    by_drafted: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    calls: int | None = None
    total_accepted: int | None = None
    total_drafted: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        self._check_types()
        if self.accepted and self.drafted and len(self.accepted) != len(self.drafted):
            raise self._refused(f"{len(self.accepted)} calls accepted, {len(self.drafted)} drafted", "one entry a call")
        if any(a > d for a, d in zip(self.accepted, self.drafted, strict=False)):
            raise self._refused("a call accepted more tokens than it drafted", "accepted <= drafted")
        derived = self._derived()
        for name in ("tokens", "calls", "total_accepted", "total_drafted"):
            given, value = getattr(self, name), derived.get(name)
            if given is None:
                object.__setattr__(self, name, value)
            elif not is_count(given):
                raise self._refused(f"{name} is {brief(given)}", "must be an integer >= 0")
            elif value is not None and given != value:
                raise self._refused(f"{name} is {given}, its calls give {value}", "the two must agree")

    def _check_types(self) -> None:
        """Whole numbers in every list, and a time that is one."""
        counted: dict[str, Collection[int]] = {"drafted tokens of a call": self.by_drafted}
        for k, row in self.by_drafted.items():
            counted |= {f"calls with {k} drafted tokens": row}
            if len(row) > k + 1:
                raise self._refused(f"a call accepted {len(row) - 1} of {k} drafted tokens", "accepted <= drafted")
        counted |= {"accepted": self.accepted, "drafted": self.drafted}
        for name, values in counted.items():
            if wrong := [value for value in values if not is_count(value)]:
                raise self._refused(f"{name} has {brief(wrong[0])}", "must be integers >= 0")
        if wrong := [token for token in (*self.prompt, *self.output) if type(token) is not int]:
            raise self._refused(f"its text has token {brief(wrong[0])}", "ids are integers")
        longest = max([*self.accepted, *self.drafted, *self.by_drafted], default=0)
        if longest > MOST_DRAFTS:
            raise self._refused(f"a call has {longest} drafts", f"at most {MOST_DRAFTS}")
        if self.seconds is not None and not (is_number(self.seconds) and 0 <= self.seconds < math.inf):
            raise self._refused(f"seconds is {brief(self.seconds)}", "must be a finite number >= 0")

    def _derived(self) -> dict[str, int | None]:
        """The totals that texts and calls give."""
        rows = self.by_drafted.items()
        totals: dict[str, int | None] = {"tokens": len(self.output) or None}
        if self.accepted:
            totals |= {"calls": len(self.accepted), "total_accepted": sum(self.accepted)}
        elif rows:
            accepted = sum(i * count for _, row in rows for i, count in enumerate(row))
            totals |= {"calls": sum(sum(row) for _, row in rows), "total_accepted": accepted}
        if self.drafted or rows:
            totals["total_drafted"] = sum(self.drafted) or sum(k * sum(row) for k, row in rows)
        return totals

    def _refused(self, what: str, limit: str) -> TextError:
        return TextError(f"request {self.id!r}: {what}", limit=limit, remedy="check the log for torn or mixed lines")


@dataclass(frozen=True)
class CallLog:
    """Requests of one engine under one setting.

    - `engine`, `version`: as the log says, else empty.
    - `k`: the longest chain of a call; None if unknown.
    - `temperature`, `top_k`, `top_p`, `min_p`: how tokens were drawn; None if unknown or not used.
    - `prefill_emits_token`: whether the prompt's own pass emits the first token and is no call; None if unknown.
    - `counts_past_end`: whether counts hold accepted tokens past the end of a text; None if unknown.
    - `provenance`: all else (models, dtype, machine, date, the engine's own settings).
    """

    requests: tuple[Request, ...]
    engine: str = ""
    version: str = ""
    k: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    prefill_emits_token: bool | None = None
    counts_past_end: bool | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (isinstance(self.provenance, dict) and isinstance(self.engine, str) and isinstance(self.version, str)):
            raise _no_log("engine, version or provenance is of another type", "must be names and an object")
        if self.k is not None and not (is_count(self.k) and 1 <= self.k <= MOST_DRAFTS):
            raise _no_log(f"k is {brief(self.k)}", f"must be an integer in 1..{MOST_DRAFTS}")
        for name in ("temperature", "top_k", "top_p", "min_p"):
            value = getattr(self, name)
            if value is not None and not (is_number(value) and 0 <= value < math.inf):
                raise _no_log(f"{name} is {brief(value)}", "must be a finite number >= 0")
        for request in self.requests:
            self._refuse_surplus(request)

    def _refuse_surplus(self, request: Request) -> None:
        """Refuse counts that hold more tokens than the text, by more than one call outputs."""
        if request.tokens is None or request.calls is None or request.total_accepted is None:
            return
        counted = request.calls + request.total_accepted + bool(self.prefill_emits_token)
        longest = max([*request.drafted, *request.accepted, self.k or request.total_drafted or 0])
        if counted - request.tokens > longest + 1:
            raise _no_log(
                f"request {request.id!r}: its calls output {counted} tokens, its text has {request.tokens}",
                f"counts may exceed a text by one call, here of {longest + 1} tokens",
            )

    def __len__(self) -> int:
        """Number of requests."""
        return len(self.requests)

    @classmethod
    def join(cls, parts: Sequence[CallLog]) -> CallLog:
        """One log of several files; they must be of one setting."""
        first = parts[0]
        for other in parts[1:]:
            if differing := [name for name in SETTING if getattr(other, name) != getattr(first, name)]:
                raise TextError(
                    f"the logs differ in {', '.join(differing)}",
                    limit="requests are judged under one setting",
                    remedy="judge each log on its own",
                )
        return replace(first, requests=tuple(request for part in parts for request in part.requests))

    @property
    def sampling(self) -> Sampling | None:
        """How tokens were drawn; None where the temperature is unknown."""
        if self.temperature is None:
            return None
        return Sampling(self.temperature, top_k=self.top_k, top_p=self.top_p, min_p=self.min_p)

    def header(self) -> dict[str, Any]:
        """Everything but the requests, as the first line of a file has it."""
        known = {name: getattr(self, name) for name in (*SETTING, "provenance")}
        return {"spectheory": MARK, "schema": SCHEMA, **known}

    def write(self, path: str | Path) -> None:
        """Write as JSON lines; the file appears when whole."""
        lines = [self.header(), *(request_line(request) for request in self.requests)]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        write_whole(Path(path), lambda partial: partial.write_text(text, encoding="utf-8"))

    @classmethod
    def read(cls, path: str | Path) -> CallLog:
        """Read a file that :meth:`write` made, or one with a line less per request that is still missing."""
        objects = [_parse(line, path) for line in read_text(Path(path)).splitlines() if line.strip()]
        if not objects:
            raise TextError(
                f"{path} is empty", limit="needs a line of settings", remedy="import the engine's log again"
            )
        header, *lines = objects
        if header.get("schema") != SCHEMA:
            raise TextError(
                f"{path} has schema {header.get('schema')!r}",
                limit=f"this version reads {SCHEMA}",
                remedy="import the engine's log again",
            )
        try:
            requests = tuple(_request(line) for line in lines)
            return cls(requests, **{name: header[name] for name in (*SETTING, "provenance") if name in header})
        except FOREIGN as error:
            raise TextError(
                f"{path} is no call log ({error})", limit="needs lines of requests", remedy="import the log again"
            ) from error


def _no_log(what: str, limit: str) -> TextError:
    return TextError(what, limit=limit, remedy="check the log for torn or mixed lines")


SETTING = (
    "engine",
    "version",
    "k",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "prefill_emits_token",
    "counts_past_end",
)
"""Fields of a call log that every request shares."""


def request_line(request: Request) -> dict[str, Any]:
    """A request as a line of a file; what is unknown is left out."""
    known = asdict(request).items()
    return {name: value for name, value in known if not (value is None or value is False or value in ((), {}))}


def _request(line: Mapping[str, Any]) -> Request:
    lists = {name: tuple(line.get(name, ())) for name in ("prompt", "output", "accepted", "drafted")}
    counts = {int(k): tuple(row) for k, row in line.get("by_drafted", {}).items()}
    return Request(**{**line, **lists, "by_drafted": counts})


def _parse(line: str, path: str | Path) -> dict[str, Any]:
    try:
        content = loaded_json(line)
    except FOREIGN:
        content = None
    if not isinstance(content, dict):
        raise TextError(f"{path} has a line without an object", limit="one object per line", remedy="import it again")
    return content
