"""Prompt lookup: drafts copied from where the text's last tokens stood before; no draft model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spectheory.measure.decoders.drafted import ROOT, DraftTree
from spectheory.measure.lookup import continuation


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
    for token in continuation(np.asarray(text), k, ngram, ends).tolist():
        parent = tree.add(parent, 1, token)
