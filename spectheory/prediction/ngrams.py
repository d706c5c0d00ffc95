"""N-gram drafts of engines (§10) replayed on the tokens of a trace, and the rules that read them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spectheory.errors import TraceError
from spectheory.ngrams import NgramDraft, Request, read_ngrams, replay
from spectheory.ngrams.base import NOTHING
from spectheory.trace import Trace
from spectheory.verification import CopiedFirst, NgramMatch, PathRule, Rule
from spectheory.verification.copied import CopiedMatch

NGRAMS = "ngrams"
"""Where a trace's provenance has the names of its n-gram drafts."""


def with_ngrams(
    trace: Trace,
    drafts: Iterable[NgramDraft | str],
    *,
    prompts: Sequence[Any],
    ends: Collection[int] = (),
    removed: Collection[int] = (),
    alone: bool = False,
) -> Trace:
    """The trace with what n-gram drafts copy at every token and how much of it the text repeats (§10, exact).

    `drafts` are as ``spectheory.ngrams.read_ngrams`` reads them. Each of the `prompts` (ids) has equally many of
    the trace's texts, and the texts are served by one server in their order. `ends` are token ids that end a text, and
    `removed` those that top-p removes from logits that are all equal: transformers drafts neither. With `alone` calls
    are those of our decoders (:func:`spectheory.ngrams.replay`).

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
    served = np.concatenate([np.append(output, NOTHING) for output in outputs])
    begins = np.cumsum(trace.lengths + 1) - trace.lengths - 1
    requests = []
    for number, output in enumerate(outputs):
        prompt = np.asarray(prompts[number // each], dtype=np.int64)
        ending = set(ends) - set(output[:-1].tolist())
        requests.append((Request(prompt, ending, removed, served[: begins[number]]), output))
    match, drafted = np.stack([replay(draft, requests, alone=alone) for draft in read], axis=-1).transpose(1, 0, 2)
    columns = {**trace.columns, "ngram_match": match.copy(), "ngram_drafted": drafted.copy()}
    return replace(trace, columns=columns, provenance={**trace.provenance, NGRAMS: [*map(str, read)]})


def ngram_rules(trace: Trace) -> list[NgramMatch]:
    """A rule for each n-gram draft of a trace."""
    return [NgramMatch(draft, place) for place, draft in enumerate(read_ngrams(trace.provenance.get(NGRAMS, [])))]


def ngram_of(rule: Rule) -> NgramMatch | None:
    """The n-gram draft of a rule, whose calls copy always or first."""
    copied = rule.copied if isinstance(rule, CopiedFirst) else rule
    return copied if isinstance(copied, NgramMatch) else None


def in_trace(rule: PathRule, trace: Trace) -> PathRule:
    """The rule with the trace's column of its n-gram draft, if it has one.

    Raises :class:`~spectheory.errors.TraceError` where the trace has columns of other n-gram drafts.
    """
    if isinstance(rule, CopiedFirst):
        copied = in_trace(rule.copied, trace)
        assert isinstance(copied, CopiedMatch)
        return replace(rule, copied=copied)
    if not isinstance(rule, NgramMatch) or rule.missing_columns(trace.columns):
        return rule
    known = {each.name: each for each in ngram_rules(trace)}
    if rule.name not in known:
        raise TraceError(f"the trace has no {rule.name}", limit=f"it has {', '.join(known)}", remedy=rule.missing[1])
    return known[rule.name]
