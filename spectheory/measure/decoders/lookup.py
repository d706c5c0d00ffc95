"""Prompt lookup: drafts copied from an earlier occurrence of the text's last tokens; no draft model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spectheory.measure.decoders.drafted import ROOT, DraftTree
from spectheory.measure.lookup import continuation


def looked_up(tree: DraftTree, text: Sequence[int], k: int, ngram: int, ends: frozenset[int]) -> None:
    """Draft the :func:`~spectheory.measure.lookup.continuation` of the text as a chain of at most k tokens."""
    parent = ROOT
    for token in continuation(np.asarray(text), k, ngram, ends).tolist():
        parent = tree.add(parent, 1, token)
