"""How to decode: a rule, and what each call drafts for it. Generators ask for the draft's pmfs after some nodes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Sampling
from spectheory.drafting import Chain, Grown, Shape, StoppingRule
from spectheory.drafting.tree import at_least_one
from spectheory.errors import SettingError
from spectheory.measure.decoders.tree import ROOT, DraftTree, Floats, Source
from spectheory.measure.decoders.verifiers import (
    VERIFIERS,
    Verifier,
    _match_target_draw,
    _verifier_of,
    arrivals,
    without,
)
from spectheory.ngrams import NgramDraft
from spectheory.prediction.shape_calls import takes
from spectheory.verification import CopiedFirst, LossyRule, RankRule, Rule
from spectheory.verification.base import Drafts
from spectheory.verification.copied import CopiedMatch
from spectheory.verification.registry import find_rule, names

Drafting: TypeAlias = Generator[list[int], Sequence[Floats], None]
"""Yields the nodes (or the root) after which it needs the draft's pmfs; the pmfs are sent in the same order."""

Candidates: TypeAlias = Callable[[Floats, int, DraftTree, int, Source], list[int]]
"""The first `count` candidates below a node, from its pmf; fewer if there are no more."""

Levels: TypeAlias = list[dict[int, list[tuple[int, int]]]]
"""By depth, the parents of the nodes at that depth; for each parent, (rank, node) of its children."""


def _iid(pmf: Floats, count: int, tree: DraftTree, node: int, source: Source) -> list[int]:
    """Independent draws from the draft."""
    return [source.chance.categorical(pmf) for _ in range(count)]


def _without_replacement(pmf: Floats, count: int, tree: DraftTree, node: int, source: Source) -> list[int]:
    """Draws without replacement; if nothing is left of the draft, uniform over the other tokens."""
    taken: list[int] = []
    for _ in range(min(count, len(pmf))):
        taken.append(source.chance.categorical(without(pmf, taken) if taken else pmf))
    return taken


def by_arrival(pmf: Floats, count: int, tree: DraftTree, node: int, source: Source) -> list[int]:
    """The first distinct tokens of the draft's race (R2)."""
    times = arrivals(source.clocks.at(tree, node), pmf)
    return [token for token in _first_of(times, count) if times[token] < np.inf]


def _by_arrival_with_repeats(pmf: Floats, count: int, tree: DraftTree, node: int, source: Source) -> list[int]:
    """The first arrivals of the draft's Poisson race, in which tokens arrive repeatedly (R1)."""
    first = arrivals(source.clocks.at(tree, node), pmf)
    come = []
    # A repeated arrival among the first `count` implies that the token's first arrival is among them too.
    for token in by_arrival(pmf, count, tree, node, source):
        gaps = source.clocks.later(tree, node, token, count - 1) / pmf[token]
        come += [(time, token) for time in first[token] + np.concatenate([[0.0], gaps.cumsum()])]
    return [token for _, token in sorted(come)[:count]]


def _most_probable(pmf: Floats, count: int, tree: DraftTree, node: int, source: Source) -> list[int]:
    """The draft's most probable tokens; ties go to the lowest index (R7)."""
    return _first_of(-pmf, count)


def _first_of(values: Floats, count: int) -> list[int]:
    """Indices of the `count` smallest values in ascending order, O(V); ties go to the lowest index."""
    if count == 1:
        return [int(values.argmin())]
    if count >= len(values):
        return [int(i) for i in values.argsort(kind="stable")]
    largest = np.partition(values, count - 1)[count - 1]
    few = (values <= largest).nonzero()[0]
    return [int(i) for i in few[values[few].argsort(kind="stable")[:count]]]


CANDIDATES: Mapping[tuple[Drafts, bool], Candidates] = {
    ("drawn", False): _iid,
    ("drawn", True): _by_arrival_with_repeats,
    ("distinct", False): _without_replacement,
    ("distinct", True): by_arrival,
    ("chosen", False): _most_probable,
}
"""How candidates are found, by how a rule says that its drafts come and whether they do so by arrival."""


