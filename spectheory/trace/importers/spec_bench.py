"""Answer files of Spec-Bench: accepted lengths of every call, over all turns of a question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from spectheory.errors import TextError
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.importers.base import Format
from spectheory.trace.importers.entries import Json
from spectheory.trace.importers.responses import call_log, name_of

NAME = "spec-bench"


def read_spec_bench(path: Path) -> CallLog:
    """Read a question per line, a request per turn.

    A length counts the bonus or recovered token too, as the benchmark's own mean does; some methods leave it out. Both
    are told apart by ``new_tokens``: the lengths of an answer add up to them, but for the last call of a turn, which
    may be cut.
    """
    return call_log(path, NAME, _requests)


def _requests(entry: Json) -> list[Request]:
    return [request for choice in entry["choices"] for request in _turns(choice, name_of(entry))]


def _turns(choice: Json, question: str) -> Iterator[Request]:
    """A request per turn; one for all of them where the lengths cannot be divided among the turns."""
    steps, tokens, seconds = choice["decoding_steps"], choice["new_tokens"], choice["wall_time"]
    accepted = _accepted(choice["accept_lengths"], sum(tokens), len(tokens))
    if sum(steps) != len(accepted):
        yield Request(question, tokens=sum(tokens), accepted=accepted, seconds=sum(seconds))
        return
    start = 0
    for turn, (count, length, time) in enumerate(zip(steps, tokens, seconds, strict=True), start=1):
        calls = accepted[start : start + count]
        yield Request(f"{question} turn {turn}", tokens=length, accepted=calls, calls=count, seconds=time)
        start += count


def _accepted(lengths: Sequence[int], tokens: int, turns: int) -> tuple[int, ...]:
    """Accepted drafts of each call, whether or not the lengths count the token after them."""
    room = turns * max(lengths, default=0)
    if min(lengths, default=0) >= 1 and 0 <= sum(lengths) - tokens <= room:
        return tuple(length - 1 for length in lengths)
    if -turns <= sum(lengths) + len(lengths) - tokens <= room:
        return tuple(lengths)
    raise TextError(
        f"accept_lengths add up to {sum(lengths)} over {len(lengths)} calls, new_tokens to {tokens}",
        limit="they must agree, with or without one token more per call",
        remedy="check the log for torn or mixed answers",
    )


SPEC_BENCH = Format(
    NAME,
    lambda head: b'"accept_lengths"' in head,
    read_spec_bench,
    title="Spec-Bench's answer files",
    gives="accepted tokens of every call, of each turn",
    lacks="drafted tokens, temperature and token ids",
)
