"""R2: the rank of the output among the distinct tokens of the draft race, seen from either race."""

from __future__ import annotations

from proofs_check.agreement.rank_rules import mean_computed, ranks_computed
from proofs_check.algorithms.enumeration import race_coupling
from proofs_check.forms.ranks import drawn, rank_of, rates
from proofs_check.prelude import *
from proofs_check.proofs.races import WINNER, over_all
from proofs_check.statement.calculus import exp
from proofs_check.twins import race_ranks
from spectheory.verification import PoissonRace, RaceVerification


def seen_from_the_draft(p: AnyPmf, q: AnyPmf, winner: int) -> tuple[Real, ...]:
    """P(R = r, output i), r = 1..V, by the draft race's clock: the same integral with the roles of the races exchanged.

    Let i ring at s in the draft race, with density q_i e^(-s q_i). The tokens before it have clocks between
    s a_y and s q_y, a_y = p_y q_i/p_i, else they would ring first for the target; those after it are beyond both.
    """
    others = [y for y in range(len(p)) if y != winner]
    a = {y: p[y] * q[winner] / p[winner] for y in others}
    law: list[Real] = [0] * len(p)
    for count in range(len(p)):
        for came in combinations(others, count):
            after = q[winner] + sum(larger(q[y], a[y]) for y in others if y not in came)
            for late in (set(some) for size in range(count + 1) for some in combinations(came, size)):
                before = sum(q[y] if y in late else smaller(a[y], q[y]) for y in came)
                law[count] += (-1) ** len(late) * q[winner] / (after + before)
    return tuple(law)


