"""R5: k-SEQ at the scale at which what one candidate's k trials accept is what the target has to give."""

from __future__ import annotations

from proofs_check.algorithms import rank_laws
from proofs_check.forms.divergences import overlap
from proofs_check.forms.kseq_cases import any_of, drawn_roots, one, root_space, roots
from proofs_check.prelude import *
from proofs_check.statement import calculus
from proofs_check.theorems.candidates.rank_rules import CONVEX
from proofs_check.twins.list_transport import optimum
from spectheory.verification import KSeq


def share(k: int) -> Fraction:
    """1 - (1 - 1/k)^k, what is left of R4 at least."""
    return Fraction(any_of(Fraction(1, k), k))


def recovers(p: Sequence[Fraction], q: Sequence[Fraction], k: int, rho: Fraction) -> int:
    """1 if the algorithm at this rho has a recovery law, else 0."""
    try:
        rank_laws.k_seq(tuple(p), tuple(q), k, rho)
    except ValueError:
        return 0
    return 1


def algorithm(p: AnyPmf, q: AnyPmf, k: int, rho: Real, *, scale: int) -> Iterator[Compared]:
    """Every list and every coin, against the formulas; the output given x is accepted with min(1, scale rho q/p)."""
    joint = rank_laws.k_seq(tuple(p), tuple(q), k, rho)
    beta = one(p, q, rho)
    yield equal(rank_laws.output_law(joint, len(p)), tuple(p))
    yield equal(tuple(rank_laws.rank_law(joint, k)), tuple(beta * (1 - beta) ** (r - 1) for r in range(1, k + 1)))
    accepted = tuple(sum(joint.get((r, x), Fraction(0)) for r in range(1, k + 1)) for x in range(len(p)))
    yield equal(accepted, tuple(smaller(a, scale * rho * b) for a, b in zip(p, q, strict=True)))
    yield equal((sum(accepted),) * 2, (any_of(beta, k), rho * beta))


def best_scale(p: AnyPmf, q: AnyPmf, k: int, rho: Real, *, below: Fraction) -> Iterator[Compared]:
    """What other scales give; `below` 1 of the way to rho a scale has no recovery law but if it changes nothing."""
    value = any_of(one(p, q, rho), k)
    yield at_least(rho, 1)
    yield at_most(rho, k)
    for other in (Fraction(1), (1 + rho) / 2, (rho + k) / 2, Fraction(k), 2 * Fraction(k)):
        beta = one(p, q, other)
        yield at_most(smaller(any_of(beta, k), other * beta), value)
    if rho > 1:
        same_rule = all(is_zero(a) or a >= rho * b for a, b in zip(p, q, strict=True))
        yield equal(recovers(p, q, k, 1 + below * (rho - 1)), int(same_rule))


def kseq_library(p: AnyPmf, q: AnyPmf, k: int, rho: Real, *, more: int) -> Iterator[Compared]:
    """The library's k-SEQ with `more` candidates than the pair was made for."""
    rule, pair, beta = KSeq(), (floats(p), floats(q)), one(p, q, rho)
    yield computed(rule.acceptance(*pair, k + more), any_of(beta, k))
    yield computed(rule.rho(*pair, k + more), rho)
    for rank, value in enumerate(rule.rank_pmf(*pair, k + more)):
        yield computed(value, beta * (1 - beta) ** rank)
    for a, b, value in zip(p, q, rule.acceptance_given(*pair, k + more), strict=True):
        if not is_zero(a):
            yield computed(value, smaller(1, rho * b / a))


def first_candidate(p: AnyPmf, q: AnyPmf, k: int, low: Fraction, high: Fraction) -> Iterator[Compared]:
    """P(R = 1) = beta(rho) is in [low, high]: rho is where 1 - (1 - beta)^k passes rho beta, beta falls there."""
    left, right = Fraction(1), Fraction(k)
    for _ in range(20):
        middle = (left + right) / 2
        beta = one(p, q, middle)
        left, right = (middle, right) if any_of(beta, k) > middle * beta else (left, middle)
    yield at_least(one(p, q, right), low)
    yield at_most(one(p, q, left), high)


