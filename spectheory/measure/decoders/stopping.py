"""Chains that a stopping rule ends (§11): the draft decides how long it drafts."""

from __future__ import annotations

import numpy as np

from spectheory.drafting import StoppingRule
from spectheory.measure.decoders.drafted import ROOT, DraftTree
from spectheory.measure.decoders.drafters import Candidates, Drafting
from spectheory.measure.decoders.randomness import Source


def stopped(
    tree: DraftTree,
    stop: StoppingRule,
    most: int,
    candidates: Candidates,
    source: Source,
    ends: frozenset[int],
    *,
    greedy: bool = False,
) -> Drafting:
    """Draft a chain until the rule stops it, at most `most` tokens and none after an end of text.

    A position that stops costs its pass; its token is drafted if the rule keeps it. A `greedy` draft has the plain
    softmax as its pmfs: the rule reads that, and the first choice is drafted.
    """
    node = ROOT
    for _ in range(most):
        (read,) = yield [node]
        pmf = np.eye(1, len(read), int(read.argmax()))[0] if greedy else read
        found = candidates(pmf, 1, tree, node, source)
        stops = bool(found) and stop.stops_at(read, found[0])
        if not found or (stops and not stop.keeps):
            return
        tree.pmfs[node] = pmf
        node = tree.add(node, 1, found[0])
        if stops or found[0] in ends:
            return
