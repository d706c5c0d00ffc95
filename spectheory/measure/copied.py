"""What copied drafts repeat of a text, as the decoders here draft them; no model is read."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spectheory.distributions import Sampling
from spectheory.ngrams import NgramDraft, Request, replay
from spectheory.ngrams.lookup import Lookup
from spectheory.verification import LookupMatch, NgramMatch
from spectheory.verification.lookup import LOOKUP_NGRAM


def lookup_columns(
    prompt_ids: Any, output_ids: Any, ends: Collection[int] = (), ngram: int = LOOKUP_NGRAM
) -> dict[str, NDArray[np.int16]]:
    """``lookup_drafted`` and ``lookup_match`` ``[n]``: tokens copied at each output token, and how many of them repeat
    (§7).

    A token of `ends` that the output continues after did not end it.
    """
    rows = _replayed(Lookup(ngram), prompt_ids, output_ids, ends, ())
    return dict(zip(LookupMatch.needs, rows.T.copy(), strict=True))


def ngram_columns(
    draft: NgramDraft, prompt_ids: Any, output_ids: Any, ends: Collection[int] = (), removed: Collection[int] = ()
) -> dict[str, NDArray[np.int16]]:
    """``ngram_drafted`` and ``ngram_match`` ``[n, 1]`` of one n-gram draft in the same way."""
    rows = _replayed(draft, prompt_ids, output_ids, ends, removed)
    return dict(zip(NgramMatch.needs, rows.T[..., None].copy(), strict=True))


def _replayed(
    draft: NgramDraft, prompt_ids: Any, output_ids: Any, ends: Collection[int], removed: Collection[int]
) -> NDArray[np.int16]:
    prompt, output = (np.asarray(ids, dtype=np.int64) for ids in (prompt_ids, output_ids))
    request = Request(prompt, set(ends) - set(output[:-1].tolist()), removed)
    return replay(draft, [(request, output)], alone=True)


def removed_from_equal(network: Any, sampling: Sampling) -> list[int]:
    """Token ids that top-p removes from logits that are all equal, as transformers cuts lookup drafts on a CPU.

    Those whose shares, in the order in which torch sorts equal numbers, sum to at most 1 - top_p.
    """
    if sampling.top_p is None or sampling.top_p >= 1:
        return []
    logits, order = torch.ones(network.config.get_text_config().vocab_size).sort()
    return [int(token) for token in order[:-1][logits.softmax(0).cumsum(0)[:-1] <= 1 - sampling.top_p]]
