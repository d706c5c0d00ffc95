"""R8: the rules at equal k: those of i.i.d. candidates below R4, those of distinct ones not; R2 above R1."""

from __future__ import annotations

from proofs_check.agreement.path_cases import CHAINS, RANKED
from proofs_check.algorithms import rank_laws
from proofs_check.forms.divergences import overlap
from proofs_check.forms.kseq_cases import drawn_roots, one, root_space, roots
from proofs_check.forms.ranks import first, independent, listed, odds, rank_of, rates, surviving
from proofs_check.prelude import *
from proofs_check.statement.calculus import algebra, exp, factorial
from proofs_check.theorems.candidates.rank_rules import ALL_INSIDE, BELOW_EVERY_CUT, LOSSLESS, WINNER
from proofs_check.twins import race_ranks
from proofs_check.twins.list_transport import optimum
from spectheory.verification import rule_order

SEEN = Fraction(1, 100)
"""Odds of a second candidate from which on quotients of rank probabilities keep digits in floats."""


def poisson(p: AnyPmf, q: AnyPmf, k: int) -> Real:
    """R1: the acceptance of the Poisson race."""
    return sum(p[x] * (1 - (g / (1 + g)) ** k) for x, g in odds(p, q).items())


def distinct(p: AnyPmf, q: AnyPmf, k: int) -> Real:
    """R2: the acceptance of the race over distinct tokens."""
    return sum(race_ranks.rank_law(p, q)[:k])


def recursive(p: AnyPmf, q: AnyPmf, k: int) -> Real:
    """R3: the acceptance of recursive rejection with i.i.d. candidates."""
    return 1 - surviving(p, q, k)


def accepted(joint: rank_laws.JointLaw) -> Real:
    """What an enumerated rule accepts."""
    return sum(share for (rank, _), share in joint.items() if rank > 0)


def recursive_distinct(p: AnyPmf, q: AnyPmf, k: int) -> Real:
    """R3 with distinct candidates."""
    return accepted(rank_laws.recursive_rejection(tuple(p), tuple(q), k, replacement=False))


def top(p: AnyPmf, q: AnyPmf, k: int) -> Real:
    """R7: the target's mass of the draft's k most probable tokens."""
    return accepted(rank_laws.top_k(tuple(p), tuple(q), k))


def under_the_optimum(p: AnyPmf, q: AnyPmf, k: int, *, asked: int) -> Sequence[Compared]:
    """R1, R3 and R6 against R4 of `asked` candidates."""
    most = optimum(p, q, asked)
    return [at_most(rule(p, q, k), most) for rule in (poisson, recursive, listed)]


def distinct_above(p: AnyPmf, q: AnyPmf, *, fewer: int = 0) -> Iterator[Compared]:
    """P(R2 > k) <= P(R1 > k + fewer), k = 1, 2, 3, in the mean and given every output."""
    for k in (1, 2, 3):
        yield at_most(poisson(p, q, k + fewer), distinct(p, q, k))
    for x, g in odds(p, q).items():
        law = race_ranks.rank_given(p, q, x)
        for k in (1, 2, 3):
            yield at_most(1 - sum(law[:k]), (g / (1 + g)) ** (k + fewer))


def share_of_repetitions(p: AnyPmf, q: AnyPmf, most: Real = 1) -> list[Compared]:
    """P(R2 > 2 | x) / P(R1 > 2 | x) where the latter is not tiny: a search for where it comes nearest to `most`."""
    given = ((g, rank_of(rates(p, q, x))) for x, g in odds(p, q).items() if g > SEEN)
    return [at_most(sum(law[2:]) / (g / (1 + g)) ** 2, most) for g, law in given] or [at_most(0, most)]


def table(p: AnyPmf, q: AnyPmf, k: int, rho: Real) -> dict[str, Real]:
    """What every row of the order has to say, of a pair made for k-SEQ's rho; judged singly: token to greedy."""
    return {
        "optimal": optimum(p, q, k),
        "poisson": poisson(p, q, k),
        "race": distinct(p, q, k),
        "recursive": recursive(p, q, k),
        "recursive-distinct": recursive_distinct(p, q, k),
        "kseq": rho * one(p, q, rho),
        "gumbel-list": listed(p, q, k),
        "topk": top(p, q, k),
        "token": overlap(p, q),
        "block": overlap(p, q),
        "independent": independent(p, q),
        "argmax": p[first(q)],
        "greedy": Fraction(int(first(p) == first(q))),
    }


