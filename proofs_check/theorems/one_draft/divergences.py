"""D1: the sums that separate two pmfs, their signs and their order."""

from __future__ import annotations

import spectheory
from proofs_check.forms.divergences import (
    Order,
    entropy,
    g,
    kl,
    moment,
    overlap,
    renyi,
    second_moment,
    similarity,
    total_variation,
)
from proofs_check.prelude import *
from proofs_check.proofs.divergence_proofs import BRETAGNOLLE_HUBER, CHI_SQUARE, ENTROPY, LOGARITHM, PINSKER, RENYI
from spectheory import harmonic_mean_distance, harmonic_mean_similarity, hockey_stick, kl_divergence
from spectheory.divergences import hockey_stick_at_ratios

ORDERS: tuple[Order, ...] = ((1, 4), (1, 2), (9, 10), (1, 1), (11, 10), (2, 1), (5, 2), (1, 0))

COVERED = Assumption(
    "the draft has every token of the target",
    lambda p, q: every(not is_zero(b) or is_zero(a) for a, b in zip(p, q, strict=True)),
)


def bounds(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """Signs and order of the divergences, with the inequalities of Pinsker and of Bretagnolle and Huber."""
    divergence, h, tv = kl(p, q), entropy(p), total_variation(p, q)
    yield at_least(divergence, 0)
    yield at_most(2 * tv * tv, divergence)
    yield at_most(tv * tv, 1 - exp(-divergence))
    yield at_most(divergence, log(moment(p, q, 2)))
    yield at_least(h, 0)
    yield at_most(h, log(len(p) + 0 * p[0]))
    yield at_most(h * h, second_moment(p))


def sums(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """What holds without a logarithm: other forms of TV and of chi-square, and the whole orders of Rényi."""
    pairs = list(zip(p, q, strict=True))
    tv, second, third = total_variation(p, q), moment(p, q, 2), moment(p, q, 3)
    yield equal(tv, sum(positive_part(a - b) for a, b in pairs))
    yield equal(tv, 1 - overlap(p, q))
    yield equal(tv, max(sum(a - b for i, (a, b) in enumerate(pairs) if e >> i & 1) for e in range(2 ** len(p))))
    yield equal(second - 1, sum((a - b) * (a - b) / b for a, b in pairs if not is_zero(b)))
    yield at_most(4 * tv * tv, second - 1)
    yield at_most(second * second, third)
    yield at_most(third**3, moment(p, q, 4) ** 2)


def divergence_library(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The library's calculators against the sums."""
    target, draft = floats(p), floats(q)
    h, divergence = entropy(p), kl(p, q)
    yield computed(spectheory.total_variation(target, draft), total_variation(p, q))
    yield computed(spectheory.kl_divergence(target, draft), divergence)
    yield computed(spectheory.chi_square(target, draft), moment(p, q, 2) - 1)
    yield computed(spectheory.entropy(target), h)
    yield computed(spectheory.second_log_moment(target), second_moment(p))
    for n, m in ORDERS:
        yield computed(spectheory.renyi_divergence(target, draft, n / m if m else math.inf), renyi(p, q, (n, m)))
    with np.errstate(divide="ignore"):  # the logit of a token that is cut
        statistics = spectheory.pair_statistics(np.log(target), np.log(draft))
    yield computed(statistics.total_variation, total_variation(p, q))
    yield computed(statistics.kl, divergence)
    yield computed(statistics.target_entropy, h)
    yield computed(statistics.target_second_moment, second_moment(p))
    yield computed(statistics.cross_entropy, h + divergence)
    yield computed(statistics.harmonic_similarity, similarity(p, q))


def lacks(p: AnyPmf, q: AnyPmf) -> bool:
    """Whether q lacks a token of p."""
    return any(b == 0 < a for a, b in zip(p, q, strict=True))


def infinite(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """Where the library's divergences are infinite; Rényi below order 1 is so on disjoint supports alone."""
    target, draft, unreachable = floats(p), floats(q), lacks(p, q)
    disjoint = all(a * b == 0 for a, b in zip(p, q, strict=True))
    for value in (spectheory.kl_divergence(target, draft), spectheory.chi_square(target, draft)):
        yield equal(int(math.isinf(value)), int(unreachable))
    for n, m in ORDERS:
        value = spectheory.renyi_divergence(target, draft, n / m if m else math.inf)
        yield equal(int(math.isinf(value)), int(unreachable if n >= m else disjoint))


BOUNDS = Claim(
    "TV^2 <= KL/2 and 1 - e^-KL, 0 <= KL <= log(1 + chi-square), 0 <= H <= log V, H^2 <= M2", bounds, (COVERED,)
)

GROWS = Claim(
    "Rényi of orders 1/4, 1/2, 9/10, 1 (KL), 11/10, 2, 5/2, infinity does not fall",
    lambda p, q: [at_most(*both) for both in pairwise(renyi(p, q, order) for order in ORDERS)],
    (COVERED,),
)

LIBRARY = Claim("TV, KL, chi-square, H, M2, Rényi and pair_statistics are these sums", divergence_library, (COVERED,))

TOO_SHARP = Claim(
    "KL >= 2.1 TV^2",
    lambda p, q: at_most(21 * total_variation(p, q) * total_variation(p, q), 10 * kl(p, q)),
    (COVERED,),
)

EXCHANGED = Claim(
    "the library's KL has the draft before the target",
    lambda p, q: computed(kl_divergence(floats(q), floats(p)), kl(p, q)),
    (COVERED, Assumption("the target has every token of the draft", lambda p, q: COVERED.met(q, p))),
)


# D2: the harmonic-mean similarity and distance, between functions of the total variation.


def triangular(p: AnyPmf, q: AnyPmf) -> Real:
    """Half the triangular discrimination: half the sum of (p - q)^2/(p + q)."""
    pairs = ((a, b) for a, b in zip(p, q, strict=True) if not (is_zero(a) and is_zero(b)))
    return sum((a - b) * (a - b) / (a + b) for a, b in pairs) / 2


def between(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The similarity between two functions of TV."""
    tv = total_variation(p, q)
    yield at_least(similarity(p, q), 1 - tv)
    yield at_most(similarity(p, q), 1 - tv * tv)


HARMONIC_TERMS: tuple[Step, ...] = (
    same(
        "(p + q)/2 - 2pq/(p + q) = (p - q)^2/(2(p + q)); the first sums to 1: 1 - S = sum (p-q)^2/(p+q)/2",
        lambda p, q: ((p + q) / 2 - 2 * p * q / (p + q), (p - q) * (p - q) / (2 * (p + q))),
    ),
    valid(
        "min(p, q) <= 2pq/(p + q): 1 - TV <= S, as min(p, q) = (p + q - |p - q|)/2 sums to 1 - TV",
        lambda p, q: [at_most(smaller(p, q), 2 * p * q / (p + q)), equal(smaller(p, q), (p + q - absolute(p - q)) / 2)],
        lambda p, q: [p >= 0, q >= 0, p + q > 0],
    ),
    valid(
        "d^2/m >= 2td - t^2 m with d = |p - q|, m = p + q",
        lambda d, m, t: at_most(2 * t * d - t * t * m, d * d / m),
        lambda d, m, t: [m > 0],
    ),
    in_words(
        "summed at t = TV, as d sums to 2TV and m to 2, and halved: 1 - S >= (2TV(2TV) - 2TV^2)/2 = TV^2",
        lambda T: ((2 * T * (2 * T) - 2 * T * T) / 2, T * T),
    ),
)

BETWEEN = Claim("1 - TV <= S <= 1 - TV^2", between)

SQUARED = Claim("S <= (1 - TV^2)^2", lambda p, q: at_most(similarity(p, q), (1 - total_variation(p, q) ** 2) ** 2))


# D3: the hockey stick g(c) = sum (c q - p)+, its shape as a function of c, and all its values by one sort.


WEIGHTS = tuple(Fraction(n, 3) for n in (0, 1, 2, 3, 5, 24))
"""Values of c, on both sides of 1."""

ORDERED = Assumption("0 <= a <= b and 0 <= s <= 1", lambda p, q, a, b, s: every((a >= 0, a <= b, s >= 0, s <= 1)))


def _drawn(q: AnyPmf) -> list[int]:
    return [x for x in range(len(q)) if not is_zero(q[x])]


def by_one_sort(p: AnyPmf, q: AnyPmf) -> dict[int, Real]:
    """All g(p_x/q_x), x where q_x > 0: one sort by the ratio; g = ratio * (draft mass) - (target mass) so far."""
    return _prefix_sums(p, q, sorted(_drawn(q), key=lambda x: p[x] / q[x]))


def _prefix_sums(p: AnyPmf, q: AnyPmf, order: Sequence[int]) -> dict[int, Real]:
    sum_at, target, draft = {}, 0 * p[0], 0 * p[0]
    for x in order:
        target, draft = target + p[x], draft + q[x]
        sum_at[x] = p[x] / q[x] * draft - target
    return sum_at


def shape(p: AnyPmf, q: AnyPmf, a: Real, b: Real, s: Real) -> Iterator[Compared]:
    """Ends, growth and convexity of g between two values a <= b, s the share of b in a point between."""
    at_a, at_b = g(p, q, a), g(p, q, b)
    yield at_least(at_a, positive_part(a - 1))
    yield at_most(at_a, a)
    yield at_most(at_a, at_b)
    yield at_most(at_b - at_a, b - a)
    yield at_most(g(p, q, (1 - s) * a + s * b), (1 - s) * at_a + s * at_b)


def sticks(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """What g equals: TV at 1, the reversed stick less c - 1, and the values of one sort."""
    yield equal(g(p, q, 1), total_variation(p, q))
    for c in WEIGHTS:
        yield equal(g(p, q, c), sum(larger(c * b, a) for a, b in zip(p, q, strict=True)) - 1)
        yield equal(g(p, q, c), sum(positive_part(a - c * b) for a, b in zip(p, q, strict=True)) + c - 1)
    yield equal(by_one_sort(p, q), {x: g(p, q, p[x] / q[x]) for x in _drawn(q)})


def library_stick(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The library's value at a weight, and its values at all ratios."""
    target, draft = floats(p), floats(q)
    for c in WEIGHTS:
        yield computed(hockey_stick(target, draft, float(c)), g(p, q, c))
    swept = hockey_stick_at_ratios(target, draft, np)
    for x in _drawn(q):
        yield computed(swept[x], g(p, q, p[x] / q[x]))


def weighed(effort: Effort) -> Iterator[dict[str, Any]]:
    """Every pair on 2 and 3 tokens of denominator up to 4, between its ratios, 0, 2/3, 1 and 3."""
    for pair in cases.all_pairs(3, effort.pick(4, 6)):
        ratios = {a / b for a, b in zip(pair["p"], pair["q"], strict=True) if b > 0}
        points = sorted({Fraction(0), Fraction(2, 3), Fraction(1), Fraction(3), *ratios})
        for a, b in pairwise(points):
            yield {**pair, "a": a, "b": b, "s": Fraction(1, 3)}
        yield {**pair, "a": points[0], "b": points[-1], "s": Fraction(1, 2)}


def weighed_pairs() -> Any:
    """2 to 5 tokens."""
    weights = st.one_of(st.fractions(0, 4, max_denominator=50), st.integers(0, 10**9).map(Fraction))
    share = st.fractions(0, 1, max_denominator=50)
    return st.tuples(exact_pairs(), weights, weights, share).map(
        lambda values: {**values[0], "a": min(values[1:3]), "b": max(values[1:3]), "s": values[3]}
    )


def weighed_space(tokens: int) -> Space:
    """The optimiser's walk over pairs and two values of c up to a few hundred."""
    pair = pair_space(tokens)

    def weights(x: NDArray[np.float64]) -> Case:
        a, b = sorted(float(value) for value in np.exp(np.clip(x[-3:-1], -30, 6)))
        return {**pair.weights(x[:-3]), "a": a, "b": b, "s": float(1 / (1 + np.exp(-np.clip(x[-1], -30, 30))))}

    return Space(pair.dimension + 3, weights)


STICK_TERMS: tuple[Step, ...] = (
    valid(
        "0 <= (cq - p)+ <= cq: 0 <= g(c) <= c",
        lambda c, p, q: [at_least(positive_part(c * q - p), 0), at_most(positive_part(c * q - p), c * q)],
        lambda c, p, q: [c >= 0, p >= 0, q >= 0],
    ),
    valid(
        "(cq - p)+ = cq - p + (p - cq)+: g(c) = c - 1 + sum (p - cq)+ >= c - 1, and p + (cq - p)+ = max(p, cq)",
        lambda p, r: [
            equal(positive_part(r - p), r - p + positive_part(p - r)),
            equal(p + positive_part(r - p), larger(p, r)),
        ],
    ),
    valid(
        "(q - p)+ = (|p - q| + q - p)/2: g(1) = TV",
        lambda p, q: equal(positive_part(q - p), (larger(p - q, q - p) + q - p) / 2),
    ),
    valid(
        "for a <= b, 0 <= (bq - p)+ - (aq - p)+ <= (b - a)q: g does not fall, and grows by b - a at most",
        lambda r, R, p: [
            at_most(positive_part(r - p), positive_part(R - p)),
            at_most(positive_part(R - p) - positive_part(r - p), R - r),
        ],
        lambda r, R, p: [r <= R],
    ),
    same(
        "cq - p at c = (1-s)a + sb is the same mixture of its values at a and b",
        lambda a, b, s, p, q: (((1 - s) * a + s * b) * q - p, (1 - s) * (a * q - p) + s * (b * q - p)),
    ),
    valid(
        "and ((1-s)x + sy)+ <= (1-s)x+ + sy+: g is convex",
        lambda x, y, s: at_most(positive_part((1 - s) * x + s * y), (1 - s) * positive_part(x) + s * positive_part(y)),
        lambda x, y, s: [s >= 0, s <= 1],
    ),
    valid(
        "where p/q <= c, (cq - p)+ is cq - p",
        lambda p, q, c: equal(positive_part(c * q - p), c * q - p),
        lambda p, q, c: [q > 0, p / q <= c],
    ),
    valid(
        "where p/q >= c it is 0, both at p/q = c: with Q and P the masses of the tokens before c in the order of p/q, "
        "ties with c in or out, g(c) = cQ - P; at c = p_x/q_x these are prefix sums up to x or any token tied with it",
        lambda p, q, c: equal(positive_part(c * q - p), 0),
        lambda p, q, c: [q > 0, p / q >= c],
    ),
)

SHAPE = Claim("(c-1)+ <= g(c) <= c; g does not fall, has slope at most 1 and is convex", shape, (ORDERED,))

LINEAR = Claim("g(c) <= c TV", lambda p, q, a, b, s: at_most(g(p, q, b), b * total_variation(p, q)), (ORDERED,))

HALF_SLOPE = Claim(
    "g has slope at most 1/2", lambda p, q, a, b, s: at_most(2 * (g(p, q, b) - g(p, q, a)), b - a), (ORDERED,)
)

D1 = Entry(
    id="D1",
    title="Divergences and moments of a pair of pmfs",
    kind="bounds",
    plain="TV = sum|p-q|/2 = sum (p-q)+; KL = sum p log(p/q) with 2TV^2 <= KL <= log(1 + chi-square) and TV^2 <= 1 "
    "- e^-KL; chi-square = sum p^2/q - 1; 0 <= H <= log V; M2 = sum p log^2 p >= H^2; Rényi is nondecreasing in "
    "its order, and KL at order 1",
    latex=r"TV = \tfrac12\sum|p-q|,\quad 2\,TV^2 \le KL = \sum p\log\frac{p}{q} = D_1 \le D_2 = \log(1+\chi^2),\quad "
    r"TV^2 \le 1 - e^{-KL},\quad \chi^2 = \sum\frac{p^2}{q}-1,\quad D_a = \frac{1}{a-1}\log\sum p^a q^{1-a} \text{ "
    r"nondecreasing in } a,\quad 0 \le H \le \log V,\quad M_2 = \sum p\log^2 p \ge H^2",
    assumptions=(
        "p and q are pmfs on one finite vocabulary of V tokens",
        "where q = 0 < p, KL, chi-square and Rényi of order 1 and more are infinite",
    ),
    calculators=(
        "spectheory.total_variation",
        "spectheory.kl_divergence",
        "spectheory.entropy",
        "spectheory.second_log_moment",
        "spectheory.renyi_divergence",
        "spectheory.chi_square",
        "spectheory.pair_statistics",
    ),
    evidence=(
        proof("from log x <= x - 1: KL >= 0, 0 <= H <= log V, H^2 <= M2", LOGARITHM + ENTROPY),
        proof("Pinsker, from the Taylor remainder of x log x", PINSKER),
        proof(
            "Rényi does not fall with its order, as its slope is a KL over t^2; so KL is at most that of order 2, "
            "and TV^2 <= 1 - e^-KL by that of order 1/2",
            LOGARITHM + RENYI + CHI_SQUARE + BRETAGNOLLE_HUBER,
        ),
        exact(
            Claim(
                "TV = sum (p-q)+ = 1 - sum min(p, q) = max of p(E) - q(E); chi-square = sum (p-q)^2/q >= 4TV^2; the "
                "sums of order 2, 3, 4 satisfy m2^2 <= m3, m3^3 <= m4^2",
                sums,
                (COVERED,),
            ),
            every_pair(7, 10),
            wrong=Claim(
                "chi-square >= 8TV^2",
                lambda p, q: at_most(8 * total_variation(p, q) ** 2, moment(p, q, 2) - 1),
                (COVERED,),
            ),
        ),
        exact(
            Claim("the library is infinite exactly where the draft lacks a token of the target", infinite),
            every_pair(3, 6),
            wrong=Claim(
                "KL is infinite where the target lacks a token of the draft",
                lambda p, q: equal(int(math.isinf(kl_divergence(floats(p), floats(q)))), int(lacks(q, p))),
            ),
        ),
        certified(
            BOUNDS,
            every_pair(5, 8),
            wrong=Claim(
                "KL <= log(1 + chi-square/2)",
                lambda p, q: at_most(kl(p, q), log((1 + moment(p, q, 2)) / 2)),
                (COVERED,),
            ),
        ),
        certified(
            GROWS,
            every_pair(4, 7),
            wrong=Claim(
                "Rényi of order 2 is at most KL", lambda p, q: at_most(renyi(p, q, (2, 1)), kl(p, q)), (COVERED,)
            ),
        ),
        agreement(LIBRARY, every_pair(4, 4, others=(40, 400, 6)), wrong=EXCHANGED),
        searched(BOUNDS, exact_pairs, over="2 to 5 tokens", spaces=(pair_space(2),), wrong=TOO_SHARP),
        searched(
            GROWS,
            exact_pairs,
            over="2 to 5 tokens",
            spaces=(pair_space(2),),
            wrong=Claim(
                "Rényi of order 2 is at least 1.2 KL",
                lambda p, q: at_most(6 * kl(p, q), 5 * renyi(p, q, (2, 1))),
                (COVERED,),
            ),
        ),
        searched(LIBRARY, exact_pairs, over="2 to 5 tokens, ratios up to 1e30", wrong=EXCHANGED),
    ),
)

D2 = Entry(
    id="D2",
    title="Harmonic-mean similarity and distance",
    kind="bounds",
    plain="S = sum 2pq/(p+q), 1 - S = sum (p-q)^2/(p+q)/2, half the triangular discrimination; 1 - TV <= S <= 1 - TV^2",
    latex=r"S = \sum\frac{2pq}{p+q},\quad D_{HM} = 1 - S = \tfrac12\sum\frac{(p-q)^2}{p+q},\quad "
    r"TV^2 \le D_{HM} \le TV",
    assumptions=("p and q are pmfs on one finite vocabulary", "a token with p = q = 0 adds nothing"),
    calculators=("spectheory.harmonic_mean_similarity", "spectheory.harmonic_mean_distance"),
    evidence=(
        proof("term by term, for any number of tokens", HARMONIC_TERMS),
        solved(
            Claim(BETWEEN.says, between, (POSITIVE,)),
            (2,),
            wrong=Claim("S <= 1 - TV", lambda p, q: at_most(similarity(p, q), 1 - total_variation(p, q)), (POSITIVE,)),
        ),
        exact(
            Claim(
                "1 - S = sum (p-q)^2/(p+q)/2, and S has no side",
                lambda p, q: equal((1 - similarity(p, q), similarity(p, q)), (triangular(p, q), similarity(q, p))),
            ),
            every_pair(7, 10),
            wrong=Claim(
                "1 - S = sum (p-q)^2/(p+q), the normalisation without the half",
                lambda p, q: equal(1 - similarity(p, q), 2 * triangular(p, q)),
            ),
        ),
        exact(BETWEEN, every_pair(7, 10), wrong=SQUARED),
        agreement(
            Claim(
                "the library's similarity and distance",
                lambda p, q: (
                    computed(harmonic_mean_similarity(floats(p), floats(q)), similarity(p, q)),
                    computed(harmonic_mean_distance(floats(p), floats(q)), triangular(p, q)),
                ),
            ),
            every_pair(5, 5, others=(200, 2000, 8)),
            wrong=Claim(
                "the library's distance is the whole triangular discrimination",
                lambda p, q: computed(harmonic_mean_distance(floats(p), floats(q)), 2 * triangular(p, q)),
            ),
        ),
        searched(BETWEEN, exact_pairs, over="2 to 5 tokens", spaces=(pair_space(2), pair_space(3)), wrong=SQUARED),
    ),
)

D3 = Entry(
    id="D3",
    title="The hockey stick",
    kind="bounds",
    plain="g(c) = sum (c q - p)+ = sum max(p, c q) - 1: (c-1)+ <= g(c) <= c, g(1) = TV, convex, nondecreasing, of "
    "slope at most 1; all g(p_x/q_x) by one sort",
    latex=r"g(c) = \sum_y (c\,q_y - p_y)_+,\quad (c-1)_+ \le g(c) \le c,\quad g(1) = TV,\quad "
    r"0 \le g(b) - g(a) \le b - a \ (a \le b),\quad g \text{ convex},\quad "
    r"g(p_x/q_x) = \tfrac{p_x}{q_x} \sum_{y: r_y \le r_x} q_y - \sum_{y: r_y \le r_x} p_y,\ r = p/q",
    assumptions=("p and q are pmfs on one finite vocabulary", "c is finite and not negative"),
    calculators=("spectheory.hockey_stick",),
    evidence=(
        proof("term by term, for any number of tokens", STICK_TERMS),
        exact(
            Claim("g(1) = TV; g(c) = sum max(p, cq) - 1 = sum (p - cq)+ + c - 1; every g(p/q) by one sort", sticks),
            cases.every_pair(6, 10),
            wrong=Claim(
                "prefix sums without the sort give every g(p/q)",
                lambda p, q: equal(_prefix_sums(p, q, _drawn(q)), {x: g(p, q, p[x] / q[x]) for x in _drawn(q)}),
            ),
        ),
        exact(SHAPE, weighed, wrong=LINEAR),
        agreement(
            Claim("the library's value at a weight, and its values at all ratios by one sort", library_stick),
            cases.every_pair(5, 5, others=(200, 2000, 8)),
            wrong=Claim(
                "the library's weight is on the target",
                lambda p, q: computed(hockey_stick(floats(p), floats(q), 2.0), g(q, p, 2)),
            ),
        ),
        searched(SHAPE, weighed_pairs, spaces=(weighed_space(2),), wrong=HALF_SLOPE),
    ),
)
