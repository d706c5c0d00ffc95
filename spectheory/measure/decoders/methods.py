"""How to decode: a rule, and what each call drafts for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spectheory.distributions import Sampling
from spectheory.drafting import Grown, Shape, StoppingRule
from spectheory.drafting.tree import at_least_one
from spectheory.errors import SettingError
from spectheory.measure.decoders.drafted import DraftTree
from spectheory.measure.decoders.drafters import CANDIDATES, COPIES, Drafting, Levels, copied, levels_of, shaped
from spectheory.measure.decoders.growing import grown, heaviest
from spectheory.measure.decoders.randomness import Source
from spectheory.measure.decoders.stopping import stopped
from spectheory.measure.decoders.verifiers import VERIFIERS, Verifier, matched, verifier_of
from spectheory.prediction.shape_calls import takes
from spectheory.verification import RankRule, Rule
from spectheory.verification.lookup import LOOKUP_NGRAM
from spectheory.verification.registry import find_rule, names

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

    `rule` is a name of :data:`spectheory.verification.PATH_RULES`, or ``toptree`` (a :class:`HeaviestTree`), or
    ``plain``. Without a shape nothing is drafted: plain sampling, or for ``race`` race sampling, with the same text as
    every shape of that rule. `ngram` is the longest suffix that ``lookup`` searches for.

    Examples
    --------
    >>> from spectheory.drafting import Chain
    >>> Method("token", Chain(4)).uses_draft, Method("lookup", Chain(4)).uses_draft
    (True, False)
    """

    rule: str
    shape: Shape | HeaviestTree | None = None
    ngram: int = LOOKUP_NGRAM

    def __post_init__(self) -> None:
        if self.law is not None and verifier_of(self.law) is None:
            raise SettingError(
                f"rule {self.law.name!r} has no decoder",
                limit=f"there are {names(VERIFIERS)}, {', '.join(OWN)}",
                remedy="name one, or ask `spectheory predict` about this rule",
            )
        at_least_one("ngram", self.ngram)
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

    @property
    def depth(self) -> int:
        """The most drafts of a call that can be accepted."""
        return self.shape.depth if self.shape is not None else 0

    @property
    def verifier(self) -> Verifier:
        """What decides which drafts are output."""
        return (self.law and verifier_of(self.law)) or matched

    @cached_property
    def law(self) -> Rule | None:
        """The rule itself; None of plain decoding and of ``toptree``, which match drafts with the target's own draw."""
        return None if self.rule in OWN else find_rule(self.rule)

    def drafting(
        self, tree: DraftTree, text: list[int], room: int, source: Source, ends: frozenset[int], greedy: bool = False
    ) -> Drafting:
        """Draft a call's tree of at most `room` tokens in depth, after `text`; `greedy` at temperature 0."""
        if isinstance(self.shape, HeaviestTree):
            yield from heaviest(tree, self.shape.nodes, min(self.shape.depth, room), ends)
        elif isinstance(self.shape, Grown):
            yield from grown(tree, self.shape, room, ends)
        elif self.shape is not None and not self.uses_draft:
            copied(tree, COPIES[self.rule](np.asarray(text), min(self.shape.depth, room), self.ngram, ends))
        elif self.shape is not None and self.law is not None:
            candidates = CANDIDATES[self.law.drafts, self.law.by_arrival]
            if self.stop:
                most = min(self.shape.depth, room)
                yield from stopped(tree, self.stop, most, candidates, source, ends, greedy=greedy)
                return
            yield from shaped(tree, self._levels, room, candidates, source, ends)

    @cached_property
    def _levels(self) -> Levels:
        return levels_of(self.shape) if isinstance(self.shape, Shape) and self.shape.fixed else []

    def _takes_shape(self) -> bool:
        if self.law is None or isinstance(self.shape, HeaviestTree):
            return self.rule == TOPTREE and isinstance(self.shape, HeaviestTree)
        assert self.shape is not None
        if isinstance(self.law, RankRule) and self.law.consecutive and self.shape.fixed:
            return _is_consecutive(self.shape)
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
        if isinstance(self.law, RankRule):
            return {"limit": "it takes a shape, with ranks 1, 2, ... below a node if it rejects", "remedy": "e.g. 2x2"}
        return {"limit": "it judges one chain of drafts", "remedy": "use a chain"}


def check_temperature(rule: Rule, temperature: float) -> None:
    """Refuse a rule that outputs first choices for a sampled target."""
    if rule.output == "first choice" and temperature > 0:
        raise SettingError(
            f"{rule.name} is asked for at temperature {temperature:g}",
            limit="a greedy target has temperature 0",
            remedy="use temperature 0, or argmax for a sampled target",
        )


def _is_consecutive(shape: Shape) -> bool:
    """Whether the children of every node have ranks 1, 2, ... without a gap."""
    tree = shape.tree()
    below: dict[int, list[int]] = {}
    for parent, rank in zip(tree.parents.tolist(), tree.ranks.tolist(), strict=True):
        below.setdefault(parent, []).append(rank)
    return all(max(ranks) == len(ranks) for ranks in below.values())