def same_ranks(p: AnyPmf, q: AnyPmf) -> Compared:
    """P(R = 1), P(R = 2) of recursive rejection do not depend on whether there is a third candidate."""
    laws = (rank_laws.recursive_rejection(tuple(p), tuple(q), k, replacement=True) for k in (2, 3))
    left, right = (tuple(rank_laws.rank_law(law, 2)) for law in laws)
    return equal(left, right)


LOSSLESS: tuple[Step, ...] = (
    valid(
        "a candidate is x and accepted with probability q min(1, p/(rho q)) = min(q, p/rho); summed, beta",
        lambda p, q, rho: equal(q * smaller(1, p / (rho * q)), smaller(q, p / rho)),
        lambda p, q, rho: [p >= 0, q > 0, rho >= 1],
    ),
    same(
        "the r-th is the first accepted one with (1-beta)^(r-1) beta; over k of them 1 - z, z = (1-beta)^k, by "
        "induction: (1 - z) + beta z = 1 - z (1-beta). So x is accepted with min(q, p/rho) (1 - z)/beta",
        lambda z, b: ((1 - z) + b * z, 1 - z * (1 - b)),
    ),
    valid(
        "if v = 1 - z <= rho beta no token is accepted more often than p has it, and the rest is a recovery law",
        lambda p, q, rho, b, v: at_most(smaller(q, p / rho) * v / b, p),
        lambda p, q, rho, b, v: [p >= 0, q >= 0, rho >= 1, b > 0, v >= 0, v <= rho * b],
    ),
    valid(
        "if v > rho beta, a token that the draft has in excess, 0 < p <= rho q, is accepted too often: there is none",
        lambda p, q, rho, b, v: at_most(p, 0),  # as the recovery law would have it: accepted at most as often as p
        lambda p, q, rho, b, v: [p <= rho * q, rho >= 1, b > 0, v > rho * b, smaller(q, p / rho) * v / b <= p],
    ),
)
"""Which scales have a recovery law."""

BEST: tuple[Step, ...] = (
    valid(
        "as rho grows from r to s, min(q, p/rho) falls and rho min(q, p/rho) = min(rho q, p) grows: beta falls, "
        "rho beta grows",
        lambda p, q, r, s: (
            at_most(smaller(q, p / s), smaller(q, p / r)),
            equal(r * smaller(q, p / r), smaller(r * q, p)),
            at_most(smaller(r * q, p), smaller(s * q, p)),
        ),
        lambda p, q, r, s: [p >= 0, q >= 0, r >= 1, s >= r],
    ),
    valid(
        "and so v = 1 - (1-beta)^k falls: powers of the larger number are larger, factor by factor",
        lambda a, b, x, y: at_most(a * x, b * y),
        lambda a, b, x, y: [a >= 0, x >= 0, a <= b, x <= y],
    ),
    CONVEX,
    valid(
        "with Q = 1, h = -beta: z >= 1 - k beta, so v <= rho beta at rho = k; z <= 1 - beta, so v >= rho beta at "
        "rho = 1. Both are continuous: they meet at a rho in [1, k]",
        lambda z, b, k: (at_most(1 - z, k * b), at_least(1 - z, b)),
        lambda z, b, k: [b >= 0, b <= 1, z >= 1 - k * b, z <= 1 - b],
    ),
    valid(
        "there min(v, rho beta) is largest, of smaller scales by the one, of larger ones by the other",
        lambda v, v1, w1, v2, w2: (at_most(smaller(v1, w1), v), at_most(smaller(v2, w2), v)),
        lambda v, v1, w1, v2, w2: [w1 <= v, v2 <= v],
    ),
    valid(
        "and given the output x, min(q, p/rho) v/(beta p) = min(1, rho q/p)",
        lambda p, q, rho, b, v: equal(smaller(q, p / rho) * v / (b * p), smaller(1, rho * q / p)),
        lambda p, q, rho, b, v: [p > 0, q >= 0, rho >= 1, b > 0, v == rho * b],
    ),
)
"""The scale where the two sides meet."""

