"""R6: Gumbel list sampling; the printed lower bound is the chance that the output's own race drafts it.

The bound is proved in steps. The law of the acceptance, an integral, is checked numerically alone.
"""

from __future__ import annotations

from proofs_check.algorithms.enumeration import race_coupling
from proofs_check.algorithms.rank_laws import gumbel_list_hit
from proofs_check.forms.ranks import common_support, listed
from proofs_check.library.wide import wide_pairs
from proofs_check.prelude import *
from proofs_check.statement.calculus import exp
from proofs_check.theorems.candidates.rank_rules import LOSSLESS
from spectheory.verification import GumbelList

SOME = 10
"""Pairs of 16 tokens: the sums of exponentials take a tenth of a second for each in fractions."""


def printed(p: AnyPmf, q: AnyPmf, k: int, of: Callable[[Real, Real], Real] = larger) -> Real:
    """The bound: the sum over x of k over the sum over y of max(p_y/p_x, q_y/q_x) + (k-1) p_y/p_x."""
    return sum(
        k / sum(of(a / p[x], b / q[x]) + (k - 1) * a / p[x] for a, b in zip(p, q, strict=True))
        for x in common_support(p, q)
    )


def construction(p: AnyPmf, q: AnyPmf, k: int, of: Callable[[Real, Real], Real]) -> Iterator[Compared]:
    """Laws of the output and of a draft, the bound as what it is, and where the acceptance lies."""
    tokens = len(p)  # of the first race's draft, and of (race, token) that the output comes from, race by race:
    joint = race_coupling(tuple(a / k for _ in range(k) for a in p), (*q, *[Fraction(0)] * ((k - 1) * tokens)))
    outputs = tuple(sum(share for (_, won), share in joint.items() if won % tokens == x) for x in range(tokens))
    drafts = tuple(sum(share for (drafted, _), share in joint.items() if drafted == x) for x in range(tokens))
    yield equal((outputs, drafts), (tuple(p), tuple(q)))
    hits = k * sum(share for (drafted, won), share in joint.items() if drafted == won)
    odds = {x: sum(positive_part(b * p[x] / q[x] - a) for a, b in zip(p, q, strict=True)) for x in common_support(p, q)}
    yield equal((hits, hits), (printed(p, q, k, of), sum(p[x] / (1 + g / k) for x, g in odds.items())))
    first = sum(share for (drafted, won), share in joint.items() if drafted == won % tokens)
    hit = listed(p, q, k)
    yield at_most(hits, hit)
    yield at_most(first, hit)
    yield at_most(hit, k * first)
    if k == 1:
        yield equal(hits, hit)


def gumbel_library(p: AnyPmf, q: AnyPmf, k: int, *, more: int) -> Iterator[Compared]:
    """The library's three functions with `more` candidates."""
    rule, pair = GumbelList(), (floats(p), floats(q))
    yield computed(rule.acceptance(*pair, k + more), listed(p, q, k))
    yield computed(rule.acceptance_bound(*pair, k + more), printed(p, q, k))
    given = rule.acceptance_given(*pair, k + more)
    for x in common_support(p, q):
        yield computed(given[x], gumbel_list_hit(tuple(p), tuple(q), x, k))


A_RACE_WITHIN_RACES: tuple[Step, ...] = (
    same(
        "independent clocks, y's beyond t c_y when x's rings at t ~ Exp(1): the probability is the integral of "
        "exp(-t D), D = 1 + the sum of the c_y, which is 1/D",
        lambda t, D: (integral(exp(-t * D), t, 0, math.inf), 1 / D),
    ),
    LOSSLESS,
    valid(
        "it wins the output and its race's draft if besides the clocks of race j are beyond t q_y/q_x: both together "
        "are e >= t max(a, b). So D = sum of max(p_y/p_x, q_y/q_x) + (k-1) p_y/p_x, and k/D summed over x, the bound, "
        "is P(the race that the output comes from drafts it); that it is listed is no less likely",
        lambda a, b, t, e, late: (at_most(larger(a, b) * t, e), at_most(a * t, late), at_most(b * t, late)),
        lambda a, b, t, e, late: [a >= 0, b >= 0, t >= 0, a * t <= e, b * t <= e, late >= larger(a, b) * t],
    ),
    valid(
        "max(a/p, b/q) = (a + (b p/q - a)+)/p: over y the maxima add up to (1 + g)/p",
        lambda a, b, p, q: equal(larger(a / p, b / q), (a + positive_part(b * p / q - a)) / p),
        lambda a, b, p, q: [a >= 0, b >= 0, p > 0, q > 0],
    ),
    same(
        "and the term k/D is p/(1 + g/k); at k = 1 it is the race's (A2), where listed and own are the same",
        lambda k, p, g: (k / ((1 + g) / p + (k - 1) / p), p / (1 + g / k)),
    ),
)
"""For every number of races and tokens."""

