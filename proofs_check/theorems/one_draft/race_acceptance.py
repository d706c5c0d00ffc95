"""A2: what the exponential race accepts, from its clocks; its joint law, and the certain ends around its value."""

from __future__ import annotations

from proofs_check.algorithms.enumeration import race_coupling
from proofs_check.forms.divergences import g, overlap, reciprocal, similarity
from proofs_check.forms.ranks import race
from proofs_check.prelude import *
from proofs_check.statement.calculus import exp, some_function
from simulations.counts import Share
from simulations.verdicts.predictions import Predicted, Side
from spectheory.verification import RaceVerification, TokenVerification, race_enclosure, race_inequalities

WIDTH = Fraction(1, 10**9)
"""Width of the enclosure in double precision."""

PARTS = 2048
"""Equal parts of a token where the large-vocabulary kernel is to run; a power of two divides doubles exactly."""


def given(p: AnyPmf, q: AnyPmf) -> dict[int, Real]:
    """Acceptance given the output, 1/(1 + g(p/q)), where the output occurs; 0 where the draft lacks it."""
    occurs = [x for x in range(len(p)) if not is_zero(p[x])]
    return {x: 0 if is_zero(q[x]) else 1 / (1 + g(p, q, p[x] / q[x])) for x in occurs}


def joint_law(p: Pmf, q: Pmf) -> Iterator[Compared]:
    """The two winners: each has its own law, and they agree as stated."""
    law, tokens = race_coupling(p, q), range(len(p))
    shares = given(p, q)
    yield equal([sum(share for (i, _), share in law.items() if i == x) for x in tokens], list(q))
    yield equal([sum(share for (_, j), share in law.items() if j == x) for x in tokens], list(p))
    yield equal({x: law.get((x, x), 0) / p[x] for x in shares}, shares)
    yield equal(sum(share for (i, j), share in law.items() if i == j), race(p, q))


