"""One entry of the ledger: what is stated, by whom, on which side, the evidence that runs, and how it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from proofs_check.evidence.judge import judge_all
from proofs_check.evidence.search import Space, search_claim
from proofs_check.evidence.solver import prove_claim
from proofs_check.evidence.symbolic import Step, damaged, prove
from proofs_check.statement.claims import Case, Claim
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
    checks_library: bool = False


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


# Makers of evidence: a claim or a proof, the cases, and the wrong variant the same check must reject.


DAMAGED = "each step in turn, with an assumption dropped or one side changed"

Cases = Callable[[Effort], Iterable[Case]]
"""Effort to the cases it allows. They are what the function's docstring says, unless a check has words of its own."""


def proof(says: str, steps: Sequence[Step]) -> Evidence:
    """A proof in steps. Its control damages each of them: an assumption is dropped, or one side is changed."""
    control = Control(DAMAGED, lambda effort: damaged(steps, effort))
    return Evidence("symbolic", says, lambda effort: prove(steps, effort), control, tuple(steps))


def solved(claim: Claim, tokens: Sequence[int], *, wrong: Claim) -> Evidence:
    """The solver's proof for every pair of pmfs on each of these numbers of tokens that meets the assumptions."""
    sizes = " and ".join(map(str, tokens))
    given = f"every pair of pmfs on {sizes} tokens" + "".join(f", where {each.says}" for each in claim.assumes)

    def check(asked: Claim, effort: Effort) -> Finding:
        seconds = effort.pick(60.0, 600.0)
        findings = [prove_claim(asked, n, seconds) for n in tokens]
        worst = next((f for f in findings if f.status != "held"), None)
        return worst or Finding("held", len(tokens), note=given)

    says = f"{claim.says}: {given}"
    step = Step(says, "solver", lambda seconds: check(claim, Effort()))
    control = Control(wrong.says, lambda effort: check(wrong, effort))
    return Evidence("symbolic", says, lambda effort: check(claim, effort), control, (step,), tuple(tokens))


def exact(claim: Claim, cases: Cases, *, over: str = "", wrong: Claim) -> Evidence:
    """The claim in fractions at every case; `over` describes the cases, unless their function does."""
    return _judged("exact", claim, cases, over, wrong)


def certified(claim: Claim, cases: Cases, *, over: str = "", wrong: Claim) -> Evidence:
    """The claim enclosed by intervals at every case, where logarithms enter."""
    return _judged("certified", claim, cases, over, wrong)


def agreement(claim: Claim, cases: Cases, *, over: str = "", wrong: Claim) -> Evidence:
    """The library's calculator against the exact value (claims of :func:`proofs_check.statement.claims.computed`)."""
    return replace(_judged("certified", claim, cases, over, wrong), checks_library=True)


def searched(claim: Claim, strategy: Any, *, over: str = "", wrong: Claim, spaces: Sequence[Space] = ()) -> Evidence:
    """Draws of a Hypothesis strategy (a function that makes it, so that it is made when used), then the optimiser."""

    def check(effort: Effort) -> Finding:
        return search_claim(claim, strategy(), effort, spaces)

    def rejected(effort: Effort) -> Finding:  # that it is matters, not by which case
        return search_claim(wrong, strategy(), effort, spaces, shrink=False)

    return Evidence("search", f"{claim.says}, {over or _words(strategy)}", check, Control(wrong.says, rejected))


def counterexample(claim: Claim, cases: Cases, *, over: str = "", true: Claim, kind: Kind = "exact") -> Evidence:
    """The first case, of cases in order of size, at which a false claim fails; `true` holds at all of them."""
    control = Control(true.says, lambda effort: judge_all(true, cases(effort)))
    over = over or _words(cases)
    return Evidence(kind, f"{claim.says} fails, {over}", lambda effort: judge_all(claim, cases(effort)), control)


def _judged(kind: Kind, claim: Claim, cases: Cases, over: str, wrong: Claim) -> Evidence:
    control = Control(wrong.says, lambda effort: judge_all(wrong, cases(effort)))
    over = over or _words(cases)
    return Evidence(kind, f"{claim.says}, {over}", lambda effort: judge_all(claim, cases(effort)), control)


def _words(made: Callable[..., Any]) -> str:
    """What a function that makes cases says of them.

    Examples
    --------
    >>> from proofs_check.library.cases import every_pair
    >>> _words(every_pair(3, 5))
    'every pair on 2 and 3 tokens of denominator up to 3'
    """
    says = " ".join((getattr(made, "func", made).__doc__ or "").split()).removesuffix(".")  # of a partial's function
    if not says:
        raise ValueError("cases that nobody describes: give over, or their function a docstring")
    return says[0].lower() + says[1:] if says[1].islower() or says[1] == " " else says
