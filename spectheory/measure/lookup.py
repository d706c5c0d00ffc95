"""What prompt lookup drafts after a text, and how much of it the text repeats, at each position."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.verification.copied import LONGEST_COPY
from spectheory.verification.lookup import LOOKUP_NGRAM

Ids = NDArray[np.int64]


def continuation(text: Ids, k: int, ngram: int, ends: Collection[int] = ()) -> Ids:
    """At most k tokens that followed the latest earlier occurrence of the longest suffix of the text ``[n]``, n >= 1.

    The suffix has at most `ngram` tokens; the draft is empty if the last token is new, and stops after a token of
    `ends`. O(ngram) passes over the text, of which the first does most of the work.
    """
    at = (text[:-1] == text[-1]).nonzero()[0]
    for length in range(1, min(ngram, len(text) - 1)):
        longer = at[at >= length]
        longer = longer[text[longer - length] == text[-1 - length]]
        if not len(longer):
            break
        at = longer
    return up_to_end(text[at[-1] + 1 : at[-1] + 1 + k] if len(at) else text[:0], ends)


def up_to_end(draft: Ids, ends: Collection[int]) -> Ids:
    """A draft up to its first token of `ends`."""
    last = np.isin(draft, list(ends)).nonzero()[0]
    return draft[: last[0] + 1] if len(last) else draft


def lookup_columns(
    prompt_ids: Any, output_ids: Any, ends: Collection[int] = (), ngram: int = LOOKUP_NGRAM
) -> dict[str, NDArray[np.int16]]:
    """``lookup_drafted`` and ``lookup_match`` ``[n]``: tokens copied at each output token, and how many of them repeat
    (§7).

    A token of `ends` that the output continues after did not end it.
    """
    prompt, output = (np.asarray(ids, dtype=np.int64) for ids in (prompt_ids, output_ids))
    text = np.concatenate([prompt, output])
    ending = set(ends) - set(output[:-1].tolist())
    rows = []
    for start in range(len(prompt), len(text)):
        draft = continuation(text[:start], LONGEST_COPY, ngram, ending)
        rows.append((leading(draft, text[start:]), len(draft)))
    match, drafted = np.array(rows, dtype=np.int16).reshape(-1, 2).T
    return {"lookup_match": match.copy(), "lookup_drafted": drafted.copy()}


def leading(draft: Ids, follows: Ids) -> int:
    """How many leading tokens are equal."""
    both = min(len(draft), len(follows))
    different = (draft[:both] != follows[:both]).nonzero()[0]
    return int(different[0]) if len(different) else both
