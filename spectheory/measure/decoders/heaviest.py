"""The tree of the prefixes that are heaviest under the draft, grown anew at each call (§5)."""

from __future__ import annotations

from spectheory.measure.decoders.drafted import ROOT, DraftTree
from spectheory.measure.decoders.drafters import Drafting, first_of


def heaviest(tree: DraftTree, nodes: int, depth: int, ends: frozenset[int]) -> Drafting:
    """Draft the `nodes` prefixes of largest probability under the draft, of at most `depth` tokens.

    This is the best-first tree, found with fewer passes: each one reads all prefixes that are among the heaviest known
    so far and were not read yet, until there is none. Where probabilities are equal parents come first, then what was
    found first.
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
                # One of as many known prefixes at least as heavy takes its place.
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
