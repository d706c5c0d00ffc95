"""A draft for a target, what its passes cost, and the fastest setting of a rule and a kind of shape with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from spectheory.checks import instance, instances
from spectheory.cost import CostModel, LatencyTable
from spectheory.cost.model import a_cost
from spectheory.drafting import Shape, StoppingRule
from spectheory.intervals import Interval
from spectheory.prediction import Prediction
from spectheory.trace import Trace
from spectheory.trace.record import a_trace

SPECULATE, UNCERTAIN, DO_NOT = "speculate", "speculating may not pay", "do not speculate"
"""The three verdicts."""
DRAFT_MODEL, COMMON = "draft model", "common-token"
"""The kind of a draft that is a language model of its own; others are heads, by the kind of their configuration."""
NO_DRAFT = "none"
"""The name in reports where no draft model is read."""


def in_words(shape: Shape) -> str:
    """The shape in words: of a tree its size and depth, of a grown one how it grows.

    Examples
    --------
    >>> from spectheory.drafting import Chain
    >>> in_words(Chain(4))
    'k = 4'
    """
    if not shape.fixed:
        return str(shape)
    if shape.stop:
        return f"k = {shape.nodes}, {shape.stop}"
    return f"k = {shape.nodes}" if shape.is_chain else f"tree of {shape.nodes}, depth {shape.depth}"


@dataclass(frozen=True)
class Draft:
    """A draft for a target: its name in reports, the trace of the pair, and what passes of both models cost."""

    name: str
    trace: Trace
    cost: CostModel

    def __post_init__(self) -> None:
        instance("the draft's name", self.name, str, remedy="it is that of reports")
        a_trace(self.trace)
        a_cost(self.cost)

    @property
    def kind(self) -> str:
        """What drafts: ``draft model``, ``common-token`` (with another tokenizer), or a kind of head, as ``eagle3``."""
        return COMMON if self.fact("draft", "common") else str(self.fact("draft", "kind") or DRAFT_MODEL)

    @property
    def unread(self) -> Draft:
        """The same where the draft model is not read."""
        return replace(self, name=NO_DRAFT)

    @property
    def in_loop(self) -> Draft:
        """The same with the time of our decoding loop in the costs, as far as they know it."""
        return replace(self, cost=self.cost.looped) if isinstance(self.cost, LatencyTable) else self

    def fact(self, *path: str) -> Any:
        """What the provenance of the trace says under a path of names; None if it says nothing."""
        value: Any = self.trace.provenance
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value


def all_drafts(drafts: Sequence[Draft]) -> list[Draft]:
    """Check that an argument is a list of drafts."""
    return instances("drafts", drafts, Draft, remedy="spectheory.deployment.Draft(name, trace, cost) makes one")


def all_stops(stops: Sequence[StoppingRule]) -> list[StoppingRule]:
    """Check that an argument is a list of stopping rules."""
    return instances("stops", stops, StoppingRule, remedy="spectheory.drafting.read_stop('token<0.4') is one")


@dataclass(frozen=True)
class Candidate:
    """The fastest setting of one draft, one rule and one kind of shape, with what it gives."""

    draft: Draft
    prediction: Prediction

    @property
    def kind(self) -> str:
        """``chain`` or ``tree``."""
        return "chain" if self.prediction.shape.is_chain else "tree"

    @property
    def draft_kind(self) -> str:
        """What drafts: the kind of the draft, or the rule by which drafts are copied."""
        rule = self.prediction.rule
        return self.draft.kind if rule.uses_draft else rule.name

    @property
    def shape(self) -> str:
        """The shape in words: of a tree its size and depth, of a grown one how it grows."""
        return in_words(self.prediction.shape)

    @property
    def passes(self) -> int:
        """Passes of the draft model in a call."""
        return len(self.prediction.shape.passes)

    @property
    def setting(self) -> str:
        """Draft, rule and shape in words."""
        if self.draft.trace.recorded:
            return f"{self.prediction.rule.label} of {self.draft.name}, {self.shape}"
        if not self.prediction.rule.uses_draft:
            return f"{self.prediction.rule.label}, {self.shape}, no draft model"
        return f"draft {self.draft.name}, {self.prediction.rule.label}, {self.shape}"

    @property
    def speedup(self) -> Interval:
        """Predicted speed-up over plain decoding."""
        assert self.prediction.speedup is not None
        return self.prediction.speedup

    @property
    def verdict(self) -> str:
        """Whether to speculate with it: best value and interval against plain decoding."""
        if self.speedup.best <= 1:
            return DO_NOT
        return UNCERTAIN if self.speedup.low <= 1 or self.speedup.kind == "estimate" else SPECULATE
