"""Texts and decoders that the tests of prompt lookup share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from spectheory.measure.copied import lookup_columns
from spectheory.trace import TextInfo, Trace
from spectheory.verification import LookupMatch

PROMPTS = [torch.tensor([i % 5, 0, i % 4 + 1, 0, 3, 0, i % 5]) for i in range(40)]
"""Token 0 ends a text; it has stood behind several others, so that it is drafted."""

KS = (1, 2, 5, 12)

END = 0


def by_hand(
    prompt: Sequence[int], output: Sequence[int], ngram: int = 3, ends: Sequence[int] = ()
) -> dict[str, list[int]]:
    """Every suffix, the longest first, tried at every earlier place, the latest first; then token by token."""
    match, drafted = list[int](), list[int]()
    for start in range(len(output)):
        known, draft = [*prompt, *output[:start]], list[int]()
        for length in range(min(ngram, len(known) - 1), 0, -1):
            places = [at for at in range(length, len(known)) if known[at - length : at] == known[-length:]]
            if places:
                draft = known[places[-1] :]
                break
        for end in ends:
            if end in draft and end not in output[:-1]:
                draft = draft[: draft.index(end) + 1]
        same = 0
        while same < min(len(draft), len(output) - start) and draft[same] == output[start + same]:
            same += 1
        match.append(same)
        drafted.append(len(draft))
    return {"lookup_match": match, "lookup_drafted": drafted}


def text_trace(seed: int = 1, texts: int = 6, tokens: int = 40, name: str = "near") -> Trace:
    """Texts of a few tokens in runs, so that much of them is copied."""
    rng = np.random.default_rng(seed)
    runs = [np.repeat(rng.integers(0, 3, tokens), rng.integers(1, 6, tokens))[:tokens] for _ in range(texts)]
    copied = [lookup_columns([0, 1, 2], run) for run in runs]
    columns = {
        "log_target": -rng.exponential(0.5, texts * tokens),
        "log_draft": -rng.exponential(0.9, texts * tokens),
        **{name: np.concatenate([each[name] for each in copied]) for name in LookupMatch.needs},
    }
    provenance = {"target": {"name": "org/large"}, "draft": {"name": name}}
    return Trace(columns, tuple(TextInfo(str(i), tokens) for i in range(texts)), provenance)
