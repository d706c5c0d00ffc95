"""Prompt lookup: drafts copied from where the text's last tokens stood before; no draft model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spectheory.measure.decoders.drafted import ROOT, DraftTree


def looked_up(tree: DraftTree, text: Sequence[int], k: int, ngram: int, ends: frozenset[int]) -> None:
    """Draft what followed the latest earlier occurrence of the longest suffix of at most `ngram` tokens.

    Parameters
    ----------
    tree : DraftTree
        Grown by a chain of at most `k` tokens, of none if even the last token is new.
    text : sequence of int
        Prompt and output so far.
    k : int
        Most drafts.
    ngram : int
        Longest suffix that is looked for.
    ends : frozenset of int
        Nothing is drafted after one of these.
    """
    parent = ROOT
    for token in _continuation(np.asarray(text), k, ngram):
        parent = tree.add(parent, 1, token)
        if token in ends:
            return


def _continuation(text: np.ndarray, k: int, ngram: int) -> list[int]:
    """The at most k tokens after the occurrence; O(ngram) passes over the text, most of it one comparison."""
    at = (text[:-1] == text[-1]).nonzero()[0]
    for length in range(1, min(ngram, len(text) - 1)):
        longer = at[at >= length]
        longer = longer[text[longer - length] == text[-1 - length]]
        if not len(longer):
            break
        at = longer
    return [int(token) for token in text[at[-1] + 1 : at[-1] + 1 + k]] if len(at) else []