def rows(p: AnyPmf, q: AnyPmf, k: int, rho: Real, *, more: int) -> Iterator[Compared]:
    """The library's order with `more` candidates: names, acceptances, gaps, and R4 above every row it limits."""
    order, expected = rule_order(floats(p), floats(q), k + more, rng=np.random.default_rng(0)), table(p, q, k, rho)
    yield equal(sum(row.rule == name for row, name in zip(order, expected, strict=True)), len(expected))
    for row, value in zip(order, expected.values(), strict=True):
        if row.acceptance is not None:
            yield computed(row.acceptance.best, value)
        if row.gap is not None:
            most = optimum(p, q, 1 if row.rule in SINGLE else k)
            yield computed(row.gap, most - value)
            if row.limited:
                yield at_most(value, most)


SINGLE = CHAINS.keys() - RANKED.keys()
"""Rules that judge one candidate."""


def at_least_once(m: Real) -> Real:
    """The chance that a Poisson number of mean m is not 0, summed over the number."""
    n = algebra().Symbol("n", integer=True, positive=True)
    return algebra().summation(exp(-m) * m**n / factorial(n), (n, 1, algebra().oo))


BELOW: tuple[Step, ...] = (
    BELOW_EVERY_CUT,
    ALL_INSIDE,
    in_words(
        "so it is enough that candidates are i.i.d. and the output law is p. R1: the sum over r of q A^(r-1)/(1+B)^r "
        "is q/(1+B-A) = p, since A - B = 1 - 1/c, c = p/q",
        lambda q, A, c: (q / (1 + (A - 1 + 1 / c) - A), q * c),
    ),
    valid(
        "R3: a round outputs min(p, q) and leaves (p - q)+, which the next ones share out: p in all",
        lambda p, q: equal(smaller(p, q) + positive_part(p - q), p),
    ),
    in_words(
        "R5: accepted f of x, F in all, else the recovery law (p - f)/(1 - F): p in all",
        lambda p, f, F: (f + (1 - F) * (p - f) / (1 - F), p),
    ),
    LOSSLESS,
)
"""R1, R3, R5 and R6 are rules of R4's class."""

DISTINCT_WASTE_NONE: tuple[Step, ...] = (
    WINNER,
    same(
        "give every token y a Poisson stream, whose arrivals over p_y and q_y are the races' clocks. Given the winner "
        "x and u, y comes n times before x is drafted, n Poisson of mean m = u l, l = (q_y p_x/q_x - p_y)+; at least "
        "once with 1 - e^(-u l), the event of R2",
        lambda m: (at_least_once(m), 1 - exp(-m)),
    ),
    same(
        "the n of all y add up to a Poisson number of mean u g, g the sum of the l; over u ~ Exp(1) it is r - 1 with "
        "g^(r-1)/(1+g)^r: it is R1 - 1, every repetition counted",
        lambda g, u, n: (
            integral(exp(-u) * exp(-u * g) * (u * g) ** n / factorial(n), u, 0, math.inf),
            g**n / (1 + g) ** (n + 1),
        ),
        integers=("n",),
    ),
    valid(
        "and R2 - 1 is the sum of min(n, 1): never more. R2 <= R1 in one experiment, given every output, for every k",
        lambda n, m: at_most(smaller(n, 1) + smaller(m, 1), n + m),
        lambda n, m: [n >= 0, m >= 0],
    ),
)
"""P(R2 <= k) >= P(R1 <= k)."""

BELOW_R4 = Claim("R1, R3 and R6 accept at most R4, k = 2", lambda p, q: under_the_optimum(p, q, 2, asked=2))

BELOW_ONE = Claim("they accept at most R4 of one candidate", lambda p, q: under_the_optimum(p, q, 2, asked=1))

KSEQ_BELOW = Claim("k-SEQ accepts at most R4", lambda p, q, k, rho: at_most(rho * one(p, q, rho), optimum(p, q, k)))

KSEQ_ABOVE = Claim("k-SEQ accepts at least R4", lambda p, q, k, rho: at_most(optimum(p, q, k), rho * one(p, q, rho)))

LIMITED = (
    (
        "the race over distinct tokens (R2) accepts at most R4",
        distinct,
        "with one candidate it does",
        lambda p, q, k: at_most(distinct(p, q, 1), optimum(p, q, 1)),
    ),
    (
        "recursive rejection with distinct candidates accepts at most R4",
        recursive_distinct,
        "with one candidate it does",
        lambda p, q, k: at_most(recursive_distinct(p, q, 1), optimum(p, q, 1)),
    ),
    (
        "the draft's k most probable tokens (R7) hold at most R4",
        top,
        "they hold at most what the target's own hold",
        lambda p, q, k: at_most(top(p, q, k), sum(sorted(p)[-k:])),
    ),
)
"""Rules of distinct tokens, and what limits them."""

