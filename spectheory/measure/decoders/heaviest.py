"""The tree of the most probable prefixes under the draft, grown again at each call (§5)."""

from __future__ import annotations

from spectheory.measure.decoders.drafted import ROOT, DraftTree
from spectheory.measure.decoders.drafters import Drafting, first_of


def heaviest(tree: DraftTree, nodes: int, depth: int, ends: frozenset[int]) -> Drafting:
    """Draft the `nodes` prefixes of largest probability under the draft, of at most `depth` tokens (the best-first
    tree).

    Each pass reads all prefixes that are among the heaviest known so far and not read yet, until none is left.
    """
    weights = {ROOT: 1.0}
    top: list[int] = []
    unread = [ROOT] if depth > 0 else []
    while unread:
        pmfs = yield unread
        for node, pmf in zip(unread, pmfs, strict=True):
            tree.pmfs[node] = pmf
            for rank, token in enumerate(first_of(-pmf, nodes), start=1):
                weight = weights[node] * float(pmf[token])
                # Enough known prefixes are at least as heavy.
                if weight == 0.0 or (len(top) == nodes and weight <= weights[top[-1]]):
                    break
                weights[tree.add(node, rank, token)] = weight
        known = [node for node in weights if node != ROOT]
        top = sorted(known, key=lambda node: (-weights[node], node))[:nodes]
        unread = [
            node
            for node in sorted(top)
            if node not in tree.pmfs and tree.depths[node] < depth and tree.tokens[node] not in ends
        ]
    tree.choose(sorted(top))
