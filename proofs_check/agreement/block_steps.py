"""The steps of B7 at single calls, in fractions: masses of whole algorithms, what calls cost, renewal, induction."""

from __future__ import annotations

from proofs_check.agreement.block_cases import going_on, problem
from proofs_check.agreement.path_cases import CHAINS
from proofs_check.prelude import *
from proofs_check.twins.block_values import (
    Masses,
    MassesOf,
    Problem,
    block_masses,
    drop,
    expected_calls,
    least_of_products,
    masses_of_law,
    stops,
    texts,
    weighed,
)

FRESH = ("token", "block", "race", "poisson", "recursive", "independent")
"""Rules of the library whose drafts are drawn from q and whose later text is drawn afresh."""


def run_through(given: Problem, names: Sequence[str]) -> Iterator[tuple[str, Prefix, CallLaw, Masses]]:
    """The law of one call of each rule after every text that goes on, from its algorithm, and its masses."""
    for text in going_on(given):
        for name in names:
            k = given.drafts(text)
            law = CHAINS[name].algorithm(given.target, given.draft_from(text), text, k)
            yield name, text, law, masses_of_law(given, law, k)


def no_more(
    most: MassesOf, names: Sequence[str], target: Table, draft: Table, k: int, length: int, end: int | None
) -> Iterator[Compared]:
    """(i): a call stops with p s - s', and no mass is above `most`."""
    given = problem(target, draft, k, length, end)
    for _, text, law, masses in run_through(given, names):
        stopped = {output: share for output, share in stops(given, text, masses).items() if share}
        yield equal(stopped, {output: share for (output, _), share in law.items()})
        bound = most(given, text)
        for depth, limit in zip(masses, bound, strict=True):
            for run, mass in depth.items():
                yield at_most(mass, limit[run])


def attained(stated: MassesOf, target: Table, draft: Table, k: int, length: int, end: int | None) -> Iterator[Compared]:
    """Block verification's own masses, run through, are the recursion's and the closed form."""
    given = problem(target, draft, k, length, end)
    for _, text, _, masses in run_through(given, ("block",)):
        yield equal(masses, stated(given, text))
        yield equal(masses, least_of_products(given, text))


def decomposed(
    shift: int, names: Sequence[str], target: Table, draft: Table, k: int, length: int, end: int | None
) -> Iterator[Compared]:
    """(ii): one call of a rule and block verification afterwards, as counted and by the drops; and what it loses."""
    given = problem(target, draft, k, length, end)
    value = expected_calls(given)
    fall = drop(given, value)
    for _, text, law, masses in run_through(given, names):
        counted = sum((share * value(text + output) for (output, _), share in law.items()), Fraction(1))
        drops = weighed(text, masses[1 + shift :], fall)
        yield equal(counted, 1 + given.following(text, value) - drops)
        if not shift:
            yield equal(counted - value(text), weighed(text, block_masses(given, text), fall) - drops - fall(text))


def renewed(of: MassesOf, target: Table, draft: Table, k: int, length: int, end: int | None) -> Iterator[Compared]:
    """The sum of mu D is 1 where the text goes on; D is 0 where it has ended."""
    given = problem(target, draft, k, length, end)
    fall = drop(given, expected_calls(given))
    for text in going_on(given):
        yield equal(weighed(text, of(given, text), fall), Fraction(1))
        for z in range(given.tokens):
            if given.ended((*text, z)):
                yield equal(fall((*text, z)), Fraction(0))


def shifted(first: bool, target: Table, draft: Table, k: int, length: int, end: int | None) -> Iterator[Compared]:
    """(iii): mu_i^w(zx) <= q(z|w) mu_(i-1)^(wz)(x); not `first`: with p(z|w) in place of q."""
    given = problem(target, draft, k, length, end)
    for text in going_on(given):
        masses = block_masses(given, text)
        factor = draft[text] if first else target[text]
        for z in range(given.tokens):
            after = block_masses(given, (*text, z))
            for i in range(1, k + 1):
                for run, mass in after[i - 1].items():
                    yield at_most(masses[i][z, *run], factor[z] * mass)


def falling(
    of: MassesOf, most: Fraction, target: Table, draft: Table, k: int, length: int, end: int | None
) -> Iterator[Compared]:
    """(iv): 0 <= D <= 1 of a rule's own value, at every text."""
    given = problem(target, draft, k, length, end)
    fall = drop(given, expected_calls(given, of))
    for text in going_on(given):
        yield at_most(Fraction(0), fall(text))
        yield at_most(fall(text), most)


def every_step(of: MassesOf, p: Pmf, q: Pmf) -> Iterator[Compared]:
    """All steps for texts of three tokens and two drafts of models made of a pair: what the search tries to break."""
    given = texts(turning(p), turning(q), 2, 3)
    fall = drop(given, expected_calls(given, of))
    for text in going_on(given):
        yield at_most(Fraction(0), fall(text))
        yield at_most(fall(text), Fraction(1))
        masses, shares = block_masses(given, text), given.draft_from(text)(text)
        yield equal(weighed(text, masses, fall), Fraction(1))
        for z, share in enumerate(shares):
            for run, mass in block_masses(given, (*text, z))[1].items():
                yield at_most(masses[2][z, *run], share * mass)


def turning(pmf: Pmf) -> Model:
    """A model made of one pmf: the tokens before turn it, so that every prefix matters."""
    return lambda prefix: tuple(pmf[(x + sum(prefix) * len(prefix)) % len(pmf)] for x in range(len(pmf)))
