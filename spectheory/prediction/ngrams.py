"""N-gram drafts of engines (§10) replayed on the tokens of a trace, and the rules that read them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spectheory.errors import TraceError
from spectheory.ngrams import NgramDraft, Request, read_ngrams, replay
from spectheory.trace import Trace
from spectheory.verification import NgramMatch

NGRAMS = "ngrams"
"""Where a trace's provenance has its n-gram drafts."""


def with_ngrams(
    trace: Trace,
    drafts: Iterable[NgramDraft | str],
    *,
    prompts: Sequence[Any],
    ends: Collection[int] = (),
    removed: Collection[int] = (),
) -> Trace:
    """The trace with what n-gram drafts copy at every token and how much of it the text repeats (§10, exact).

    `drafts` are as ``spectheory.ngrams.read_ngrams`` reads them. Each of the `prompts` (ids) has equally many of
    the trace's texts, and the texts are served by one server in their order. `ends` are token ids that end a text, and
    `removed` those that top-p removes from logits that are all equal: transformers drafts neither.

    Raises :class:`~spectheory.errors.TraceError` where the trace has no tokens or another number of texts.

    Examples
    --------
    >>> from spectheory.trace import TextInfo
    >>> scores = {name: np.full(6, -1.0) for name in ("log_target", "log_draft")}
    >>> trace = Trace({"token": np.array([7, 8, 1, 2, 7, 8]), **scores}, (TextInfo("1", 6),))
    >>> trace = with_ngrams(trace, ["ngram-vllm:min=1,max=2"], prompts=[[1, 2, 7, 1, 2]])
    >>> trace.columns["ngram_match"][:, 0].tolist()
    [1, 0, 0, 2, 1, 0]
    """
    read = read_ngrams(drafts)
    if not read:
        return trace
    if "token" not in trace.columns or not len(prompts) or len(trace.texts) % len(prompts):
        raise TraceError(
            f"n-gram drafts are asked for with {len(prompts)} prompts, and the trace has {len(trace.texts)} texts",
            limit="they need the tokens of the trace, and equally many texts of each prompt",
            remedy="pass a measured trace and the ids of its prompts",
        )
    outputs = np.split(np.asarray(trace.columns["token"], dtype=np.int64), np.cumsum(trace.lengths)[:-1])
    each, removed = len(outputs) // len(prompts), frozenset(removed)
    requests = []
    for number, output in enumerate(outputs):
        prompt = np.asarray(prompts[number // each], dtype=np.int64)
        requests.append((Request(prompt, set(ends) - set(output[:-1].tolist()), removed), output))
    match, drafted = np.stack([replay(draft, requests) for draft in read], axis=-1).transpose(1, 0, 2)
    columns = {**trace.columns, "ngram_match": match.copy(), "ngram_drafted": drafted.copy()}
    listed = [{"name": str(draft), "engine": draft.engine, "k": draft.k} for draft in read]
    return replace(trace, columns=columns, provenance={**trace.provenance, NGRAMS: listed})


def ngram_rules(trace: Trace) -> list[NgramMatch]:
    """A rule for each n-gram draft of a trace."""
    listed = trace.provenance.get(NGRAMS, [])
    return [NgramMatch(each["name"], place, each["engine"], each["k"]) for place, each in enumerate(listed)]
