"""One entry of the ledger: what is stated, by whom, on which side, and the evidence that runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from proofs_check.evidence.symbolic import Step
from proofs_check.statement.findings import Effort, Finding, Kind

StatementKind = Literal["identity", "upper bound", "lower bound", "bounds", "optimality", "asymptotic", "refuted"]

Check = Callable[[Effort], Finding]


@dataclass(frozen=True)
class Control:
    """A wrong variant that the same check must reject; of a refuted entry, the true neighbour that it must accept."""

    says: str
    check: Check


@dataclass(frozen=True)
class Evidence:
    """One check of a statement: what is checked over which cases, effort to finding, and its control.

    A proof has steps, and the numbers of tokens it is for; none where the steps hold for any number.
    library: it compares the library's calculators with exact values, so that the tests run it every time.
    """

    kind: Kind
    says: str
    check: Check
    control: Control
    steps: tuple[Step, ...] = ()
    tokens: tuple[int, ...] = ()
    library: bool = False


def public(room: str, names: str) -> tuple[str, ...]:
    """Public names of a room of the library.

    Examples
    --------
    >>> public("limits", "uno_loss biased_loss")
    ('spectheory.limits.uno_loss', 'spectheory.limits.biased_loss')
    """
    return tuple(f"spectheory.{room}.{name}" for name in names.split())


SETTLED: Mapping[Kind, str] = {
    "symbolic": "a counterexample settles it",
    "certified": "no logarithm enters",
    "search": "a counterexample settles it",
}
"""Why a refuted statement lacks a kind of evidence, unless its entry says otherwise."""


@dataclass(frozen=True)
class Entry:
    """A statement with its evidence.

    id: as in the theory page; a refuted look-alike is named after the statement it resembles, ``A3/look-alike``.
    plain, latex: the statement in words and plain formulas, and in LaTeX without dollar signs.
    source, number: BibTeX keys, none where it was derived for this project; the theorem in the first source.
    calculators: public names of the library that compute it, as ``spectheory.total_variation``.
    without: kinds of evidence that do not apply, each with the reason, beside those of :data:`SETTLED`.
    """

    id: str
    title: str
    kind: StatementKind
    plain: str
    latex: str
    assumptions: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    source: tuple[str, ...] = ()
    number: str = ""
    calculators: tuple[str, ...] = ()
    without: Mapping[Kind, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Fill in the usual reasons of a refuted statement."""
        if self.refuted:
            have = {each.kind for each in self.evidence}
            usual = {kind: reason for kind, reason in SETTLED.items() if kind not in have}
            object.__setattr__(self, "without", {**usual, **self.without})

    @property
    def refuted(self) -> bool:
        """Whether the statement is false, and the evidence a counterexample."""
        return self.kind == "refuted"
