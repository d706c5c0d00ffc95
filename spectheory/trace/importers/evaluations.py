"""Answer files of evaluations, of any engine: AIPerf, Spec-Bench, EAGLE's, SpecDecode-Bench's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spectheory.errors import TextError, argument
from spectheory.ngrams.base import LONGEST_COPY
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.importers.answers import (
    Json,
    at,
    call_log,
    counts_of,
    distinct,
    entries,
    name_of,
    read_each,
    request_of,
)
from spectheory.trace.importers.base import Format
from spectheory.trace.record import Trace
from spectheory.trace.text_info import LEFT_OUT, RECORDED, SAMPLED_TEXT, TextInfo

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
    requests = []
    for choice in entry["choices"]:
        counted = zip(choice["idxs"], choice["new_tokens"], choice["wall_time"], strict=True)
        for turn, (last, tokens, seconds) in enumerate(counted, start=1):
            name = f"{name_of(entry)} choice {choice['index']} turn {turn}"
            calls = last + 1
            requests.append(Request(name, tokens=tokens, calls=calls, total_accepted=tokens - calls, seconds=seconds))
    return requests


EAGLE = Format(
    "eagle",
    lambda head: b'"idxs"' in head and b'"new_tokens"' in head,
    lambda path: call_log(path, "eagle", _of_choices),
    title="EAGLE's answer files",
    gives="mean tokens per call of each turn",
    lacks="accepted tokens of single calls, drafted tokens, temperature and token ids",
)


PREFIX, NGRAM, ONLY = "acc_", "ngram", "acc"
NAME = "specdecode-bench"
MODEL, AGREEING = f"{NAME}-model", f"{NAME}-agreeing"


class _RecordedRequest(NamedTuple):
    """One request: its name, the tokens of its text, and the accepted drafts at every start by draft."""

    id: str
    tokens: int
    accepted: Mapping[str, Sequence[int]]

    @property
    def differing(self) -> list[str]:
        """Drafts whose lists are not of the text's length."""
        return [name for name, each in self.accepted.items() if len(each) != self.tokens]


def _read_specdecode_bench(path: Path, *, agreeing: bool = False) -> Trace:
    """Every draft of the log on the same texts.

    ``acc_len`` counts the token after the accepted ones, and the entry n is of a call that finds n tokens of the text.
    It is the longest that the draft gets right there, so a call of k drafts accepts the smaller of both. Lists that are
    not of their text's length come from another run of the text; with `agreeing` such requests are left out.
    """
    by_place = read_each(path, NAME, _listed)
    _one_set_of_drafts(by_place)
    requests = list(by_place.values())
    differ = [each for each in requests if each.differing]
    if differ and not agreeing:
        raise _other_runs(path, differ, len(requests))
    kept = [each for each in requests if not each.differing]
    if not kept:
        raise _other_runs(path, differ, len(requests))
    return _trace(kept, left_out=len(differ))


def _read_own(path: Path, *, wanted: Callable[[str], bool]) -> Trace:
    """One draft of the log, whose list is a text of its own: for lists that come from another run of the text."""

    def with_list(entry: Json) -> _RecordedRequest:
        listed = _listed(entry)
        chosen = [name for name in listed.accepted if wanted(name)]
        if len(chosen) != 1:
            raise ValueError(f"drafts are {', '.join(listed.accepted)}, one is read")
        accepted = listed.accepted[chosen[0]]
        return _RecordedRequest(listed.id, len(accepted), {chosen[0]: accepted})

    requests = read_each(path, NAME, with_list)
    _one_set_of_drafts(requests)
    return _trace(list(requests.values()))


def _listed(entry: Json) -> _RecordedRequest:
    keys = [key for key in entry if key.startswith(PREFIX) or key == ONLY]
    if not keys:
        raise KeyError(f"{PREFIX}*.acc_len")
    accepted = {key.removeprefix(PREFIX): _accepted_in(key, entry[key]) for key in keys}
    output = at(entry, "generated_token_ids")
    if output is not None and not isinstance(output, list):
        raise ValueError("generated_token_ids is no list")
    tokens = len(output) if output else max(map(len, accepted.values()))
    return _RecordedRequest(str(at(entry, "id") or ""), tokens, accepted)