A_SHARE_OF_R4: tuple[Step, ...] = (
    valid(
        "x is output and accepted with p at most, and with P(x is a candidate) = 1 - (1-q)^k <= k q at most; so R4 <= "
        "sum min(p, k q) = k beta(k) =: a, at rho = k",
        lambda p, q, k: equal(smaller(p, k * q), k * smaller(q, p / k)),
        lambda p, q, k: [p >= 0, q >= 0, k >= 1],
    ),
    same(
        "(1-a+ac)^k <= 1 - a + a c^k for a, c in [0, 1], by induction: with C = c^k the next right side exceeds this "
        "one times 1-a+ac by a (1-a) (1-c) (1-C) >= 0",
        lambda a, c, C: ((1 - a + a * c * C) - (1 - a + a * C) * (1 - a + a * c), a * (1 - a) * (1 - c) * (1 - C)),
    ),
    same(
        "with c = 1 - 1/k: 1 - a + ac = 1 - a/k = 1 - beta(k), so v at rho = k is at least a (1 - (1-1/k)^k), which is "
        "at least that share of R4. The rho of k-SEQ is no larger than k and its v no smaller",
        lambda a, k: (1 - a + a * (1 - 1 / k), 1 - a / k),
    ),
    same(
        "(1-1/k)^k grows with k: the tangent above, with k + 1 for k, Q = 1 - 1/k and Q + h = 1 - 1/(k+1), gives "
        "(1-1/(k+1))^(k+1) >= Q^k (Q + (k+1) h), where Q + (k+1) h = 1",
        lambda k: ((1 - 1 / k) + (k + 1) * ((1 - 1 / (k + 1)) - (1 - 1 / k)), 1),
    ),
    same(
        "to 1/e: the share is at least 1 - 1/e",
        lambda k: (calculus.limit((1 - 1 / k) ** k, k, math.inf), calculus.exp(-1)),
    ),
)
"""At least (1 - (1-1/k)^k) of R4, which is more than 1 - 1/e of it."""

THEORY_PAGE = [
    {
        "p": (7, 2, 1),
        "q": (2, 3, 5),
        "k": k,
        "low": Fraction(2 * digits - 1, 2000),
        "high": Fraction(2 * digits + 1, 2000),
    }
    for k, digits in ((1, 500), (2, 386), (3, 344))
]
"""P(R = 1) to three digits, of p = (.7, .2, .1), q = (.2, .3, .5)."""

OF_R4 = Claim(
    "k-SEQ accepts at least 1 - (1-1/k)^k of R4",
    lambda p, q, k, rho: at_most(share(k), rho * one(p, q, rho) / optimum(p, q, k)),
)

ALL_OF_R4 = Claim("k-SEQ accepts R4", lambda p, q, k, rho: at_most(1, rho * one(p, q, rho) / optimum(p, q, k)))