def two_views(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The law of the rank from the winner's time, from the draft's clock, and multiplied out; its mean; its first."""
    both, seen = race_coupling(tuple(p), tuple(q)), drawn(p, q)
    yield equal(sum(race_ranks.rank_law(p, q)), sum(p[i] for i in range(len(p)) if not is_zero(q[i])))
    for i in seen:
        overtaking = rates(p, q, i)
        law = rank_of(overtaking)
        yield equal(tuple(p[i] * share for share in law), seen_from_the_draft(p, q, i))
        yield equal(law, tuple(race_ranks.rank_given(p, q, i)))
        yield equal(p[i] * law[0], both[i, i])
        yield equal(sum(r * share for r, share in enumerate(law, 1)), 1 + sum(rate / (1 + rate) for rate in overtaking))


def never_clipped(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The draft's clock against rates q_y p_i/q_i, as if target and draft had noise of their own."""
    for i in range(len(p)):
        seen = i in drawn(p, q)
        lifted = [q[y] * p[i] / q[i] for y in range(len(p)) if y != i] if seen else []
        other = seen_from_the_draft(p, q, i) if seen else ()
        yield equal(tuple(p[i] * share for share in rank_of(lifted)) if seen else (), other)


def calculated(p: AnyPmf, q: AnyPmf, rule: RaceVerification | PoissonRace) -> Iterator[Compared]:
    """The laws of the rank, acceptance and mean rank of a rule of the library, against R2 in fractions."""
    none, seen = (0,) * len(p), drawn(p, q)
    outputs = [x for x in range(len(p)) if not is_zero(p[x])]
    yield from ranks_computed(rule, p, q, {x: rank_of(rates(p, q, x)) if x in seen else none for x in outputs})
    yield mean_computed(rule, p, q, 1 + sum(p[i] * sum(rate / (1 + rate) for rate in rates(p, q, i)) for i in seen))


FROM_THE_WINNER: tuple[Step, ...] = (
    WINNER,
    valid(
        "y comes after i for the draft too iff E_y >= u c q_y, c = p_i/q_i; given E_y > u p_y that is a clock beyond "
        "u max(p_y, c q_y) = u (p_y + l_y), l_y = (c q_y - p_y)+",
        lambda p, q, c, u: equal(u * larger(p, c * q), u * (p + positive_part(c * q - p))),
        lambda p, q, c, u: [p >= 0, q >= 0, c >= 0, u >= 0],
    ),
    same(
        "a clock has no memory: given E_y > u p_y it is beyond u(p_y + l_y) with e^(-u l_y), each y by itself: given "
        "i and u the tokens before i are independent events of probability 1 - e^(-u l_y): R - 1 is their count",
        lambda p, rate, u: (exp(-u * (p + rate)) / exp(-u * p), exp(-u * rate)),
    ),
    same(
        "a set T stays behind with the integral of e^(-u) e^(-uL) = 1/(1 + L), L the sum of its rates: inclusion and "
        "exclusion over such sets gives the law of the count",
        lambda L, u: (over_all(exp(-u) * exp(-u * L), u), 1 / (1 + L)),
    ),
    same(
        "one more token that must come: its event takes 1/(1 + L + l) off 1/(1 + L)",
        lambda L, rate, u: (over_all(exp(-u * (1 + L)) * (1 - exp(-u * rate)), u), 1 / (1 + L) - 1 / (1 + L + rate)),
    ),
    same(
        "with nothing else asked y comes before i with l/(1 + l), so E[R | i] = 1 + sum over y of l/(1 + l)",
        lambda rate, u: (over_all(exp(-u) * (1 - exp(-u * rate)), u), rate / (1 + rate)),
    ),
    valid(
        "P(R = 1, i) = p_i/(1 + sum of l), the term of A2: max(p_y/p_i, q_y/q_i) = (p_y + l_y)/p_i, and the p_y sum "
        "to 1",
        lambda a, b, p, q: equal(larger(a / p, b / q), (a + positive_part(p / q * b - a)) / p),
        lambda a, b, p, q: [a >= 0, b >= 0, p > 0, q > 0],
    ),
)
"""R2 for every number of tokens."""

VIEWS = Claim(
    "the rank's law from the winner's time = by the draft's clock = multiplied out; P(R=1, i) is the race's (A2), "
    "E[R | i] = 1 + sum l/(1+l), and only q_i = 0 has no rank",
    two_views,
)

UNCLIPPED = Claim("the rates are q_y p_i/q_i", never_clipped)

LIBRARY = Claim(
    "the library's rank_pmf, rank_pmf_given, acceptance and expected_rank are R2's",
    lambda p, q: calculated(p, q, RaceVerification()),
)

POISSON = Claim("those of the Poisson race (R1) are R2's", lambda p, q: calculated(p, q, PoissonRace()))

ENTRIES = (
    Entry(
        id="R2",
        title="Rank in the race over distinct tokens",
        kind="identity",
        plain="the winner i ~ p and its time u ~ Exp(1) are independent; given both, R - 1 counts independent events, "
        "one for each y != i, of probability 1 - exp(-u l_y), l_y = (q_y p_i/q_i - p_y)+; E[R] = 1 + sum_i p_i sum_y "
        "l_y/(1+l_y); q_i = 0 is never drawn, R is infinite",
        latex=r"P(R>k \mid i,u) = P\Big(\sum_{y\ne i} \mathrm{Bernoulli}(1-e^{-u\lambda_y}) \ge k\Big),\quad "
        r"\lambda_y = (q_y p_i/q_i - p_y)_+,\quad E[R] = 1+\sum_i p_i \sum_y \frac{\lambda_y}{1+\lambda_y}",
        source=("kobus2025",),
        assumptions=(
            "p and q are pmfs on one finite vocabulary",
            "candidates are distinct tokens in the order of E_y/q_y, the output is argmin E_y/p_y, clocks E_y ~ Exp(1)",
            "E[R] is finite if the draft lacks no token of the target",
        ),
        calculators=("spectheory.verification.RaceVerification",),
        evidence=(
            proof("from the winner and its time, for any number of tokens", FROM_THE_WINNER),
            exact(VIEWS, cases.every_pair(5, 8), wrong=UNCLIPPED),
            exact(
                VIEWS,
                lambda effort: cases.random_pairs(effort.seed, effort.pick(60, 600), 5),
                over="random pairs on 2 to 5 tokens",
                wrong=UNCLIPPED,
            ),
            agreement(
                LIBRARY,
                lambda effort: cases.all_pairs(3, effort.pick(4, 7)),
                over="every pair on 2 and 3 tokens of denominator up to 4, its quadrature within 1e-12",
                wrong=POISSON,
            ),
            searched(
                VIEWS,
                lambda: exact_pairs(max_tokens=4),
                over="2 to 4 tokens, with zeros and ratios up to 1e30",
                wrong=UNCLIPPED,
            ),
            searched(
                LIBRARY,
                lambda: exact_pairs(max_tokens=3),
                over="2 and 3 tokens, with zeros and ratios up to 1e30",
                wrong=POISSON,
            ),
            simulated(
                "ranks and output of races with a clock for every token, and of lazy ones, drafts that lack a token "
                "and p/q = 1e10 among the pairs",
                at(("race", "race-dense"), (TURNED, LACKING, RARE), max_rank=3),
                stated("R2", "lossless"),
                wrong=("the ranks of the Poisson race (R1)", stated("R1", kind="poisson")),
            ),
        ),
    ),
)
