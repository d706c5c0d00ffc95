"""What a check found, and how much effort it was given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from spectheory.errors import SettingError

Status = Literal["held", "refuted", "undecided"]
Kind = Literal["formal", "symbolic", "exact", "certified", "search", "simulation"]

KINDS: tuple[Kind, ...] = ("formal", "symbolic", "exact", "certified", "search", "simulation")
"""Kinds of evidence, the strongest first."""

T = TypeVar("T")


@dataclass(frozen=True)
class Effort:
    """How long a check may look: `deep` tries larger grids and more starts; `seed` is the root of every random case."""

    deep: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the seed."""
        if not isinstance(self.seed, int) or self.seed < 0:
            raise SettingError(f"seed is {self.seed!r}", limit="must be an integer >= 0", remedy="0 is the default")

    def pick(self, default: T, deep: T) -> T:
        """One value for the default run, one for the deep one."""
        return deep if self.deep else default


@dataclass(frozen=True)
class Finding:
    """The outcome of one check: whether every case held, one failed, or neither could be shown.

    cases: cases judged; steps that carry the argument, for a proof.
    gap: the least right side minus left side of an inequality, attained `at`; of a refutation, at the counterexample.
    values: the counterexample by name, where a solver found it.
    """

    status: Status
    cases: int
    gap: float | None = None
    at: str = ""
    note: str = ""
    values: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """The finding as one JSON object."""
        gap = self.gap if self.gap is not None and math.isfinite(self.gap) else None
        return {"status": self.status, "cases": self.cases, "gap": gap, "at": self.at, "note": self.note}


def together(first: Finding, second: Finding) -> Finding:
    """Two searches of one claim as one: a refutation decides, the tighter case is kept.

    Examples
    --------
    >>> together(Finding("held", 2, 0.5, "x = 1"), Finding("held", 3, 0.2, "x = 2"))
    Finding(status='held', cases=5, gap=0.2, at='x = 2', note='')
    """
    cases = first.cases + second.cases
    for status in ("refuted", "undecided"):
        for each in (first, second):
            if each.status == status:
                return replace(each, cases=cases)
    tighter = second.gap is not None and (first.gap is None or second.gap < first.gap)
    return replace(second if tighter else first, cases=cases)
