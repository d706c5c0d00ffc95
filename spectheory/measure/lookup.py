"""What prompt lookup drafts after a text, and how far a text repeats it at each of its positions."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.verification.lookup import LONGEST_COPY, LOOKUP_NGRAM

Ids = NDArray[np.int64]


def continuation(text: Ids, k: int, ngram: int, ends: Collection[int] = ()) -> Ids:
    """The at most k tokens that followed the latest earlier occurrence of the longest suffix of the text.

    Parameters
    ----------
    text : array ``[n]`` of int
        Prompt and output so far, at least one token. O(ngram) passes over it, most of it one comparison.
    k : int
        Most tokens.
    ngram : int
        Longest suffix that is looked for; empty if even the last token is new.
    ends : collection of int
        Nothing is drafted after one of these.
    """
    at = (text[:-1] == text[-1]).nonzero()[0]
    for length in range(1, min(ngram, len(text) - 1)):
        longer = at[at >= length]
        longer = longer[text[longer - length] == text[-1 - length]]
        if not len(longer):
            break
        at = longer
    draft = text[at[-1] + 1 : at[-1] + 1 + k] if len(at) else text[:0]
    last = np.isin(draft, list(ends)).nonzero()[0]
    return draft[: last[0] + 1] if len(last) else draft


def lookup_columns(
    prompt_ids: Any, output_ids: Any, ends: Collection[int] = (), ngram: int = LOOKUP_NGRAM
) -> dict[str, NDArray[np.int16]]:
    """The draft at each output token: how long it is, and how much of it the output repeats from there on (§7, exact).

    The draft at a position is copied from what stands before it.

    Parameters
    ----------
    prompt_ids, output_ids : tensor or array ``[m]``, ``[n]``
        The text; the prompt has at least one token.
    ends : collection of int
        Tokens that end a text. One that the output goes on after did not end it.
    ngram : int
        Longest suffix that is looked for.

    Returns
    -------
    dict of str to array ``[n]``
        ``lookup_match`` and ``lookup_drafted``, both at most :data:`~spectheory.verification.lookup.LONGEST_COPY`.
    """
    prompt, output = (np.asarray(ids, dtype=np.int64) for ids in (prompt_ids, output_ids))
    text = np.concatenate([prompt, output])
    ending = set(ends) - set(output[:-1].tolist())
    rows = []
    for start in range(len(prompt), len(text)):
        draft = continuation(text[:start], LONGEST_COPY, ngram, ending)
        rows.append((_match(draft, text[start:]), len(draft)))
    match, drafted = np.array(rows, dtype=np.int16).reshape(-1, 2).T
    return {"lookup_match": match.copy(), "lookup_drafted": drafted.copy()}


def _match(draft: Ids, follows: Ids) -> int:
    """How many leading tokens are equal."""
    both = min(len(draft), len(follows))
    different = (draft[:both] != follows[:both]).nonzero()[0]
    return int(different[0]) if len(different) else both
