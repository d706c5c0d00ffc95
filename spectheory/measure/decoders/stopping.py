"""Chains that a stopping rule ends (§11): the draft decides how long it drafts."""

from __future__ import annotations

from spectheory.drafting import Stopped
from spectheory.measure.decoders.drafted import ROOT, DraftTree
from spectheory.measure.decoders.drafters import Candidates, Drafting
from spectheory.measure.decoders.randomness import Source


def stopped(
    tree: DraftTree, shape: Stopped, room: int, candidates: Candidates, source: Source, ends: frozenset[int]
) -> Drafting:
    """Draft a chain until the rule stops it, at most `room` tokens and none after an end of text.

    A position that stops costs its pass; its token is drafted if the rule keeps it.
    """
    node = ROOT
    for _ in range(min(shape.k, room)):
        (pmf,) = yield [node]
        found = candidates(pmf, 1, tree, node, source)
        stops = bool(found) and shape.stop.stops_at(pmf, found[0])
        if not found or (stops and not shape.stop.keeps):
            return
        tree.pmfs[node] = pmf
        node = tree.add(node, 1, found[0])
        if stops or found[0] in ends:
            return