def _draft_shape(
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


class _Growth:
    """A tree whose nodes have a confidence: the product of the draft's probabilities along the path."""

    def __init__(self, tree: DraftTree) -> None:
        self.tree, self.confidence = tree, {ROOT: 1.0}

    def add(self, node: int, pmf: Floats, count: int, *, least: float = 0.0) -> list[int]:
        """Add the `count` most probable tokens below a node, as far as their confidence is above `least`."""
        self.tree.pmfs[node], added = pmf, []
        for rank, token in enumerate(_first_of(-pmf, count), start=1):
            confidence = self.confidence[node] * float(pmf[token])
            if confidence <= least:
                break
            added.append(self.tree.add(node, rank, token))
            self.confidence[added[-1]] = confidence
        return added

    def most(self, nodes: Iterable[int], count: int) -> list[int]:
        """The `count` most confident of some nodes; of equal ones the shallower, then those found first."""
        return sorted(nodes, key=lambda node: (-self.confidence[node], self.tree.depths[node], node))[:count]


def _grow_tree(tree: DraftTree, shape: Grown, room: int, ends: frozenset[int]) -> Drafting:
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


def _draft_heaviest(tree: DraftTree, nodes: int, depth: int, ends: frozenset[int]) -> Drafting:
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


def _draft_until_stop(
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
        tokens = candidates(pmf, 1, tree, node, source)
        stops = bool(tokens) and stop.stops_at(read, tokens[0], tree.confidence.get(node))
        if not tokens or (stops and not stop.keeps):
            return
        tree.pmfs[node] = pmf
        node = tree.add(node, 1, tokens[0])
        if stops or tokens[0] in ends:
            return


def _copy(
    tree: DraftTree, copies: NgramDraft, text: NDArray[np.int64], state: Any, most: int, ends: frozenset[int]
) -> None:
    """Draft what is copied after a text, at most so many tokens deep and nothing after an end."""
    nodes = {-1: ROOT}
    drafts = zip(*copies.branches(text, state), strict=True)
    for place, (token, above) in enumerate(drafts if copies.trees else islice(drafts, most)):
        on = nodes.get(above)
        if on is None or len(tree.path(on)) >= most or tree.child(on, token) is not None:
            continue
        node = tree.add(on, len(tree.children(on)) + 1, token)
        if token not in ends:
            nodes[place] = node


PLAIN, TOPTREE = "plain", "toptree"
OWN = (TOPTREE, PLAIN)
"""Ways to decode that are no rule: without drafts, and with a tree that grows with the text."""


@dataclass(frozen=True)
class HeaviestTree:
    """The `nodes` most probable prefixes under the draft, at most `max_depth` deep, grown at each call (§5)."""

    nodes: int
    max_depth: int | None = None

    def __post_init__(self) -> None:
        at_least_one("nodes", self.nodes)
        if self.max_depth is not None:
            at_least_one("max depth", self.max_depth)

    @property
    def depth(self) -> int:
        """The most drafts of a call that can be accepted."""
        return min(self.nodes, self.max_depth or self.nodes)


@dataclass(frozen=True)
class Method:
    """A rule and the shape of its drafts.

    `rule` is a name of :data:`spectheory.verification.PATH_RULES`, an n-gram draft as ``suffix:max=8``, or ``toptree``
    (a :class:`HeaviestTree`), or ``plain``. Without a shape nothing is drafted: plain sampling, or for ``race`` race
    sampling, with the same text as every shape of that rule.

    Examples
    --------
    >>> from spectheory.drafting import Chain
    >>> Method("token", Chain(4)).uses_draft, Method("lookup", Chain(4)).uses_draft
    (True, False)
    """

    rule: str
    shape: Shape | HeaviestTree | None = None

    def __post_init__(self) -> None:
        if self.law is not None and _verifier_of(self.law) is None:
            raise SettingError(
                f"rule {self.law.name!r} has no decoder",
                limit=f"there are {names(VERIFIERS)}, lookup, n-gram drafts, {', '.join(OWN)}",
                remedy="name one, or ask `spectheory predict` about this rule",
            )
        if self.shape is not None and not self._takes_shape():
            raise SettingError(f"{self.rule} is asked for {self.shape}", **self._needs())

    @property
    def uses_draft(self) -> bool:
        """Whether the draft model is read."""
        return self.shape is not None and (self.law is None or self.law.uses_draft)

    @property
    def beyond(self) -> int:
        """Tokens that may be drafted past the end of a text: a grown tree has its whole depth everywhere."""
        return self.depth if self.law is not None and self.law.grows else 0

    @property
    def stop(self) -> StoppingRule | None:
        """The rule that may end its chains, if one does."""
        return self.shape.stop if isinstance(self.shape, Shape) else None

    def confidences(self, sampling: Sampling) -> Sampling:
        """What the draft's reader gives: drafts are drawn as the text is; a tree grows from the plain softmax (§10),
        and at temperature 0 a stopping rule reads it (§11).
        """
        grows = self.law is not None and self.law.grows
        return Sampling() if grows or (self.stop and sampling.temperature == 0) else sampling

    def judged_by(self, sampling: Sampling) -> Sampling:
        """What the target's reader gives: rules that relax greedy decoding read the plain softmax (Y7)."""
        return Sampling() if isinstance(self.law, LossyRule) and self.law.greedy else sampling

    @property
    def depth(self) -> int:
        """The most drafts of a call that can be accepted."""
        return self.shape.depth if self.shape is not None else 0

    @property
    def verifier(self) -> Verifier:
        """What decides which drafts are output."""
        return (self.law and _verifier_of(self.law)) or _match_target_draw

    @cached_property
    def law(self) -> Rule | None:
        """The rule itself; None of plain decoding and of ``toptree``, which match drafts with the target's own draw."""
        return None if self.rule in OWN else find_rule(self.rule)

    @property
    def copies(self) -> NgramDraft | None:
        """What it copies, if its drafts are copied, or copied first."""
        law = self.law.copied if isinstance(self.law, CopiedFirst) else self.law
        return law.copies if isinstance(law, CopiedMatch) and self.shape is not None else None

    def drafting(
        self,
        tree: DraftTree,
        text: list[int],
        room: int,
        source: Source,
        ends: frozenset[int],
        greedy: bool = False,
        copying: Any = None,
    ) -> Drafting:
        """Draft a call's tree of at most `room` tokens in depth, after `text`; `greedy` at temperature 0, `copying` the
        state of copied drafts.
        """
        if isinstance(self.shape, HeaviestTree):
            yield from _draft_heaviest(tree, self.shape.nodes, min(self.shape.depth, room), ends)
        elif isinstance(self.shape, Grown):
            yield from _grow_tree(tree, self.shape, room, ends)
        elif self.shape is not None and self.law is not None:
            if self.copies:
                _copy(tree, self.copies, np.asarray(text), copying, min(self.depth, room), ends)
            law = self.law.other if isinstance(self.law, CopiedFirst) else self.law
            if tree.copied or not law.uses_draft:
                return
            candidates = CANDIDATES[law.drafts, law.by_arrival]
            if self.stop:
                most = min(self.shape.depth, room)
                yield from _draft_until_stop(tree, self.stop, most, candidates, source, ends, greedy=greedy)
                return
            yield from _draft_shape(tree, self._levels, room, candidates, source, ends)

    @cached_property
    def _levels(self) -> Levels:
        """The levels of a fixed shape, in each the children of a parent by rank."""
        assert isinstance(self.shape, Shape)
        tree = self.shape.tree()
        levels: Levels = [{} for _ in range(tree.depth)]
        for node, (parent, rank) in enumerate(zip(tree.parents.tolist(), tree.ranks.tolist(), strict=True)):
            levels[int(tree.depths[node]) - 1].setdefault(parent, []).append((rank, node))
        return [{parent: sorted(children) for parent, children in level.items()} for level in levels]

    def _takes_shape(self) -> bool:
        if self.law is None or isinstance(self.shape, HeaviestTree):
            return self.rule == TOPTREE and isinstance(self.shape, HeaviestTree)
        assert self.shape is not None
        if isinstance(self.law, RankRule) and self.law.consecutive and self.shape.fixed:
            below = (children for level in self._levels for children in level.values())
            return all(children[-1][0] == len(children) for children in below)  # ranks 1, 2, ... without a gap
        return takes(self.law, self.shape)

    def _needs(self) -> dict[str, str]:
        if self.rule == PLAIN:
            return {"limit": "it drafts nothing", "remedy": "leave out the shape"}
        if self.rule == TOPTREE:
            return {"limit": "its tree grows with the text", "remedy": "use HeaviestTree(nodes)"}
        if self.stop and self.law is not None and not self.law.uses_draft:
            return {"limit": "its drafts are copied, and no draft decides to stop", "remedy": "leave out --stop"}
        if self.law is not None and self.law.grows:
            return {"limit": "it grows its trees", "remedy": "use Grown(nodes, top, depth), written as grown:16x4x5"}
        if isinstance(self.law, CopiedMatch) and self.law.length:
            return {"limit": f"it drafts {self.law.length}", "remedy": f"use {Chain(self.law.length)}"}
        if isinstance(self.law, RankRule):
            return {"limit": "it takes a shape, with ranks 1, 2, ... below a node if it rejects", "remedy": "e.g. 2x2"}
        return {"limit": "it judges one chain of drafts", "remedy": "use a chain"}


def check_temperature(rule: Rule, temperature: float) -> None:
    """Refuse a rule that outputs first choices for a sampled target, and a lossy one that is another at 0."""
    if isinstance(rule, CopiedFirst):
        rule = rule.other
    if isinstance(rule, LossyRule):
        rule.check_temperature(temperature)
    if rule.output == "first choice" and temperature > 0:
        raise SettingError(
            f"{rule.name} is asked for at temperature {temperature:g}",
            limit="a greedy target has temperature 0",
            remedy="use temperature 0, or argmax for a sampled target",
        )
