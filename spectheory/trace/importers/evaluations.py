"""Answer files of evaluations, of any engine: AIPerf, Spec-Bench and EAGLE's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from spectheory.errors import TextError
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.importers.answers import call_log, counts_of, name_of, request_of
from spectheory.trace.importers.base import Format
from spectheory.trace.importers.objects import Json, at, entries

_RECORD = "spec_decode_acceptance"
_PLACES = (_RECORD, f"metrics.{_RECORD}.value", f"metrics.{_RECORD}", f"metadata.{_RECORD}")


def _read_aiperf(path: Path) -> CallLog:
    """Read a record per line; lines without acceptance (failed or plain requests) are left out.

    The records name the engine; under vLLM the prompt's pass emits the first token, of others this is not known.
    """
    engines = {str(at(record, "engine")) for each in entries(path).values() if (record := at(each, *_PLACES))}
    engine = engines.pop() if len(engines) == 1 else ""
    prefill = True if engine == "vllm" else None
    return call_log(path, "aiperf", _counted, engine=engine, prefill_emits_token=prefill)


def _counted(entry: Json) -> list[Request]:
    if (record := at(entry, *_PLACES)) is None:
        return []
    return [request_of({**entry, "completion_tokens": record.get("completion_tokens")}, **counts_of(record))]


AIPERF = Format(
    "aiperf",
    lambda head: f'"{_RECORD}"'.encode() in head,
    _read_aiperf,
    title="AIPerf's `profile_export.jsonl`",
    gives="calls, accepted and drafted tokens of each request, of any engine; of each call where the engine gives them",
    lacks="token ids: which rule runs is not told from such a log alone",
)


def _by_turn(entry: Json) -> list[Request]:
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
    """Accepted drafts of each call, whether or not the lengths count the token after them.

    A length counts the bonus or recovered token too, as the benchmark's own mean does; some methods leave it out. Both
    are told apart by ``new_tokens``: the lengths of an answer add up to them, but for the last call of a turn, which
    may be cut.
    """
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
    "spec-bench",
    lambda head: b'"accept_lengths"' in head,
    lambda path: call_log(path, "spec-bench", _by_turn),
    title="Spec-Bench's answer files",
    gives="accepted tokens of every call, of each turn",
    lacks="drafted tokens, temperature and token ids",
)


def _of_choices(entry: Json) -> list[Request]:
    """A request per turn: ``idxs`` holds the number of the last call, counted from 0.

    Every call outputs its accepted drafts and one token more, so accepted = new tokens - calls.
    """
    found = []
    for choice in entry["choices"]:
        counted = zip(choice["idxs"], choice["new_tokens"], choice["wall_time"], strict=True)
        for turn, (last, tokens, seconds) in enumerate(counted, start=1):
            name = f"{name_of(entry)} choice {choice['index']} turn {turn}"
            calls = last + 1
            found.append(Request(name, tokens=tokens, calls=calls, total_accepted=tokens - calls, seconds=seconds))
    return found


EAGLE = Format(
    "eagle",
    lambda head: b'"idxs"' in head and b'"new_tokens"' in head,
    lambda path: call_log(path, "eagle", _of_choices),
    title="EAGLE's answer files",
    gives="mean tokens per call of each turn",
    lacks="accepted tokens of single calls, drafted tokens, temperature and token ids",
)
