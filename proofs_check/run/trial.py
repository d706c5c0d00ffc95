"""A new claim on trial: a proof for small vocabularies, a search on larger ones, a counterexample, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal

from proofs_check.evidence.judge import judge_all
from proofs_check.evidence.search import search_claim
from proofs_check.evidence.solver import CONTRADICT, prove_claim
from proofs_check.library.domains import domain_of
from proofs_check.library.wide import SIZES, wide_search
from proofs_check.statement.claims import Assumption, AssumptionError, Claim, ClaimError, pmfs_of
from proofs_check.statement.findings import Effort, Finding
from spectheory.errors import SettingError

MOST_TOKENS = 8
"""Largest vocabulary a solver is asked about: it has two unknowns a token, and gives up long before."""

SOLVER_SECONDS = (10.0, 300.0)
"""Time the solver has for each number of tokens, in a default and a deep trial."""

Verdict = Literal["refuted", "undecided", "proved for some V", "not refuted"]


@dataclass(frozen=True)
class Trial:
    """What came out: the solver's findings by number of tokens, the grid, the searches.

    `no_proof` says why no proof was attempted. `grid`, `search` and `wide` are None where no pair meets the
    assumptions, the searches also once the claim is refuted. `sizes` are the vocabularies of which a pair was judged.
    """

    claim: Claim
    proofs: dict[int, Finding]
    no_proof: str
    grid: Finding | None
    search: Finding | None
    wide: Finding | None
    sizes: tuple[int, ...]

    @property
    def findings(self) -> list[Finding]:
        """What was judged case by case, the simplest cases first."""
        return [each for each in (self.grid, self.search, self.wide) if each]

    @property
    def counterexample(self) -> Finding | None:
        """The simplest counterexample found."""
        return next((each for each in (*self.findings, *self.proofs.values()) if each.status == "refuted"), None)

    @property
    def proved_for(self) -> tuple[int, ...]:
        """The numbers of tokens V for which the solver proved the claim, for every pair of pmfs."""
        return tuple(tokens for tokens, finding in self.proofs.items() if finding.status == "held")

    @property
    def largest(self) -> int:
        """The largest vocabulary of which a pair was judged."""
        return self.sizes[-1]

    @property
    def verdict(self) -> Verdict:
        """One word: no verdict claims a proof for all vocabularies, as the solver takes one V at a time."""
        if self.counterexample:
            return "refuted"
        if "undecided" in {finding.status for finding in (*self.findings, *self.proofs.values())}:
            return "undecided"
        return "proved for some V" if self.proved_for else "not refuted"

    @property
    def summary(self) -> str:
        """The verdict with the vocabularies V that it speaks of."""
        if self.counterexample:
            return "refuted"
        proved = f"proved for V = {', '.join(map(str, self.proved_for))}; " if self.proved_for else ""
        unsure = "undecided; " if self.verdict == "undecided" else ""
        cases = sum(finding.cases for finding in self.findings)
        return f"{unsure}{proved}not refuted at V = {_runs(self.sizes)} ({cases:,} cases)"

    def as_dict(self) -> dict[str, Any]:
        """The trial as one JSON object."""
        return {
            "claim": self.claim.says,
            "verdict": self.verdict,
            "summary": self.summary,
            "proved_for": list(self.proved_for),
            "largest": self.largest,
            "sizes": list(self.sizes),
            "proofs": {str(tokens): finding.as_dict() for tokens, finding in self.proofs.items()},
            "no_proof": self.no_proof,
            **{
                name: finding.as_dict() if finding else None
                for name, finding in (("grid", self.grid), ("search", self.search), ("wide", self.wide))
            },
        }

    def __str__(self) -> str:
        """A few lines for a reader."""
        lines = [f"{self.claim.says}: {self.summary}", *self._proof_lines()]
        if self.counterexample:
            gap = self.counterexample.gap
            missed = "" if gap is None else f" (left - right = {-gap:.3g})"
            lines.append(f"  counterexample: {self.counterexample.at}{missed}")
            return "\n".join(lines)
        domain = domain_of(self.claim)
        for finding, over in (
            (self.grid, f"grid and next to its faces, {domain.grid_sizes}"),
            (self.search, f"search, {domain.draw_sizes}"),
            (self.wide, f"shapes, V up to {self.largest}"),
        ):
            if finding:
                lines.append(f"  {over}: {finding.cases:,} {domain.cases}, {finding.status}")
        gaps = [(each.gap, each.at) for each in self.findings if each.gap is not None]
        if gaps:
            gap, at = min(gaps, key=lambda both: both[0])
            lines.append(f"  tightest: {gap:.3g} at {at}")
        return "\n".join(lines)

    def _proof_lines(self) -> list[str]:
        if self.no_proof:
            return [f"  proof: not attempted, {self.no_proof}"]
        words = {"held": "proved", "refuted": "refuted"}
        return [
            f"  proof, every pmf on {tokens} tokens: {words.get(finding.status, finding.note)}"
            for tokens, finding in self.proofs.items()
        ]


def try_claim(claim: Claim, *, tokens: Sequence[int] | None = None, effort: Effort | None = None) -> Trial:
    """Put a claim about every pair of pmfs on trial, or about every two positions of target and draft.

    Parameters
    ----------
    claim : Claim
    tokens : sequence of int, optional
        Sizes of the vocabulary that the solver is asked about: 2 and 3, of two positions 2.
    effort : Effort, optional

    Raises
    ------
    ClaimError
        If the claim is not a number on a pair that meets its assumptions, or no claim.
    SettingError
        If a number of tokens is no integer in range.
    AssumptionError
        If no pair meets them.

    Examples
    --------
    >>> from proofs_check import Claim, at_most, smaller, try_claim
    >>> def overlap(p, q):
    ...     return sum(smaller(a, b) for a, b in zip(p, q))
    >>> def affinity(p, q):
    ...     return sum(a * b for a, b in zip(p, q))
    >>> print(try_claim(Claim("p.q <= 1 - TV", lambda p, q: at_most(affinity(p, q), overlap(p, q)))).verdict)
    proved for some V
    >>> print(try_claim(Claim("1 - TV <= 2 p.q", lambda p, q: at_most(overlap(p, q), 2 * affinity(p, q)))))
    1 - TV <= 2 p.q: refuted
      proof, every pmf on 2 tokens: proved
      proof, every pmf on 3 tokens: refuted
      counterexample: p = (0, 1/3, 2/3), q = (2/3, 1/3, 0) (left - right = 0.111)
    """
    effort = Effort() if effort is None else effort
    _check(claim, tokens, effort)
    domain = domain_of(claim)
    tokens = domain.solved if tokens is None else tokens
    sizes: set[int] = set()
    noted = replace(claim, assumes=(*claim.assumes, _noting(sizes)))
    grid = search = wide = stopped = None
    try:
        grid = judge_all(noted, domain.grid(effort))
    except AssumptionError as error:  # none on so few tokens: the searches have more
        stopped = error
    proofs, no_proof = _proofs(claim, tokens, effort)
    if not grid or grid.status != "refuted":
        with suppress(AssumptionError):
            search = search_claim(noted, domain.draws(), effort, domain.spaces)
        if not search or search.status != "refuted":
            wide = wide_search(noted, effort, domain.wide)
    if stopped and not sizes:
        tried = f"pairs on {_runs((2, 3, *SIZES))} tokens were tried"
        raise AssumptionError(stopped.what, limit=tried, remedy="assume less")
    return Trial(claim, proofs, no_proof, grid, search, wide, tuple(sorted(sizes)))


def _noting(sizes: set[int]) -> Assumption:
    """An assumption that is met; the sizes of the cases of fractions that meet those before it come into `sizes`."""

    def met(**case: Any) -> bool:
        pmf = next(pmfs_of(case))
        if not isinstance(pmf[0], float):
            sizes.add(len(pmf))
        return True

    return Assumption("none", met)


def _proofs(claim: Claim, tokens: Sequence[int], effort: Effort) -> tuple[dict[int, Finding], str]:
    """The solver's findings for the sizes of which a pair meets the assumptions, or why there are none."""
    try:
        findings = {size: prove_claim(claim, size, effort.pick(*SOLVER_SECONDS)) for size in tokens}
    except ClaimError as error:
        return {}, error.what
    proofs = {size: each for size, each in findings.items() if each.note != CONTRADICT}
    return proofs, "" if proofs else f"no pair on {_runs(tokens)} tokens meets the assumptions"


def _runs(sizes: Sequence[int]) -> str:
    """Numbers in order, three in a row or more by their ends.

    Examples
    --------
    >>> _runs((2, 3, 4, 5, 8, 9, 12))
    '2 to 5, 8, 9, 12'
    """
    runs = [[size for _, size in run] for _, run in groupby(enumerate(sizes), lambda each: each[1] - each[0])]
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def _check(claim: Claim, tokens: Sequence[int] | None, effort: Effort) -> None:
    """Check what a trial is asked for."""
    for value, kind, remedy in ((claim, Claim, "Claim(says, holds)"), (effort, Effort, "Effort(deep=True)")):
        if not isinstance(value, kind):
            raise ClaimError(f"{value!r} is no {kind.__name__}", limit="needs one", remedy=f"pass {remedy}")
    sizes = list(tokens) if isinstance(tokens, tuple | list | range) else []
    if tokens is None:
        return
    if not sizes or not all(type(size) is int and 1 <= size <= MOST_TOKENS for size in sizes):
        raise SettingError(
            f"tokens is {tokens!r}", limit=f"needs integers in 1..{MOST_TOKENS}", remedy="(2, 3) is the default"
        )