R5 = Entry(
    id="R5",
    title="k-SEQ",
    kind="identity",
    plain="k i.i.d. candidates, each accepted with probability min(1, p/(rho q)): with beta(rho) = sum min(q, p/rho) "
    "the largest lossless acceptance is 1 - (1-beta)^k = rho beta = max over rho of min(1 - (1-beta)^k, rho beta), at "
    "a rho in [1, k]; it is at least 1 - (1-1/k)^k >= 1 - 1/e of R4; given the output it is min(1, rho q/p)",
    latex=r"\alpha = 1-(1-\beta(\rho))^k = \rho\,\beta(\rho) \ge \big(1-(1-\tfrac1k)^k\big)\alpha^*_k, \quad "
    r"\beta(\rho) = \sum_x \min(q_x, p_x/\rho)",
    source=("sun2023spectr",),
    assumptions=("candidates are i.i.d. from the draft", "p and q are not disjoint: then nothing is accepted"),
    calculators=("spectheory.verification.KSeq",),
    evidence=(
        proof("which scales are lossless, for any number of tokens", LOSSLESS),
        proof("the best of them", BEST),
        proof("a share of R4", A_SHARE_OF_R4),
        exact(
            Claim(
                "output law p, ranks beta (1-beta)^(r-1), accepted given x min(1, rho q/p), in all 1 - (1-beta)^k",
                lambda p, q, k, rho: algorithm(p, q, k, rho, scale=1),
            ),
            lambda effort: roots(effort.pick(3, 6)),
            over="every list and coin, pairs on 2 and 3 tokens of rational rho, k = 1, 2, 3",
            wrong=Claim("twice the share", lambda p, q, k, rho: algorithm(p, q, k, rho, scale=2)),
        ),
        exact(
            Claim(
                "no scale gives more, and a smaller one has no recovery law unless its rule is the same",
                lambda p, q, k, rho: best_scale(p, q, k, rho, below=Fraction(99, 100)),
            ),
            lambda effort: roots(effort.pick(3, 6)),
            over="pairs on 2 and 3 tokens of rational rho, k = 1, 2, 3",
            wrong=Claim(
                "nor has a larger one", lambda p, q, k, rho: best_scale(p, q, k, rho, below=Fraction(101, 100))
            ),
        ),
        exact(
            Claim(
                "P(R = 1) is .5, .386, .344 for k = 1, 2, 3",
                lambda p, q, k, low, high: first_candidate(
                    [Fraction(w, 10) for w in p], [Fraction(w, 10) for w in q], k, low, high
                ),
            ),
            lambda effort: THEORY_PAGE,
            over="p = (.7, .2, .1), q = (.2, .3, .5)",
            wrong=Claim(
                "it is so with p and q exchanged",
                lambda p, q, k, low, high: first_candidate(
                    [Fraction(w, 10) for w in q], [Fraction(w, 10) for w in p], k, low, high
                ),
            ),
        ),
        certified(
            Claim("1 - 1/e <= 1 - (1-1/k)^k", lambda k: at_most(1 - exp(interval(Fraction(-1))), interval(share(k)))),
            lambda effort: all_of(k=range(1, effort.pick(100, 1000))),
            over="k below 100",
            wrong=Claim(
                "1 - 1/e <= 1 - (1-1/k)^(k-1)",
                lambda k: at_most(1 - exp(interval(Fraction(-1))), interval(any_of(Fraction(1, k), k - 1))),
            ),
        ),
        agreement(
            Claim(
                "the library's acceptance, rho, rank law and law given the output",
                lambda p, q, k, rho: kseq_library(p, q, k, rho, more=0),
            ),
            lambda effort: islice(roots(5), 0, None, effort.pick(29, 1)),
            over="pairs on 2 and 3 tokens of rational rho, k = 1, 2, 3",
            wrong=Claim("with one candidate more", lambda p, q, k, rho: kseq_library(p, q, k, rho, more=1)),
        ),
        searched(OF_R4, drawn_roots, spaces=(root_space(3, 2),), wrong=ALL_OF_R4),
        simulated(
            "the accepted candidate of three, and the output",
            at(("k-seq",), (TURNED, LACKING), k=3),
            stated("R5", "lossless"),
            wrong=("the ranks of recursive rejection (R3)", stated("R3", kind="recursive", max_rank=3)),
        ),
    ),
)

R5_PATHS = Entry(
    id="R5/paths",
    title="One rank law of k-SEQ for every k",
    kind="refuted",
    plain="the law of k-SEQ's rank does not depend on the number k of candidates, so that one pi can be used in S1-S3",
    latex=r"P_k(R = r) = P_{k'}(R = r),\quad r \le \min(k, k')",
    assumptions=("p and q are pmfs on one finite vocabulary",),
    evidence=(
        counterexample(
            Claim(
                "P(R = 1) of k-SEQ is the same with one candidate and with two",
                lambda p, q: equal(one(p, q, 2 - overlap(p, q)), overlap(p, q)),
            ),
            lambda effort: cases.all_pairs(2, 6),
            over="first among the pairs on 2 tokens by their denominator",
            true=Claim("P(R = 1), P(R = 2) of recursive rejection do not depend on a third candidate", same_ranks),
        ),
    ),
)
