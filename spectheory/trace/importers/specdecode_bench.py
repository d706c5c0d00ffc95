"""Traces of SpecDecode-Bench: what a greedy draft would have accepted at every start of a text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

from spectheory.trace.calls import CallLog, Request
from spectheory.trace.importers.base import Format
from spectheory.trace.importers.entries import Json, at
from spectheory.trace.importers.responses import call_log, ids_at

PREFIX, NGRAM = "acc_", "acc_ngram"
NAME = "specdecode-bench"


def read_specdecode_bench(path: Path, *, ngram: bool = False) -> CallLog:
    """Read a text per line, of its model's draft or of its n-gram draft: one decoding from the first start on.

    ``acc_len`` counts the token after the accepted ones, so a call from start n is followed by one from n + acc_len[n].
    A call accepts all that its draft got right, up to the longest length in the file, which is taken as k.
    """

    def requests(entry: Json) -> list[Request]:
        key = _key(entry, ngram)
        return [_request(entry, entry[key]["acc_len"])] if key else []

    def longest(entry: Json) -> int | None:
        key = _key(entry, ngram)
        return max(entry[key]["acc_len"]) - 1 if key else None

    return call_log(path, NAME, requests, k=longest)


def _key(entry: Json, ngram: bool) -> str:
    """The draft's lengths in an entry; empty where it has none."""
    found = [key for key in entry if key.startswith(PREFIX) and (key == NGRAM) == ngram]
    if len(found) > 1:
        raise ValueError(f"several drafts: {', '.join(found)}")
    return found[0] if found else ""


def _request(entry: Json, lengths: Sequence[int]) -> Request:
    """The calls of one decoding; the last one may accept past the end and is cut there."""
    if min(lengths) < 1:
        raise ValueError(f"acc_len holds {min(lengths)}, every call outputs a token")
    starts = [0]
    while starts[-1] < len(lengths):
        starts.append(min(starts[-1] + lengths[starts[-1]], len(lengths)))
    accepted = tuple(after - start - 1 for start, after in pairwise(starts))
    output = ids_at(entry, "generated_token_ids")
    texts = {"output": output} if len(output) == len(lengths) else {"tokens": len(lengths)}
    return Request(str(at(entry, "id") or ""), ids_at(entry, "prompt_token_ids"), accepted=accepted, **texts)


SPECDECODE_BENCH = Format(
    NAME,
    lambda head: b'"acc_len"' in head,
    read_specdecode_bench,
    title="SpecDecode-Bench's traces, of the draft model",
    gives="accepted tokens of every call at the longest recorded length, at temperature 0",
    lacks="the lengths at starts that this decoding passes over",
)
SPECDECODE_NGRAM = Format(
    f"{NAME}-ngram",
    lambda head: b'"acc_len"' in head,
    partial(read_specdecode_bench, ngram=True),
    title="the same, of the n-gram draft",
    gives=SPECDECODE_BENCH.gives,
    lacks=SPECDECODE_BENCH.lacks,
)
