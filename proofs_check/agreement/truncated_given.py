"""§9 given the output token, and matching rules: intervals from two lists beside the exact values they enclose."""

from __future__ import annotations

from proofs_check.agreement.truncated_intervals import RANKS, contained, lists
from proofs_check.forms.divergences import g
from proofs_check.forms.ranks import closed_form
from proofs_check.prelude import *
from proofs_check.twins.completions import NO_EXTRAS, Extras, Lengths
from spectheory import truncated
from spectheory.intervals import Interval
from spectheory.verification import (
    ArgmaxDraft,
    GreedyMatch,
    IndependentMatch,
    PoissonRace,
    RaceVerification,
    RecursiveRejection,
    TokenVerification,
    TopKMatch,
)

BEYOND = 1e-9
"""What a wrong claim is given beyond rounding, so that it fails for its own reason."""


def given_inside(p: AnyPmf, q: AnyPmf, m: Lengths = (1, 1), extra: Extras = NO_EXTRAS) -> Iterator[Compared]:
    """Acceptance and law of the rank, given each output that the target can have."""
    target, draft = lists(p, q, m, extra)
    rows = closed_form(p, q, RANKS)
    for x in (x for x in range(len(p)) if not is_zero(p[x])):
        race = 0 * p[x] if is_zero(q[x]) else 1 / (1 + g(p, q, p[x] / q[x]))
        within = [sum(row[x] for row in rows[:rank]) / p[x] for rank in range(RANKS + 1)]
        token = truncated.acceptance_given(TokenVerification(), target, draft, x)
        yield from contained(token, smaller(1 + 0 * p[x], q[x] / p[x]))
        yield from contained(truncated.acceptance_given(RaceVerification(), target, draft, x), race)
        second = truncated.acceptance_given(PoissonRace(), target, draft, x, 2)
        yield from contained(second, 1 - (1 - race) * (1 - race))
        yield from contained(truncated.acceptance_given(IndependentMatch(), target, draft, x), q[x])
        yield from contained(truncated.acceptance_given(RecursiveRejection(), target, draft, x, 2), within[2])
        poisson = truncated.rank_pmf_given(PoissonRace(), target, draft, x, RANKS)
        recursive = truncated.rank_pmf_given(RecursiveRejection(), target, draft, x, RANKS)
        for rank in range(RANKS):
            yield from contained(poisson[rank], race * (1 - race) ** rank)
            yield from contained(recursive[rank], within[rank + 1] - within[rank])


def peaks_forgotten(p: AnyPmf, q: AnyPmf, m: Lengths = (1, 1), extra: Extras = NO_EXTRAS) -> Iterator[Compared]:
    """The third rank of the Poisson race, given the output, lies between its values at the ends of the first's."""
    target, draft = lists(p, q, m, extra)
    for x in (x for x in range(len(p)) if not (is_zero(p[x]) or is_zero(q[x]))):
        first = truncated.acceptance_given(RaceVerification(), target, draft, x)
        low, high = sorted(a * (1 - a) ** 2 for a in (first.low, first.high))
        race = 1 / (1 + g(p, q, p[x] / q[x]))
        yield from contained(Interval(low - BEYOND, low, high + BEYOND, "bound"), race * (1 - race) ** 2)
    yield at_least(p[0], 0)


def matching_inside(p: AnyPmf, q: AnyPmf, m: Lengths = (1, 1), extra: Extras = NO_EXTRAS) -> Iterator[Compared]:
    """Top-k drafts for every k, alone and given the output, and the first choices."""
    target, draft = lists(p, q, m, extra)
    order = ranked(q)
    for k in range(1, len(p) + 1):
        yield from contained(truncated.acceptance(TopKMatch(), target, draft, k), sum(p[x] for x in order[:k]))
        for x in range(len(p)):
            drafted = int(x in order[:k]) + 0 * p[x]
            yield from contained(truncated.acceptance_given(TopKMatch(), target, draft, x, k), drafted)
    yield from contained(truncated.acceptance(ArgmaxDraft(), target, draft), p[order[0]])
    yield from contained(truncated.acceptance(GreedyMatch(), target, draft), int(ranked(p)[0] == order[0]) + 0 * p[0])


def only_listed(p: AnyPmf, q: AnyPmf, m: Lengths = (1, 1), extra: Extras = NO_EXTRAS) -> Iterator[Compared]:
    """What the target's list lacks is never accepted."""
    shown = {int(x) for x in lists(p, q, m, extra)[0].known}
    for k in range(1, len(p) + 1):
        drafts = ranked(q)[:k]
        yield at_most(sum(p[x] for x in drafts), sum((p[x] for x in drafts if x in shown), 0 * p[0]))


def ranked(pmf: AnyPmf) -> list[int]:
    """Tokens from the most probable down, ties to the lowest index."""
    rounded = floats(pmf)
    return sorted(range(len(pmf)), key=lambda x: (-rounded[x], x))