def _accepted_in(key: str, value: Any) -> list[int]:
    """Accepted drafts of a call from every start."""
    lengths = value["acc_len"] if isinstance(value, Mapping) else value
    if not (isinstance(lengths, list) and lengths and all(type(each) is int for each in lengths)):
        raise ValueError(f"acc_len of {key} must be a list of integers, one for each token of the text")
    least, most = min(lengths), max(lengths)
    if least < 1:
        raise ValueError(f"acc_len of {key} holds {least}, every call outputs a token")
    if most > len(lengths) + 1:
        raise ValueError(f"acc_len of {key} holds {most}, and its text has {len(lengths)} tokens")
    if most > LONGEST_COPY + 1:
        raise ValueError(f"acc_len of {key} holds {most}, at most {LONGEST_COPY + 1} are read")
    return [each - 1 for each in lengths]


def _one_set_of_drafts(requests: Mapping[str, _RecordedRequest]) -> None:
    """Refuse a file whose requests have different drafts."""
    first = next(iter(requests.values()))
    for where, each in requests.items():
        if each.accepted.keys() != first.accepted.keys():
            raise TextError(
                f"{where} has the drafts {', '.join(each.accepted)}, others have {', '.join(first.accepted)}",
                limit="every request of a log has the same drafts",
                remedy="split the log by its drafts",
            )


def _other_runs(path: Path, differ: Sequence[_RecordedRequest], requests: int) -> TextError:
    first, name = differ[0], differ[0].differing[0]
    return TextError(
        f"{path}: request {first.id!r} has {len(first.accepted[name])} lengths of {name} for a text of {first.tokens} "
        f"tokens, as have {len(differ)} of {requests} requests",
        limit="drafts are compared on one text, with a length for each of its tokens",
        remedy=argument(f"spectheory.trace.read_evidence(path, {AGREEING!r})", f"spectheory import --format {AGREEING}")
        + f" keeps the other requests; {MODEL} or {NAME}-{NGRAM} reads one "
        "draft on a text of its own",
    )


def _trace(requests: Sequence[_RecordedRequest], *, left_out: int = 0) -> Trace:
    """Accepted drafts by start, as recorded: they may reach past the end of a text, where calls are cut."""
    drafts = list(requests[0].accepted)
    lengths = np.concatenate([np.array([each.accepted[name] for name in drafts], np.int32).T for each in requests])
    names = distinct([each.id for each in requests])
    texts = tuple(TextInfo(name, each.tokens) for name, each in zip(names, requests, strict=True))
    provenance = {
        "source": NAME,
        "origin": SAMPLED_TEXT,
        "settings": {"sampling": {"temperature": 0.0}},
        RECORDED: drafts,
        **({LEFT_OUT: left_out} if left_out else {}),
    }
    return Trace({"recorded_match": lengths}, texts, provenance)


def _recognised(head: bytes) -> bool:
    return b'"acc_len"' in head


GIVES = "calls for every k up to the longest recorded length, exactly, at temperature 0"
SPECDECODE_BENCH = Format(
    NAME,
    _recognised,
    _read_specdecode_bench,
    title="SpecDecode-Bench's accepted lengths at every start, of all drafts on one text",
    gives=f"{GIVES}; the better draft at each start",
    lacks="sampled decoding, limits, acceptance by rules",
)
SPECDECODE_AGREEING = Format(
    AGREEING,
    _recognised,
    partial(_read_specdecode_bench, agreeing=True),
    title="the same, without the requests whose lists are not of their text's length",
    gives=SPECDECODE_BENCH.gives,
    lacks=f"{SPECDECODE_BENCH.lacks}, the requests left out",
)
SPECDECODE_MODEL = Format(
    MODEL,
    _recognised,
    partial(_read_own, wanted=lambda name: name != NGRAM),
    title="the same, of the draft model alone, on the text of its own list",
    gives=GIVES,
    lacks=SPECDECODE_BENCH.lacks,
)
SPECDECODE_NGRAM = Format(
    f"{NAME}-{NGRAM}",
    _recognised,
    partial(_read_own, wanted=lambda name: name == NGRAM),
    title="the same, of the n-gram draft alone, on the text of its own list",
    gives=GIVES,
    lacks=SPECDECODE_BENCH.lacks,
)
SPECDECODE = (SPECDECODE_BENCH, SPECDECODE_AGREEING, SPECDECODE_MODEL, SPECDECODE_NGRAM)