def race_library(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The library's acceptance, and its law given the output."""
    target, draft = floats(p), floats(q)
    yield computed(RaceVerification().acceptance(target, draft), race(p, q))
    acceptance = RaceVerification().acceptance_given(target, draft)
    for x, share in given(p, q).items():
        yield computed(acceptance[x], share)


def enclosed(p: Pmf, q: Pmf, parts: int = 1) -> Iterator[Compared]:
    """The ends of the library around both forms of the value, each token split into equal parts of its ratio."""
    target, draft = floats(p), floats(q)
    enclosure = race_enclosure(np.repeat(target / parts, parts), np.repeat(draft / parts, parts))
    low, high = Fraction(enclosure.low), Fraction(enclosure.high)
    a, b = [Fraction(x) for x in target], [Fraction(x) for x in draft]
    for value in (race(a, b), sum(a[x] * share for x, share in given(a, b).items())):
        yield at_most(low, value)
        yield at_most(value, high)
    yield at_most(high - low, WIDTH)


def split_pairs(effort: Effort) -> Iterator[Case]:
    """Pairs for the enclosure: small ones, random ones, and the latter once more in parts."""
    yield from cases.all_pairs(3, effort.pick(5, 7))
    yield from cases.random_pairs(effort.seed, effort.pick(100, 1000), 8)
    yield from with_each(cases.random_pairs(effort.seed + 1, effort.pick(5, 50), 8), parts=(PARTS,))


def _slope_of_reciprocal(s: Real) -> tuple[Real, Real]:
    stick = some_function("g", s)
    return slope(-1 / (1 + stick), s), slope(stick, s) / (1 + stick) ** 2


def _slope_of_quotient(s: Real) -> tuple[Real, Real]:
    m = some_function("M", s)
    return slope(s / m, s), (m - s * slope(m, s)) / (m * m)


BOTH_WIN: tuple[Step, ...] = (
    valid(
        "x wins both races if E_y/p_y >= E_x/p_x and E_y/q_y >= E_x/q_x for every y: E_y >= E_x p_y/p_x and "
        "E_y >= E_x q_y/q_x, that is E_y >= E_x m_y with m_y = max(p_y/p_x, q_y/q_x)",
        lambda e, a, b: equal(larger(e * a, e * b), e * larger(a, b)),
        lambda e, a, b: [e >= 0],
    ),
    same(
        "a clock rings after s m with probability exp(-s m)",
        lambda s, m, u: (integral(exp(-u), u, s * m, math.inf), exp(-s * m)),
    ),
    same(
        "clocks are independent: with M the sum of m_y over y != x, the integral of exp(-s) exp(-sM) over the time s "
        "of E_x is 1/(1 + M); m_x = 1, so P(x wins both) = 1/sum_y m_y",
        lambda s, M: (integral(exp(-s) * exp(-s * M), s, 0, math.inf), 1 / (1 + M)),
    ),
    same(
        "with the target alone M = (1-p)/p: x wins the target race with probability p, as it should",
        lambda p: (1 / (1 + (1 - p) / p), p),
    ),
    valid(
        "p_x m_y = max(p_y, c q_y) = p_y + (c q_y - p_y)+ with c = p_x/q_x",
        lambda a, b, p, q: [
            equal(p * larger(a / p, b / q), larger(a, p / q * b)),
            equal(larger(a, p / q * b), a + positive_part(p / q * b - a)),
        ],
        lambda a, b, p, q: [a >= 0, b >= 0, p > 0, q > 0],
    ),
    in_words(
        "these sum to 1 + g(c), so P(x wins both) = p_x/(1 + g(c)), and over P(output = x) = p_x it is 1/(1 + g(c))",
        lambda p, g: (1 / ((1 + g) / p) / p, 1 / (1 + g)),
    ),
)

DIFFERENT_WINNERS: tuple[Step, ...] = (
    same(
        "the target race ends after u, won by j, with probability p_j exp(-u): clock j rings after u p_j, the others, "
        "each scaled by p, later",
        lambda u, p, s: (integral(exp(-s / p), s, u * p, math.inf), p * exp(-u)),
    ),
    same(
        "every other clock then is u p_y plus a fresh exponential; i rings at s u q_i, s > r_i = p_i/q_i, of density "
        "q_i u exp(-(s u q_i - u p_i)) in s, and y is later than s u q_y with probability exp(-u(s q_y - p_y)+), "
        "surely so for j if s < r_j, else never: over u, p_j exp(-u) q_i u exp(-u g(s)) gives p_j q_i/(1 + g(s))^2",
        lambda u, p, q, g: (integral(p * exp(-u) * q * u * exp(-u * g), u, 0, math.inf), p * q / (1 + g) ** 2),
    ),
    same(
        "g is linear between neighbouring ratios a and a + h, where the integral over s is h/((1+g(a))(1+g(a+h)))",
        lambda a, h, A, B, s: (integral(1 / (1 + A + B * (s - a)) ** 2, s, a, a + h), h / ((1 + A) * (1 + A + B * h))),
    ),
    same(
        "past the last ratio g has slope 1, and the integral to infinity is 1/(1 + g(a))",
        lambda h, A: (limit(h / ((1 + A) * (1 + A + h)), h, math.inf), 1 / (1 + A)),
    ),
    same(
        "output j: the q_i of r_i < s sum to g'(s), and g'/(1+g)^2 is the derivative of -1/(1+g): up to r_j the "
        "integral is 1 - 1/(1+g(r_j)), 1 if q_j = 0, and the diagonal p_j/(1+g(r_j)) completes it to p_j",
        _slope_of_reciprocal,
    ),
    valid(
        "draft i: with M(s) = 1 + g(s) = sum max(p, sq), a token of p/q < s adds nothing to M - sM', as its slope is q",
        lambda p, q, s: equal(larger(p, s * q) - s * q, 0),
        lambda p, q, s: [p >= 0, q > 0, s > 0, p / q < s],
    ),
    valid(
        "and one of p/q > s adds its p, as its slope is 0: M - sM' is the sum of p_j over r_j > s",
        lambda p, q, s: equal(larger(p, s * q) - s * 0, p),
        lambda p, q, s: [p >= 0, q > 0, s > 0, p / q > s],
    ),
    same("(M - sM')/M^2 is the derivative of s/M", _slope_of_quotient),
    same(
        "s/M = s/(s + p(outside supp q)) tends to 1: from r_i the integral is 1 - r_i/M(r_i), and the diagonal "
        "p_i/M(r_i) = q_i r_i/M(r_i) completes it to q_i",
        lambda s, o: (limit(s / (s + o), s, math.inf), 1),
    ),
)

JOINT = Claim(
    "the winners have laws q and p, and agree with probability p/(1+g) = 1/sum max, token by token", joint_law
)

LIBRARY = Claim("the library's acceptance, and that given the output", race_library)

SUM_FOR_MAX = Claim(
    "the winners agree with probability sum 1/(1/p + 1/q - 1)",
    lambda p, q: equal(sum(share for (i, j), share in race_coupling(p, q).items() if i == j), reciprocal(p, q)),
)


# A3: the bounds of the race's acceptance, each a chain of steps that hold term by term.


def chain(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """Every inequality of A3."""
    alpha, tv = race(p, q), 1 - overlap(p, q)
    yield at_most(similarity(p, q) / 2, reciprocal(p, q))
    yield at_most(reciprocal(p, q), alpha)
    yield at_most((1 - tv) / (1 + tv), alpha)
    yield at_most(alpha, 1 - tv)
    yield at_most(1 - tv, similarity(p, q))


def _positive_shares(*values: Real) -> list[Real]:
    """The conditions 0 < v <= 1."""
    return [*(value > 0 for value in values), *shares(*values)]


TERM_BY_TERM: tuple[Step, ...] = (
    valid(
        "pq/(p+q) <= 1/(1/p + 1/q - 1), a term of S/2 against a term of the second sum",
        lambda p, q: at_most(p * q / (p + q), 1 / (1 / p + 1 / q - 1)),
        lambda p, q: _positive_shares(p, q),
    ),
    valid(
        "max(a, b) <= a + b for y != x; at y = x the race's denominator has 1 = 1 + 1 - 1",
        lambda a, b: at_most(larger(a, b), a + b),
        lambda a, b: [a >= 0, b >= 0],
    ),
    valid(
        "so with s = sum over y != x of the maxima, s <= (1-p)/p + (1-q)/q, and 1/(1/p + 1/q - 1) <= 1/(1 + s)",
        lambda p, q, s: at_most(1 / (1 / p + 1 / q - 1), 1 / (1 + s)),
        lambda p, q, s: [*_positive_shares(p, q), s >= 0, s <= (1 - p) / p + (1 - q) / q],
    ),
    valid(
        "max(a/p, b/q) <= max(a, b)/min(p, q)",
        lambda a, b, p, q: at_most(larger(a / p, b / q), larger(a, b) / smaller(p, q)),
        lambda a, b, p, q: [a >= 0, b >= 0, *_positive_shares(p, q)],
    ),
    valid(
        "max(a, b) = (a + b + |a - b|)/2, so the maxima of p and q sum to 1 + TV and each term of the race is at least "
        "min(p, q)/(1 + TV): (1 - TV)/(1 + TV) <= race",
        lambda a, b: equal(larger(a, b), (a + b + absolute(a - b)) / 2),
    ),
    valid(
        "the race's denominator D is at least 1/p and at least 1/q, the sums of either side, so its term is at most "
        "min(p, q): race <= 1 - TV",
        lambda p, q, D: at_most(1 / D, smaller(p, q)),
        lambda p, q, D: [*_positive_shares(p, q), p * D >= 1, q * D >= 1],
    ),
    valid(
        "min(a, b) <= 2ab/(a + b): 1 - TV <= S",
        lambda a, b: at_most(smaller(a, b), 2 * a * b / (a + b)),
        lambda a, b: [a > 0, b > 0],
    ),
)
"""A3 for every number of tokens."""

BOUNDS = Claim("S/2 <= sum 1/(1/p+1/q-1) <= race and (1-TV)/(1+TV) <= race <= 1-TV <= S", chain)


def library_bounds(p: AnyPmf, q: AnyPmf) -> list[Compared]:
    """The library's five numbers."""
    numbers = race_inequalities(floats(p), floats(q))
    tv = 1 - overlap(p, q)
    stated = (similarity(p, q) / 2, reciprocal(p, q), (1 - tv) / (1 + tv), 1 - tv, similarity(p, q))
    return [computed(float(number), value + Fraction(0)) for number, value in zip(numbers, stated, strict=True)]


LOOK_ALIKE = Claim("S/(2-S) <= race", lambda p, q: at_most(similarity(p, q) / (2 - similarity(p, q)), race(p, q)))

HALF = Claim("S/2 <= race", lambda p, q: at_most(similarity(p, q) / 2, race(p, q)))

BETWEEN = (
    ("S/2 <= race", "half_similarity"),
    ("sum 1/(1/p + 1/q - 1) <= race", "reciprocals"),
    ("(1-TV)/(1+TV) <= race", "from_total_variation"),
    ("race <= 1-TV", "token"),
    ("race <= S", "similarity"),
)
"""The bounds by the library's names."""


def bounds(_: str, pair: Parameters) -> Iterator[Predicted]:
    """What A3 says of the share of races whose draft is the output."""
    numbers = race_inequalities(pair["target"], pair["draft"])
    for says, name in BETWEEN:
        side: Side = "upper bound" if says.startswith("race") else "lower bound"
        yield Predicted(says, "A3", Share("rank", 1), float(getattr(numbers, name)), side)


def look_alike(_: str, pair: Parameters) -> Iterator[Predicted]:
    """What the false bound says of it."""
    s = float(race_inequalities(pair["target"], pair["draft"]).similarity)
    yield Predicted(LOOK_ALIKE.says, "A3/look-alike", Share("rank", 1), s / (2 - s), "lower bound")


A2 = Entry(
    id="A2",
    title="Acceptance of the exponential race",
    kind="identity",
    plain="clocks E_y ~ Exp(1), draft argmin E/q, output argmin E/p: they agree with probability sum_x 1/sum_y "
    "max(p_y/p_x, q_y/q_x) = sum p_x/(1 + g(p_x/q_x)), given the output x with 1/(1 + g(p_x/q_x)); the draft has "
    "law q, the output p; race_enclosure gives a certain interval for the value",
    latex=r"\alpha_{race} = \sum_x \frac{1}{\sum_y \max(p_y/p_x, q_y/q_x)} = \sum_x \frac{p_x}{1+g(p_x/q_x)},\quad "
    r"a(x) = \frac{1}{1+g(p_x/q_x)},\quad "
    r"P(X=i, Y=j) = p_j q_i \int_{r_i}^{r_j} \frac{ds}{(1+g(s))^2}\ (r_i < r_j),\ r = p/q",
    source=("kobus2025",),
    assumptions=("both races read the same clocks", "q_x = 0 < p_x: never accepted", "given the output: p_x > 0"),
    calculators=("spectheory.verification.RaceVerification", "spectheory.verification.race_enclosure"),
    evidence=(
        proof("both races have one winner", BOTH_WIN),
        proof("the joint law of two different winners, and both marginals", DIFFERENT_WINNERS),
        exact(JOINT, cases.every_pair(6, 9), wrong=SUM_FOR_MAX),
        exact(
            Claim("the enclosure's ends contain both forms of the value, less than 1e-9 apart", enclosed),
            split_pairs,
            over=f"small and random pairs, and random ones of thousands of tokens, {PARTS} equal parts of each",
            wrong=Claim(
                "the enclosure contains 1 - TV",
                lambda p, q, parts=1: at_most(overlap(p, q), Fraction(race_enclosure(floats(p), floats(q)).high)),
            ),
        ),
        agreement(
            LIBRARY,
            cases.every_pair(5, 5, others=(200, 2000, 8)),
            wrong=Claim(
                "the library's acceptance is 1 - TV",
                lambda p, q: computed(RaceVerification().acceptance(floats(p), floats(q)), overlap(p, q)),
            ),
        ),
        searched(JOINT, exact_pairs, over="2 to 5 tokens", wrong=SUM_FOR_MAX),
        searched(
            LIBRARY,
            exact_pairs,
            over="2 to 5 tokens, ratios up to 1e30",
            wrong=Claim(
                "the library's acceptance is the sum of 1/(1/p + 1/q - 1)",
                lambda p, q: computed(RaceVerification().acceptance(floats(p), floats(q)), reciprocal(p, q)),
            ),
        ),
        simulated(
            "acceptance and output of races with a clock for every token, and of lazy ones, drafts that lack a "
            "token and p/q = 1e10 among the pairs",
            at(("race-dense", "race"), (TURNED, LACKING, RARE), max_rank=1),
            stated("A2", "lossless"),
            wrong=(
                "acceptance 1 - TV",
                instead(stated("A2"), lambda pair, _: TokenVerification().acceptance(pair["target"], pair["draft"])),
            ),
        ),
    ),
)

A3 = Entry(
    id="A3",
    title="Bounds of the race's acceptance",
    kind="bounds",
    plain="S/2 <= sum 1/(1/p + 1/q - 1) <= race; (1-TV)/(1+TV) <= race <= 1-TV <= S",
    latex=r"\tfrac12 S \le \sum_x \frac{1}{1/p_x+1/q_x-1} \le \alpha_{race},\quad "
    r"\frac{1-TV}{1+TV} \le \alpha_{race} \le 1-TV \le S",
    source=("kobus2025", "daliri2025"),
    number="Lemma 3.1",
    assumptions=("p and q are pmfs on one finite vocabulary",),
    calculators=("spectheory.verification.race_inequalities", "spectheory.verification.RaceInequalities"),
    evidence=(
        proof("term by term, for any number of tokens", TERM_BY_TERM),
        solved(
            Claim(HALF.says, HALF.holds, (POSITIVE,)), (2,), wrong=Claim(LOOK_ALIKE.says, LOOK_ALIKE.holds, (POSITIVE,))
        ),
        exact(BOUNDS, cases.every_pair(7, 10), wrong=LOOK_ALIKE),
        agreement(
            Claim("the library's five bounds", library_bounds),
            cases.every_pair(4, 6),
            wrong=Claim(
                "S in place of S/2",
                lambda p, q: computed(race_inequalities(floats(p), floats(q)).half_similarity, similarity(p, q)),
            ),
        ),
        searched(BOUNDS, exact_pairs, over="2 to 5 tokens", spaces=(pair_space(2), pair_space(3)), wrong=LOOK_ALIKE),
        simulated(
            "races with a clock for every token between the bounds",
            at(("race-dense",), (TURNED, LACKING, NEAR), max_rank=1),
            bounds,
            wrong=(LOOK_ALIKE.says, look_alike),
        ),
    ),
)

A3_LOOK_ALIKE = Entry(
    id="A3/look-alike",
    title="A false bound that resembles A3",
    kind="refuted",
    plain="S/(2-S) <= race",
    latex=r"\frac{S}{2-S} \le \alpha_{race}",
    assumptions=("p and q are pmfs on one finite vocabulary",),
    evidence=(
        counterexample(
            LOOK_ALIKE,
            lambda effort: cases.all_pairs(2, 6),
            over="first among the pairs on 2 tokens by their denominator",
            true=HALF,
        ),
    ),
)
