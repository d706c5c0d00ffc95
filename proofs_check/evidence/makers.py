"""Makers of evidence: a claim or a proof, the cases, and the wrong variant the same check must reject."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from proofs_check.evidence.entries import Control, Evidence
from proofs_check.evidence.judge import judge_all
from proofs_check.evidence.search import Space, search_claim
from proofs_check.evidence.solver import prove_claim
from proofs_check.evidence.symbolic import Step, damaged, prove
from proofs_check.statement.claims import Case, Claim
from proofs_check.statement.findings import Effort, Finding, Kind

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
        found = [prove_claim(asked, n, seconds) for n in tokens]
        worst = next((f for f in found if f.status != "held"), None)
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
    return replace(_judged("certified", claim, cases, over, wrong), library=True)


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
    >>> _words(every_pair(3, 5))
    'every pair on 2 and 3 tokens of denominator up to 3'
    """
    says = " ".join((getattr(made, "func", made).__doc__ or "").split()).removesuffix(".")  # of a partial's function
    if not says:
        raise ValueError("cases that nobody describes: give over, or their function a docstring")
    return says[0].lower() + says[1:] if says[1].islower() or says[1] == " " else says