BOUND = Claim(
    "the printed sum is at most the acceptance, k = 2", lambda p, q: at_most(printed(p, q, 2), listed(p, q, 2))
)

TOO_MUCH = Claim("so is it with min for max", lambda p, q: at_most(printed(p, q, 2, smaller), listed(p, q, 2)))

R6 = Entry(
    id="R6",
    title="Gumbel list sampling",
    kind="lower bound",
    plain="k races of exponential clocks; each drafts its winner for q, and the output is the winner for p over "
    "all clocks. P(output is drafted) >= sum over x of k/sum over y of [max(p_y/p_x, q_y/q_x) + (k-1) p_y/p_x] = "
    "sum p_x/(1 + g_x/k), with equality at k = 1. The acceptance itself is an integral over the winning time, for "
    "any V: its law is checked numerically and not proved in steps",
    latex=r"P(Y \in \text{list}) \ge \sum_x \frac{k}{\sum_y [\max(p_y/p_x, q_y/q_x) + (k-1)p_y/p_x]}"
    r" = \sum_x \frac{p_x}{1 + g(p_x/q_x)/k}",
    source=("rowan2025",),
    assumptions=("p and q are pmfs on one finite vocabulary",),
    calculators=("spectheory.verification.GumbelList",),
    evidence=(
        proof(
            "the bound is the probability that the race which the output comes from drafts it, any k",
            A_RACE_WITHIN_RACES,
        ),
        exact(
            Claim(
                "output law p, draft law q, the bound is P(own race drafts it) and at most the acceptance, which "
                "is between the chance of one race and k times that",
                lambda p, q, k: construction(p, q, k, larger),
            ),
            lambda effort: with_each(cases.all_pairs(3, effort.pick(4, 6)), k=(1, 2, 3)),
            over="the races' joint law in fractions, k = 1, 2, 3, pairs on 2 and 3 tokens of denominator up to 4",
            wrong=Claim("with min for max", lambda p, q, k: construction(p, q, k, smaller)),
        ),
        agreement(
            Claim(
                "the library's acceptance, bound and law given the output",
                lambda p, q, k: gumbel_library(p, q, k, more=0),
            ),
            lambda effort: with_each(cases.random_pairs(effort.seed, effort.pick(50, 500), 5), k=(1, 2, 4)),
            over="random pairs on up to 5 tokens, k = 1, 2, 4",
            wrong=Claim("with one candidate more", lambda p, q, k: gumbel_library(p, q, k, more=1)),
        ),
        agreement(
            Claim("the same on more tokens", lambda p, q, k: gumbel_library(p, q, k, more=0)),
            lambda _: with_each([*wide_pairs(0, 8), *islice(wide_pairs(0, 16), SOME)], k=(2,)),
            over=f"flat, geometric, sparse, peaked and random pmfs on 8 tokens, {SOME} pairs on 16, k = 2",
            wrong=Claim("with one candidate more", lambda p, q, k: gumbel_library(p, q, k, more=1)),
        ),
        searched(BOUND, lambda: exact_pairs(4), over="2 to 4 tokens", spaces=(pair_space(2),), wrong=TOO_MUCH),
        simulated(
            "misses of lists of three, hits by the output's own race, and the output, a draft that lacks a token "
            "among the pairs",
            at(("gumbel-list", "gumbel-list-dense"), (TURNED, LACKING), k=3),
            stated("R6", "lossless"),
            wrong=("with one candidate more", stated("R6", k=lambda k: k + 1)),
        ),
    ),
)
