"""Requests that decode together: sent at once, their output streamed, and the time of a token while all decode."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from spectheory.errors import FOREIGN, EngineError
from spectheory.measure.engines.processes import MOST_BYTES

__all__ = ["Load", "NotTogether", "Streamed", "together"]

_PIECE = 1 << 16
_BURST = 0.1
"""Tokens of a request that follow within this share of its mean time per token came from one step."""
_LEAST_SHARE = 0.25
"""Of their tokens that all requests must have output while all decoded."""

Clock = Callable[[], float]


class NotTogether(EngineError):
    """Requests that did not decode together for long enough."""


@dataclass(frozen=True)
class Streamed:
    """One request's output: its start, and pairs of a time and the tokens output until then, in seconds."""

    began: float
    tokens: tuple[tuple[float, int], ...]

    def steps(self, start: float, end: float) -> list[tuple[float, int]]:
        """Those between two times by steps: tokens that came in one burst have the time of its first.

        The last step of all is left out: the end of the output cuts its tokens.
        """
        inside = [each for each in self.tokens if start <= each[0] <= end]
        if len(inside) < 2:
            return inside
        (first, before), (last, total) = inside[0], inside[-1]
        gap = _BURST * (last - first) / (total - before)
        merged = inside[:1]
        for (earlier, _), (now, count) in pairwise(inside):
            if now - earlier < gap:
                merged[-1] = merged[-1][0], count
            else:
                merged.append((now, count))
        return merged[:-1] if total == self.tokens[-1][1] else merged


@dataclass(frozen=True)
class Load:
    """What requests that were sent together say.

    `token_seconds` is the mean time of a sequence's output token while all requests decoded: from the last first token
    to the first end. No prompt is read in that time, so prefill is left out. `ttft` is the mean time to a first token,
    `share` the part of all further tokens that came in that time.
    """

    token_seconds: float
    ttft: float
    share: float

    @classmethod
    def of(cls, requests: Sequence[Streamed]) -> Load:
        """The time of a token: each request's time between two of its own steps, over the tokens in between."""
        start, end = max(each.tokens[0][0] for each in requests), min(each.tokens[-1][0] for each in requests)
        seconds, tokens = 0.0, 0
        for each in requests:
            steps = each.steps(start, end)
            if len(steps) > 1:
                seconds += steps[-1][0] - steps[0][0]
                tokens += steps[-1][1] - steps[0][1]
        further = sum(each.tokens[-1][1] - each.tokens[0][1] for each in requests)
        share = tokens / further if further else 0.0
        if share < _LEAST_SHARE or seconds <= 0:
            raise NotTogether(
                f"steps of {len(requests)} requests while all decode have {share:.0%} of their tokens",
                limit=f"needs {_LEAST_SHARE:.0%}: the server must run so many at once, and nothing may hold it up",
                remedy="raise its limit of requests, raise --output-tokens, or quiet the machine",
            )
        return cls(seconds / tokens, sum(each.tokens[0][0] - each.began for each in requests) / len(requests), share)


def together(
    url: str, path: str, bodies: Sequence[Mapping[str, Any]], *, timeout: float, clock: Clock = time.perf_counter
) -> list[Streamed]:
    """Send requests at once, each on a connection of its own, and read their streams to the end."""
    answers: list[Streamed | BaseException | None] = [None] * len(bodies)
    ready = threading.Barrier(len(bodies))

    def ask(i: int, body: Mapping[str, Any]) -> None:
        try:
            answers[i] = _asked(url, path, body, timeout, clock, ready)
        except BaseException as error:
            ready.abort()
            answers[i] = error

    threads = [threading.Thread(target=ask, args=each, daemon=True) for each in enumerate(bodies)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    broken = [each for each in answers if isinstance(each, BaseException)]
    for error in sorted(broken, key=lambda each: isinstance(each, threading.BrokenBarrierError)):
        raise error
    return [each for each in answers if isinstance(each, Streamed)]


def _asked(
    url: str, path: str, body: Mapping[str, Any], timeout: float, clock: Clock, ready: threading.Barrier
) -> Streamed:
    """One request. Pieces of the stream are kept with their times and read afterwards: reading takes time too."""
    where = urlsplit(url)
    kind = http.client.HTTPSConnection if where.scheme == "https" else http.client.HTTPConnection
    pieces: list[tuple[float, bytes]] = []
    connection = kind(where.hostname or "", where.port, timeout=timeout)
    try:
        connection.connect()
        ready.wait(timeout)
        began, size = clock(), 0
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        connection.request("POST", f"{where.path}{path}", json.dumps(body), headers)
        answer = connection.getresponse()
        while piece := answer.read1(_PIECE):
            pieces.append((now := clock(), piece))
            size += len(piece)
            if size > MOST_BYTES or now - began > timeout:
                raise _refused(url, f"did not end its answer to {path}", f"within {timeout:g} s and {MOST_BYTES} bytes")
    except (OSError, http.client.HTTPException) as error:
        reason = str(error) or type(error).__name__
        raise _refused(url, f"cannot be reached or ended ({reason})", "must run until the last point") from error
    finally:
        connection.close()
    if answer.status != 200:
        said = " ".join(b"".join(part for _, part in pieces).decode(errors="replace").split())[:200]
        raise _refused(url, f"answered {answer.status} to {path} ({said})", "needs an answer 200")
    try:
        return Streamed(began, tuple(_counted(_events(pieces))))
    except FOREIGN as error:
        if isinstance(error, EngineError):
            raise
        raise _refused(url, f"streams no tokens to {path} ({error})", "needs events of data: JSON") from error


def _events(pieces: Iterable[tuple[float, bytes]]) -> Iterator[tuple[float, dict[str, Any]]]:
    """The objects of a stream of server-sent events, with the times at which they were whole."""
    left = b""
    for at, piece in pieces:
        *lines, left = (left + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data:") and line[5:].strip() != b"[DONE]":
                event = json.loads(line[5:])
                if "error" in event:
                    raise ValueError(str(event["error"])[:200])
                yield at, event


def _counted(events: Iterable[tuple[float, dict[str, Any]]]) -> list[tuple[float, int]]:
    """Tokens output so far at each event that brought some.

    An event says them by its usage, or by the ids of its tokens. Where none does, the total of the last usage is spread
    over the events by the letters of their texts (an estimate).
    """
    counted: list[tuple[float, int]] = []
    texts: list[tuple[float, int]] = []
    total = letters = 0
    for at, event in events:
        choice = (event.get("choices") or [{}])[0]
        usage = (event.get("usage") or {}).get("completion_tokens")
        ids = choice.get("token_ids") or event.get("tokens") or ()
        if text := choice.get("text") or event.get("content"):
            letters += len(text)
            texts.append((at, letters))
        if usage is not None and not choice and not counted:
            counted = [(then, round(usage * many / letters)) for then, many in texts]
        now = usage if usage is not None else total + len(ids)
        if now > total and (choice or ids):
            counted.append((at, now))
        total = max(total, now)
    if not counted:
        raise ValueError("no event says how many tokens it brings" if letters else "it ended without one")
    return counted


def _refused(url: str, what: str, limit: str) -> EngineError:
    return EngineError(
        f"server {url} {what}",
        limit=limit,
        remedy="check the server and its log; finished points are kept, the same command continues",
    )
