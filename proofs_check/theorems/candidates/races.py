"""R1: the rank in the Poisson race, geometric given the output; derived from the candidates, and from the streams."""

from __future__ import annotations

from proofs_check.algorithms.enumeration import race_coupling
from proofs_check.algorithms.rank_laws import poisson_race, rank_law
from proofs_check.forms.ranks import common_support, odds, rank_of, rates
from proofs_check.prelude import *
from proofs_check.statement.calculus import exp, factorial
from proofs_check.theorems.candidates.rank_rules import WINNER, mean_computed, over_all, ranks_computed
from proofs_check.twins import race_ranks
from spectheory.verification import PoissonRace, RaceVerification

RANKS = range(1, 6)


def geometric(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The law of rank and output of the race, integrated over the winner's arrival, against R1."""
    arrived = poisson_race(tuple(p), tuple(q), RANKS[-1])
    first = race_coupling(tuple(p), tuple(q))
    for k in RANKS:
        within = sum(share for (rank, _), share in arrived.items() if rank <= k)
        yield equal(within, sum(p[x] * (1 - (g / (1 + g)) ** k) for x, g in odds(p, q).items()))
    for x, g in odds(p, q).items():
        law = tuple(arrived.get((rank, x), 0) for rank in RANKS)
        yield equal(law, tuple(p[x] * g ** (rank - 1) / (1 + g) ** rank for rank in RANKS))
        yield equal(law[0], first[x, x])
        again = law[1] / law[0]
        yield equal(law[0] / (1 - again), p[x])
        yield equal(law[0] / (1 - again) ** 2, p[x] * (1 + g))


def one_success(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The law of the rank, integrated, as one geometric law for all outputs."""
    law = rank_law(poisson_race(tuple(p), tuple(q), RANKS[-1]), RANKS[-1])
    for rank in RANKS:
        yield equal(sum(law[:rank]), 1 - (1 - law[0]) ** rank)


def calculated(p: AnyPmf, q: AnyPmf, rule: RaceVerification | PoissonRace) -> Iterator[Compared]:
    """The laws of the rank, acceptance and mean rank of a rule of the library, against R1 in fractions."""
    g, outputs = odds(p, q), [x for x in range(len(p)) if not is_zero(p[x])]
    law = {x: [g[x] ** (rank - 1) / (1 + g[x]) ** rank if x in g else 0 for rank in RANKS] for x in outputs}
    yield from ranks_computed(rule, p, q, law)
    yield mean_computed(rule, p, q, sum(p[x] * (1 + g[x]) for x in g))


GEOMETRIC: tuple[Step, ...] = (
    same(
        "the partial sums are 1 - v^k with v = g/(1+g): the k-th adds v^(k-1)/(1+g), so P(R <= k | x) = 1 - v^k",
        lambda g, k: ((1 - (g / (1 + g)) ** k) - (1 - (g / (1 + g)) ** (k - 1)), g ** (k - 1) / (1 + g) ** k),
        integers=("k",),
    ),
    valid(
        "v^k <= g/(g + k), by induction: times v = g/(1+g) that is at most g/(g + k + 1); so v^k vanishes, R is finite "
        "and the output x has probability p_x",
        lambda g, k, w: at_most(w * g / (1 + g), g / (g + k + 1)),
        lambda g, k, w: [g > 0, k >= 1, w >= 0, w <= g / (g + k)],
    ),
    same(
        "E[R | x] is the sum of P(R > m | x) = v^m from m = 0 on, whose partial sums are (1+g)(1 - v^k): 1 + g",
        lambda g, k: (
            (1 + g) * (1 - (g / (1 + g)) ** (k + 1)) - (1 + g) * (1 - (g / (1 + g)) ** k),
            (g / (1 + g)) ** k,
        ),
        integers=("k",),
    ),
)
"""From the law of a rank given the output to its sum, its tail and its mean."""

BY_CANDIDATES: tuple[Step, ...] = (
    same(
        "candidates arrive with gaps Exp(1); one more gap turns the density e^(-s) into e^(-t), so r arrivals have "
        "e^(-t), t the last of them, wherever the earlier ones are",
        lambda s, t: (exp(-s) * exp(-(t - s)), exp(-t)),
    ),
    valid(
        "let the last be x, c = p_x/q_x; a candidate y at s is better if s < t a/q, a = p_y/c, q = q_y. One before t "
        "is no better on a stretch t - min(t, t a/q), times q: t (q - a)+, and tA summed over y",
        lambda a, q, t: equal(q * (t - smaller(t, t * a / q)), t * positive_part(q - a)),
        lambda a, q, t: [a >= 0, q > 0, t > 0],
    ),
    same(
        "the r - 1 earlier ones in order, none of them better, give (tA)^(r-1)/(r-1)!: one more of them integrates "
        "W^(n-1)/(n-1)! to W^n/n!",
        lambda W, n, w: (integral(w ** (n - 1), w, 0, W) / factorial(n - 1), W**n / factorial(n)),
        integers=("n",),
    ),
    valid(
        "one after t, y at rate q, is better from t to t a/q: t (a - q)+ of them in the mean, so none of any token "
        "with e^(-tB), B the sum of (a - q)+",
        lambda a, q, t: equal(q * (larger(t, t * a / q) - t), t * positive_part(a - q)),
        lambda a, q, t: [a >= 0, q > 0, t > 0],
    ),
    same(
        "P(R = r, x) is q_x A^(r-1) times the integral of e^(-t) t^(r-1)/(r-1)! e^(-tB), which is (1+B)^(-r)",
        lambda r, B, t: (over_all(exp(-t) * t ** (r - 1) / factorial(r - 1) * exp(-t * B), t), (1 + B) ** (-r)),
        integers=("r",),
    ),
    valid(
        "(q - a)+ - (a - q)+ = q - a, summed over y: A - B = 1 - 1/c",
        lambda a, q: equal(positive_part(q - a) - positive_part(a - q), q - a),
    ),
    valid(
        "(c q - p)+ = c (q - p/c)+, summed over y: g = cA",
        lambda p, q, c: equal(positive_part(c * q - p), c * positive_part(q - p / c)),
        lambda p, q, c: [p >= 0, q >= 0, c > 0],
    ),
    same("so A/(1+B) = g/(1+g)", lambda A, c: (A / (1 + (A - 1 + 1 / c)), c * A / (1 + c * A))),
    same(
        "and q_x A^(r-1)/(1+B)^r = p_x g^(r-1)/(1+g)^r: given x, R is geometric with success 1/(1+g)",
        lambda q, A, c, r: (q * A ** (r - 1) / (A + 1 / c) ** r, c * q * (c * A) ** (r - 1) / (1 + c * A) ** r),
        integers=("r",),
    ),
    *GEOMETRIC,
)
"""R1 where the draft lacks no token of the target; at g = 0 A vanishes and R = 1."""

BY_STREAMS: tuple[Step, ...] = (
    WINNER,
    valid(
        "the winner x is drafted at u p_x/q_x = u c; stream y of rate 1 first arrives after u p_y, and what it drafts "
        "before the winner, before u c q_y, arrives in a stretch of u (c q_y - p_y)+",
        lambda p, q, c, u: equal(larger(u * p, u * c * q) - u * p, u * positive_part(c * q - p)),
        lambda p, q, c, u: [p >= 0, q >= 0, c >= 0, u >= 0],
    ),
    same(
        "two Poisson numbers of means ug and uh add up to one of mean u(g + h), by generating functions: R - 1 is "
        "Poisson, and its mean is u times the sum over y, ug_x",
        lambda g, h, u, z: (exp(u * g * z - u * g) * exp(u * h * z - u * h), exp(u * (g + h) * (z - 1))),
    ),
    same(
        "over u ~ Exp(1): P(R = r | x) is the integral of e^(-u) e^(-ug) (ug)^(r-1)/(r-1)!, which is g^(r-1)/(1+g)^r",
        lambda g, r, u: (
            over_all(exp(-u) * exp(-u * g) * (u * g) ** (r - 1) / factorial(r - 1), u),
            g ** (r - 1) / (1 + g) ** r,
        ),
        integers=("r",),
    ),
)
"""R1 for every pair."""

LAW = Claim(
    "q A^(r-1)/(1+B)^r = p g^(r-1)/(1+g)^r up to rank 5, P(R <= k) = sum p (1 - (g/(1+g))^k); the first rank is the "
    "race's (A2), and the geometric series gives the output law p and the mean sum p (1+g)",
    geometric,
)

ONE_SUCCESS = Claim("R is geometric with one success for all outputs", one_success)

LIBRARY = Claim(
    "the library's rank_pmf, rank_pmf_given, acceptance and expected_rank are R1's",
    lambda p, q: calculated(p, q, PoissonRace()),
)

DISTINCT = Claim(
    "those of the race over distinct tokens (R2) are R1's", lambda p, q: calculated(p, q, RaceVerification())
)


# R2: the rank of the output among the distinct tokens of the draft race, seen from either race.


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
    both, seen = race_coupling(tuple(p), tuple(q)), common_support(p, q)
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
        seen = i in common_support(p, q)
        lifted = [q[y] * p[i] / q[i] for y in range(len(p)) if y != i] if seen else []
        other = seen_from_the_draft(p, q, i) if seen else ()
        yield equal(tuple(p[i] * share for share in rank_of(lifted)) if seen else (), other)


def calculated_distinct(p: AnyPmf, q: AnyPmf, rule: RaceVerification | PoissonRace) -> Iterator[Compared]:
    """The laws of the rank, acceptance and mean rank of a rule of the library, against R2 in fractions."""
    none, seen = (0,) * len(p), common_support(p, q)
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

LIBRARY_DISTINCT = Claim(
    "the library's rank_pmf, rank_pmf_given, acceptance and expected_rank are R2's",
    lambda p, q: calculated_distinct(p, q, RaceVerification()),
)

POISSON = Claim("those of the Poisson race (R1) are R2's", lambda p, q: calculated_distinct(p, q, PoissonRace()))

R1 = Entry(
    id="R1",
    title="Rank in the Poisson race",
    kind="identity",
    plain="given the output x, R is geometric with success 1/(1+g_x), g_x = sum_y (q_y p_x/q_x - p_y)+: P(R = r) = "
    "sum_x p_x g_x^(r-1)/(1+g_x)^r, P(R <= k) = 1 - sum_x p_x (g_x/(1+g_x))^k, E[R] = sum_x p_x (1+g_x)",
    latex=r"P(R=r \mid x) = \frac{g_x^{r-1}}{(1+g_x)^r},\quad g_x = \sum_y (q_y p_x/q_x - p_y)_+,\quad "
    r"P(R\le k) = 1-\sum_x p_x \Big(\frac{g_x}{1+g_x}\Big)^k,\quad E[R] = \sum_x p_x(1+g_x)",
    source=("li2018",),
    assumptions=(
        "p and q are pmfs on one finite vocabulary",
        "one Poisson stream of rate 1 per token y: its arrivals over q_y are candidates, hence i.i.d. from q, "
        "and the output is the token whose first arrival over p_y is the earliest; R counts duplicates",
        "tokens with q_x = 0 have no rank: g/(1+g) = 1 there, and E[R] is infinite if p_x > 0",
    ),
    calculators=("spectheory.verification.PoissonRace",),
    evidence=(
        proof(
            "from the list of candidates, integrated over the winner's arrival, where the draft lacks no token of "
            "the target; from the law given x its sums and its mean",
            BY_CANDIDATES,
        ),
        proof(
            "the law given x from one stream per token, integrated over the winner's time, for every pair: those "
            "whose draft lacks tokens of the target too",
            BY_STREAMS,
        ),
        exact(LAW, every_pair(6, 9), wrong=ONE_SUCCESS),
        agreement(LIBRARY, every_pair(4, 7), wrong=DISTINCT),
        searched(
            LAW,
            lambda: exact_pairs(max_tokens=4),
            over="2 to 4 tokens, with zeros and ratios up to 1e30",
            wrong=ONE_SUCCESS,
        ),
        searched(
            LIBRARY,
            lambda: exact_pairs(max_tokens=3),
            over="2 and 3 tokens, with zeros and ratios up to 1e30",
            wrong=DISTINCT,
        ),
        simulated(
            "ranks and output of Poisson races, a draft that lacks a token among the pairs",
            at(("poisson",), (TURNED, LACKING), max_rank=4),
            stated("R1", "lossless"),
            wrong=("the ranks among distinct tokens (R2)", stated("R2", kind="race")),
        ),
    ),
)

R2 = Entry(
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
            LIBRARY_DISTINCT,
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
            LIBRARY_DISTINCT,
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
)