R8 = Entry(
    id="R8",
    title="The order of the rules at equal k",
    kind="bounds",
    plain="at equal k the acceptances of R1, R3 (i.i.d. candidates), R5 and R6 are at most R4's; P(R2 <= k) >= "
    "P(R1 <= k), also given every output: distinct tokens waste no candidate",
    latex=r"\alpha_{R1}, \alpha_{R3}, \alpha_{R5}, \alpha_{R6} \le \alpha^*_k,\qquad "
    r"P(R_{R2} \le k \mid x) \ge P(R_{R1} \le k \mid x)",
    assumptions=("p and q are pmfs on one finite vocabulary", "R3 with i.i.d. candidates"),
    calculators=("spectheory.verification.rule_order", "spectheory.verification.RuleStanding"),
    evidence=(
        proof("the four rules are of the class that R4 limits, any k", BELOW),
        proof("the ranks of both races in one experiment, any k", DISTINCT_WASTE_NONE),
        exact(
            Claim("R1, R3 and R6 accept at most R4", lambda p, q, k: under_the_optimum(p, q, k, asked=k)),
            lambda effort: with_each(cases.all_pairs(3, effort.pick(4, 6)), k=(1, 2, 3)),
            over="k = 1, 2, 3, pairs on 2 and 3 tokens of denominator up to 4",
            wrong=Claim("than R4 of one less", lambda p, q, k: under_the_optimum(p, q, k, asked=max(1, k - 1))),
        ),
        exact(
            KSEQ_BELOW,
            lambda effort: roots(effort.pick(3, 6)),
            over="pairs on 2 and 3 tokens of rational rho, k = 1, 2, 3",
            wrong=KSEQ_ABOVE,
        ),
        exact(
            Claim("P(R2 > k) <= P(R1 > k), k = 1, 2, 3, in the mean and given every output", distinct_above),
            lambda effort: cases.all_pairs(3, effort.pick(5, 9)),
            over="pairs on 2 and 3 tokens of denominator up to 5",
            wrong=Claim(
                "R2 needs one candidate fewer: P(R2 > k) <= P(R1 > k + 1)", lambda p, q: distinct_above(p, q, fewer=1)
            ),
        ),
        agreement(
            Claim(
                "acceptance and gap of every row of the library's order, and R4 above the rows it limits",
                lambda p, q, k, rho: rows(p, q, k, rho, more=0),
            ),
            lambda effort: islice(roots(5), 0, None, effort.pick(37, 3)),
            over="pairs on 2 and 3 tokens of rational rho, k = 1, 2, 3",
            wrong=Claim("with one candidate more", lambda p, q, k, rho: rows(p, q, k, rho, more=1)),
        ),
        searched(BELOW_R4, lambda: exact_pairs(4), over="2 to 4 tokens", spaces=(pair_space(2),), wrong=BELOW_ONE),
        searched(KSEQ_BELOW, drawn_roots, spaces=(root_space(3, 2),), wrong=KSEQ_ABOVE),
        searched(
            Claim("P(R2 > 2 | x) is at most P(R1 > 2 | x)", share_of_repetitions),
            lambda: exact_pairs(6),
            over="2 to 6 tokens",
            spaces=(pair_space(4),),
            wrong=Claim("it is at most half of it", lambda p, q: share_of_repetitions(p, q, Fraction(1, 2))),
        ),
    ),
)

R8_DISTINCT = Entry(
    id="R8/distinct",
    title="R4 as a limit of distinct candidates",
    kind="refuted",
    plain="R2 accepts at most R4 at equal k; so do R3 with distinct candidates and R7",
    latex=r"P(R_{R2} \le k) \le \alpha^*_k",
    assumptions=("p and q are pmfs on one finite vocabulary",),
    evidence=tuple(
        counterexample(
            Claim(false, lambda p, q, k, rule=rule: at_most(rule(p, q, k), optimum(p, q, k))),
            lambda effort: with_each(cases.all_pairs(2, 5), k=(1, 2)),
            over="first among the pairs on 2 tokens by their denominator, then k",
            true=Claim(says, holds),
        )
        for false, rule, says, holds in LIMITED
    ),
)
