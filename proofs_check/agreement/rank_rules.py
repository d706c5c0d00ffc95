"""The library's rules with ranks (R1, R2, R3, R7) against the exact law of the rank given each output."""

from __future__ import annotations

from itertools import accumulate

from proofs_check.prelude import *
from spectheory.verification import PoissonRace, RaceVerification, RankRule


def ranks_computed(
    rule: RankRule, p: AnyPmf, q: AnyPmf, given: Mapping[int, Sequence[Real]], least: Real = 0
) -> Iterator[Compared]:
    """The law of the rank and the acceptance, given the output or not; ``given[x][r - 1]`` is P(R = r | x).

    Given an output that is rarer than `least`, only the product with its probability is compared.
    """
    target, draft, ranks = floats(p), floats(q), len(next(iter(given.values())))
    law = [sum(p[x] * shares[r] for x, shares in given.items()) for r in range(ranks)]
    for share, exact in zip(rule.rank_pmf(target, draft, ranks), law, strict=True):
        yield computed(share, exact)
    for k, within in enumerate(accumulate(law), 1):
        yield computed(rule.acceptance(target, draft, k), within)
    first = rule.acceptance_given(target, draft)
    for x, shares in given.items():
        yield computed(first[x], shares[0])
        found, weight = (target[x], p[x]) if p[x] < least else (1, 1)
        for share, exact in zip(rule.rank_pmf_given(target, draft, x, ranks), shares, strict=True):
            yield computed(share * found, exact * weight)


def given_outputs(law: Sequence[Sequence[Real]], p: AnyPmf) -> dict[int, list[Real]]:
    """P(R = r | x) of a joint law ``law[r - 1][x]``, for the outputs that the target can have."""
    return {x: [row[x] / share for row in law] for x, share in enumerate(p) if not is_zero(share)}


def mean_computed(rule: PoissonRace | RaceVerification, p: AnyPmf, q: AnyPmf, mean: Real) -> Compared:
    """The mean rank: infinite where the draft lacks a token of the target."""
    found = rule.expected_rank(floats(p), floats(q))
    lacks = any(is_zero(b) and not is_zero(a) for a, b in zip(p, q, strict=True))
    return equal(int(math.isinf(found)), 1) if lacks else computed(found, mean)
