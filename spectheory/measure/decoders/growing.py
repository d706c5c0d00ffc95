"""Trees grown at each call from the draft's confidences: level by level (§10), or the most probable prefixes (§5)."""

from __future__ import annotations

from collections.abc import Iterable

from spectheory.drafting import Grown
from spectheory.measure.decoders.drafted import ROOT, DraftTree, Floats
from spectheory.measure.decoders.drafters import Drafting, first_of


class _Growth:
    """A tree whose nodes have a confidence: the product of the draft's probabilities along the path."""

    def __init__(self, tree: DraftTree) -> None:
        self.tree, self.confidence = tree, {ROOT: 1.0}

    def add(self, node: int, pmf: Floats, count: int, *, least: float = 0.0) -> list[int]:
        """Add the `count` most probable tokens below a node, as far as their confidence is above `least`."""
        self.tree.pmfs[node], added = pmf, []
        for rank, token in enumerate(first_of(-pmf, count), start=1):
            confidence = self.confidence[node] * float(pmf[token])
            if confidence <= least:
                break
            added.append(self.tree.add(node, rank, token))
            self.confidence[added[-1]] = confidence
        return added

    def most(self, nodes: Iterable[int], count: int) -> list[int]:
        """The `count` most confident of some nodes; of equal ones the shallower, then those found first."""
        return sorted(nodes, key=lambda node: (-self.confidence[node], self.tree.depths[node], node))[:count]


def grown(tree: DraftTree, shape: Grown, room: int, ends: frozenset[int]) -> Drafting:
    """Draft the tree of :class:`~spectheory.drafting.Grown`, without what lies deeper than `room` or after an end.

    The whole tree is grown even there, since it depends only on the text before.
    """
    if room < 1:
        return
    growth, expanded = _Growth(tree), [ROOT]
    for _ in range(shape.depth):
        pmfs = yield expanded
        level = [new for node, pmf in zip(expanded, pmfs, strict=True) for new in growth.add(node, pmf, shape.top)]
        expanded = sorted(growth.most(level, shape.top))
    fitting: set[int] = {ROOT}
    for node in sorted(growth.most(range(len(tree.tokens)), shape.nodes)):
        above = tree.parents[node]
        if above in fitting and tree.depths[node] <= room and (above == ROOT or tree.tokens[above] not in ends):
            fitting.add(node)
    tree.choose(sorted(fitting - {ROOT}))


def heaviest(tree: DraftTree, nodes: int, depth: int, ends: frozenset[int]) -> Drafting:
    """Draft the `nodes` prefixes of largest probability under the draft, of at most `depth` tokens (the best-first
    tree).

    It is what growing level by level keeps where it reads all nodes. Each pass reads all prefixes that are among the
    heaviest known so far and not read yet, until none is left.
    """
    growth, top = _Growth(tree), list[int]()
    unread = [ROOT] if depth > 0 else []
    while unread:
        pmfs = yield unread
        # Enough known prefixes are at least as heavy.
        least = growth.confidence[top[-1]] if len(top) == nodes else 0.0
        for node, pmf in zip(unread, pmfs, strict=True):
            growth.add(node, pmf, nodes, least=least)
        top = growth.most(range(len(tree.tokens)), nodes)
        unread = [
            node
            for node in sorted(top)
            if node not in tree.pmfs and tree.depths[node] < depth and tree.tokens[node] not in ends
        ]
    tree.choose(sorted(top))
