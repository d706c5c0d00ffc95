"""What a call drafts: generators that request the draft's pmfs after some nodes and grow the tree from them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from spectheory.drafting import Shape
from spectheory.measure.decoders.drafted import ROOT, DraftTree, Floats
from spectheory.measure.decoders.randomness import Source
from spectheory.measure.decoders.verifiers import arrivals, without
from spectheory.measure.lookup import Ids, continuation, up_to_end
from spectheory.measure.suffix import suffix_draft
from spectheory.verification.base import Drafts
from spectheory.verification.lookup import LookupMatch
from spectheory.verification.suffix import OWN_TEXT, SuffixMatch

Drafting: TypeAlias = Generator[list[int], Sequence[Floats], None]
"""Yields the nodes (or the root) after which it needs the draft's pmfs; the pmfs are sent in the same order."""

Candidates: TypeAlias = Callable[[Floats, int, DraftTree, int, Source], list[int]]
"""The first `count` candidates below a node, from its pmf; fewer if there are no more."""

Levels: TypeAlias = list[dict[int, list[tuple[int, int]]]]
"""By depth, the parents of the nodes at that depth; for each parent, (rank, node) of its children."""


def iid(pmf: Floats, count: int, tree: DraftTree, node: int, source: Source) -> list[int]:
    """Independent draws from the draft."""
    return [source.chance.categorical(pmf) for _ in range(count)]


def distinct(pmf: Floats, count: int, tree: DraftTree, node: int, source: Source) -> list[int]:
    """Draws without replacement; if nothing is left of the draft, uniform over the other tokens."""
    taken: list[int] = []
    for _ in range(min(count, len(pmf))):
        taken.append(source.chance.categorical(without(pmf, taken) if taken else pmf))
    return taken


def by_arrival(pmf: Floats, count: int, tree: DraftTree, node: int, source: Source) -> list[int]:
    """The first distinct tokens of the draft's race (R2)."""
    times = arrivals(source.clocks.at(tree, node), pmf)
    return [token for token in first_of(times, count) if times[token] < np.inf]


def by_arrival_with_repeats(pmf: Floats, count: int, tree: DraftTree, node: int, source: Source) -> list[int]:
    """The first arrivals of the draft's Poisson race, in which tokens arrive repeatedly (R1)."""
    first = arrivals(source.clocks.at(tree, node), pmf)
    come = []
    # A repeated arrival among the first `count` implies that the token's first arrival is among them too.
    for token in by_arrival(pmf, count, tree, node, source):
        gaps = source.clocks.later(tree, node, token, count - 1) / pmf[token]
        come += [(time, token) for time in first[token] + np.concatenate([[0.0], gaps.cumsum()])]
    return [token for _, token in sorted(come)[:count]]


def most_probable(pmf: Floats, count: int, tree: DraftTree, node: int, source: Source) -> list[int]:
    """The draft's most probable tokens; ties go to the lowest index (R7)."""
    return first_of(-pmf, count)


def first_of(values: Floats, count: int) -> list[int]:
    """Indices of the `count` smallest values in ascending order, O(V); ties go to the lowest index."""
    if count == 1:
        return [int(values.argmin())]
    if count >= len(values):
        return [int(i) for i in values.argsort(kind="stable")]
    largest = np.partition(values, count - 1)[count - 1]
    few = (values <= largest).nonzero()[0]
    return [int(i) for i in few[values[few].argsort(kind="stable")[:count]]]


CANDIDATES: Mapping[tuple[Drafts, bool], Candidates] = {
    ("drawn", False): iid,
    ("drawn", True): by_arrival_with_repeats,
    ("distinct", False): distinct,
    ("distinct", True): by_arrival,
    ("chosen", False): most_probable,
}
"""How candidates are found, by how a rule says that its drafts come and whether they do so by arrival."""


def shaped(
    tree: DraftTree, levels: Levels, room: int, candidates: Candidates, source: Source, ends: frozenset[int]
) -> Drafting:
    """Draft a shape, one pass of the draft per level, at most `room` deep and nothing after an end of text."""
    present = {ROOT: ROOT}
    for below in levels[:room]:
        inner = [(number, node) for number, node in present.items() if number in below]
        if not inner:
            return
        pmfs = yield [node for _, node in inner]
        present = {}
        for (number, node), pmf in zip(inner, pmfs, strict=True):
            tree.pmfs[node] = pmf
            tokens = candidates(pmf, below[number][-1][0], tree, node, source)
            for rank, child in below[number]:
                if rank <= len(tokens):
                    added = tree.add(node, rank, tokens[rank - 1])
                    if tokens[rank - 1] not in ends:
                        present[child] = added


def levels_of(shape: Shape) -> Levels:
    """The levels of a shape."""
    tree = shape.tree()
    levels: Levels = [{} for _ in range(tree.depth)]
    for node, (parent, rank) in enumerate(zip(tree.parents.tolist(), tree.ranks.tolist(), strict=True)):
        levels[int(tree.depths[node]) - 1].setdefault(parent, []).append((rank, node))
    for level in levels:
        for children in level.values():
            children.sort()
    return levels


def from_suffixes(text: Ids, k: int, ngram: int, ends: frozenset[int]) -> Ids:
    """At most k tokens that followed the text's suffixes most often in it (:data:`OWN_TEXT`)."""
    return up_to_end(suffix_draft(text, OWN_TEXT), ends)[:k]


COPIES: Mapping[str, Callable[[Ids, int, int, frozenset[int]], Ids]] = {
    LookupMatch.name: continuation,
    SuffixMatch.name: from_suffixes,
}
"""What rules of copied drafts copy: at most k tokens after a text ``[n]``, up to an end; `ngram` is for lookup."""


def copied(tree: DraftTree, draft: Ids) -> None:
    """Draft a chain of these tokens."""
    parent = ROOT
    for token in draft.tolist():
        parent = tree.add(parent, 1, token)
