"""What a validation can ask of a draft head (§10)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from spectheory.drafting import Shape
from spectheory.errors import SettingError
from spectheory.measure.assisted import NO_HEADS
from spectheory.measure.by_start import too_deep
from spectheory.measure.pair import Model
from spectheory.reports.validation_terms import JUDGE, JUDGES
from spectheory.trace import BY_START, COLUMNS, START_RANKS
from spectheory.verification import RankRule
from spectheory.verification.by_start import PREFIX
from spectheory.verification.registry import path_rule

IN_PLACE = "recursive"
"""Tried on trees in place of rules whose ranks are not recorded by start."""


@dataclass(frozen=True)
class HeadLimits:
    """A draft head by name, and the most drafts of a call (None: no limit)."""

    name: str
    deepest: int | None
    parallel: bool

    @classmethod
    def of(cls, draft: Model) -> HeadLimits | None:
        """The limits of a draft; None if it is no head."""
        head = draft.head
        return None if head is None else cls(draft.name, head.deepest, head.parallel)

    def refusal(self, rule: str, shape: Shape) -> SettingError | None:
        """Why a rule with a shape cannot be decoded, or not be expected, with this head."""
        if rule in JUDGES:
            return SettingError(
                f"{rule} is asked for with the draft head {self.name!r}",
                limit=NO_HEADS,
                remedy="name other rules",
            )
        law = path_rule(rule)
        if not law.uses_draft:
            return None
        if self.deepest is not None and shape.depth > self.deepest:
            return too_deep(f"{rule} is asked for {shape}", self.name, self.deepest)
        if not isinstance(law, RankRule) or shape.is_chain or not shape.fixed:
            return None
        column = PREFIX + law.recorded_in
        if column in BY_START and not (COLUMNS[column].law and shape.max_rank > START_RANKS):
            return None
        return SettingError(
            f"{rule} is asked for {shape} with the draft head {self.name!r}",
            limit=f"ranks are recorded by start for race and recursive to {START_RANKS}, and for topk",
            remedy="use one of these rules and shapes",
        )

    def usual(self, rules: Iterable[str], shape: Shape) -> tuple[str, ...]:
        """Of the rules that are tried where none is named those that this head takes."""
        tried = (*rules, *(() if shape.is_chain or not shape.fixed else (IN_PLACE,)))
        return tuple(rule for rule in tried if self.refusal(rule, shape) is None)

    def within(self, depth: int) -> int:
        """A depth, but no more than the head drafts."""
        return depth if self.deepest is None else min(depth, self.deepest)

    def left_out(self, rules: Iterable[str]) -> tuple[str, ...]:
        """What the usual rules lack with this head, in sentences; nothing where rules were named."""
        if any(rules):
            return ()
        return (
            f"{JUDGE} is left out: {NO_HEADS}.",
            f"On trees {IN_PLACE} takes the place of recursive-distinct, whose ranks are not recorded by start.",
        )
