"""The least cost of a decoding whose drafts may end after any token (B10): exact, and as programmes at each text."""

from __future__ import annotations

from scipy.optimize import linprog

from proofs_check.prelude import *
from proofs_check.twins.block_values import Problem, Value

Going = Mapping[Prefix, Fraction]
"""R(x): the probability that drafting goes on after the drafts x, given that the chain begins with them."""

Term = tuple[Fraction, Fraction]
"""A and B of min(A m, B r)."""


def cost_optimal(problem: Problem) -> Value:
    """V(w): the least expected cost from each text on."""

    @cache
    def value(text: Prefix) -> Fraction:
        return Fraction(0) if problem.ended(text) else 1 + problem.following(text, value) - saved(text)

    def saved(text: Prefix) -> Fraction:
        return total(min(term) for term in terms(text, (), Fraction(1)))

    def fall(text: Prefix) -> Fraction:
        return value(text) - problem.following(text, value)

    def terms(text: Prefix, run: Prefix, drawn: Fraction) -> list[Term]:
        if len(run) == problem.drafts(text) or problem.ended(text + run):
            return []
        found: list[Term] = []
        p, q = problem.target(text + run), problem.draft_from(text)(text + run)
        for z in range(problem.tokens):
            reach = drawn * q[z]
            fallen = fall((*text, *run, z))
            found.append((fallen * p[z], fallen * reach))
            found += [(gain * p[z], min(gain * reach, slope)) for gain, slope in terms(text, (*run, z), reach)]
        return less(found, (problem.price or 0) * drawn)

    return value


def less(terms: list[Term], owed: Fraction) -> list[Term]:
    """The sum of the terms less `owed` times r, at the best smaller r."""
    kept: list[Term] = []
    for gain, slope in sorted((t for t in terms if t[1]), key=lambda t: t[0] / t[1], reverse=True):
        paid = min(owed, slope)
        owed -= paid
        kept.append((gain * (slope - paid) / slope, slope - paid))
    return kept


def masses_of_stops(problem: Problem, text: Prefix, going: Going) -> dict[Prefix, Fraction]:
    """mu(xz) = min(p(z|wx) mu(x), Q(xz|w) R(x)): of block verification against the law of drafts that stop."""
    masses: dict[Prefix, Fraction] = {(): Fraction(1)}
    drawn = dict(masses)
    draft = problem.draft_from(text)
    for i in range(problem.drafts(text)):
        for run in problem.runs(i):
            p, q = problem.target(text + run), draft(text + run)
            for z in range(problem.tokens):
                drawn[*run, z] = drawn[run] * q[z]
                masses[*run, z] = min(p[z] * masses[run], drawn[*run, z] * going[run])
    return masses


def saves(problem: Problem, text: Prefix, going: Going, fall: Value) -> Fraction:
    """Sum of mu D, less the price of the drafts: what a call with these stops saves."""
    draft, masses = problem.draft_from(text), masses_of_stops(problem, text, going)
    drafted = total(probability(draft, text, run) * share for run, share in going.items())
    return total(mass * fall(text + run) for run, mass in masses.items() if run) - (problem.price or 0) * drafted


def by_certain_stops(problem: Problem) -> Value:
    """The least cost where every call goes on or stops for certain: all functions of the drafts are tried."""

    @cache
    def value(text: Prefix) -> Fraction:
        if problem.ended(text):
            return Fraction(0)
        runs = [run for i in range(problem.drafts(text)) for run in problem.runs(i)]
        shares = (dict(zip(runs, each, strict=True)) for each in product((Fraction(0), Fraction(1)), repeat=len(runs)))
        falling = (going for going in shares if all(going[run] <= going[run[:-1]] for run in runs if run))
        return 1 + problem.following(text, value) - max(saves(problem, text, going, fall) for going in falling)

    def fall(text: Prefix) -> Fraction:
        return value(text) - problem.following(text, value)

    return value


def by_programmes(problem: Problem, *, falling: bool = True) -> Callable[[Prefix], float]:
    """V(w) in floats, by a linear programme at each text, unknowns mu and R; without `falling` R may rise again."""

    @cache
    def value(text: Prefix) -> float:
        return 0.0 if problem.ended(text) else 1 + following(text) + _programme(problem, text, fall, falling)

    def following(text: Prefix) -> float:
        return sum(float(p) * value((*text, z)) for z, p in enumerate(problem.target(text)))

    def fall(text: Prefix) -> float:
        return value(text) - following(text) if not problem.ended(text) else 0.0

    return value


def _programme(problem: Problem, text: Prefix, fall: Callable[[Prefix], float], falling: bool) -> float:
    """The least of the price of a call's drafts less the sum of mu D."""
    draft, price, most = problem.draft_from(text), float(problem.price or 0), problem.drafts(text)
    runs = [run for i in range(most + 1) for run in problem.runs(i)]
    stays = {run: len(runs) + i for i, run in enumerate(run for run in runs if len(run) < most)}
    at, rows = {run: i for i, run in enumerate(runs)}, []
    costs = np.zeros(len(runs) + len(stays))
    for run in runs:
        if run in stays:
            costs[stays[run]] = price * float(probability(draft, text, run))
        if not run:
            continue
        costs[at[run]] = -fall(text + run)
        by_target, by_draft, longer = np.zeros((3, len(costs)))
        by_target[at[run]], by_target[at[run[:-1]]] = 1, -float(problem.target(text + run[:-1])[run[-1]])
        by_draft[at[run]], by_draft[stays[run[:-1]]] = 1, -float(probability(draft, text, run))
        rows += [by_target, by_draft]
        if falling and run in stays:
            longer[stays[run]], longer[stays[run[:-1]]] = 1, -1
            rows.append(longer)
    solved = linprog(costs, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), bounds=(0, 1), method="highs")
    return float(solved.fun)
