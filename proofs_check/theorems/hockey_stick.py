"""D3: the hockey stick g(c) = sum (c q - p)+, its shape as a function of c, and all its values by one sort."""

from __future__ import annotations

from proofs_check.forms.divergences import g, total_variation
from proofs_check.prelude import *
from spectheory import hockey_stick
from spectheory.divergences import hockey_stick_at_ratios

WEIGHTS = tuple(Fraction(n, 3) for n in (0, 1, 2, 3, 5, 24))
"""Values of c, on both sides of 1."""

ORDERED = Assumption("0 <= a <= b and 0 <= s <= 1", lambda p, q, a, b, s: every((a >= 0, a <= b, s >= 0, s <= 1)))


def by_one_sort(p: AnyPmf, q: AnyPmf) -> dict[int, Real]:
    """All g(p_x/q_x), x where q_x > 0: one sort by the ratio; g = ratio * (draft mass) - (target mass) so far."""
    return _prefix_sums(p, q, sorted(_drawn(q), key=lambda x: p[x] / q[x]))


def _drawn(q: AnyPmf) -> list[int]:
    return [x for x in range(len(q)) if not is_zero(q[x])]


def _prefix_sums(p: AnyPmf, q: AnyPmf, order: Sequence[int]) -> dict[int, Real]:
    found, target, draft = {}, 0 * p[0], 0 * p[0]
    for x in order:
        target, draft = target + p[x], draft + q[x]
        found[x] = p[x] / q[x] * draft - target
    return found


def shape(p: AnyPmf, q: AnyPmf, a: Real, b: Real, s: Real) -> Iterator[Compared]:
    """Ends, growth and convexity of g between two values a <= b, s the share of b in a point between."""
    at_a, at_b = g(p, q, a), g(p, q, b)
    yield at_least(at_a, positive_part(a - 1))
    yield at_most(at_a, a)
    yield at_most(at_a, at_b)
    yield at_most(at_b - at_a, b - a)
    yield at_most(g(p, q, (1 - s) * a + s * b), (1 - s) * at_a + s * at_b)


def forms(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """What g equals: TV at 1, the reversed stick less c - 1, and the values of one sort."""
    yield equal(g(p, q, 1), total_variation(p, q))
    for c in WEIGHTS:
        yield equal(g(p, q, c), sum(larger(c * b, a) for a, b in zip(p, q, strict=True)) - 1)
        yield equal(g(p, q, c), sum(positive_part(a - c * b) for a, b in zip(p, q, strict=True)) + c - 1)
    yield equal(by_one_sort(p, q), {x: g(p, q, p[x] / q[x]) for x in _drawn(q)})


def library(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The library's value at a weight, and its values at all ratios."""
    target, draft = floats(p), floats(q)
    for c in WEIGHTS:
        yield computed(hockey_stick(target, draft, float(c)), g(p, q, c))
    swept = hockey_stick_at_ratios(target, draft, np)
    for x in _drawn(q):
        yield computed(swept[x], g(p, q, p[x] / q[x]))


def weighed(effort: Effort) -> Iterator[dict[str, Any]]:
    """Every small pair with two values of c, its own ratios among them."""
    for pair in cases.all_pairs(3, effort.pick(4, 6)):
        own = {a / b for a, b in zip(pair["p"], pair["q"], strict=True) if b > 0}
        points = sorted({Fraction(0), Fraction(2, 3), Fraction(1), Fraction(3), *own})
        for a, b in pairwise(points):
            yield {**pair, "a": a, "b": b, "s": Fraction(1, 3)}
        yield {**pair, "a": points[0], "b": points[-1], "s": Fraction(1, 2)}


def weighed_pairs() -> Any:
    """Hypothesis: a pair, two values of c of any order of magnitude and a share."""
    from hypothesis import strategies as st

    weights = st.one_of(st.fractions(0, 4, max_denominator=50), st.integers(0, 10**9).map(Fraction))
    share = st.fractions(0, 1, max_denominator=50)
    return st.tuples(exact_pairs(), weights, weights, share).map(
        lambda drawn: {**drawn[0], "a": min(drawn[1:3]), "b": max(drawn[1:3]), "s": drawn[3]}
    )


def weighed_space(tokens: int) -> Space:
    """The optimiser's walk over pairs and two values of c up to a few hundred."""
    pair = pair_space(tokens)

    def rest(x: NDArray[np.float64]) -> dict[str, float]:
        a, b = sorted(float(value) for value in np.exp(np.clip(x[-3:-1], -30, 6)))
        return {"a": a, "b": b, "s": float(1 / (1 + np.exp(-np.clip(x[-1], -30, 30))))}

    def weights(x: NDArray[np.float64]) -> Mapping[str, Any]:
        return {**pair.weights(x[:-3]), **rest(x)}

    def case(x: NDArray[np.float64]) -> Mapping[str, Any]:
        return {**pair.case(x[:-3]), **{name: Fraction(value) for name, value in rest(x).items()}}

    return Space(pair.dimension + 3, weights, case)


TERM_BY_TERM: tuple[Step, ...] = (
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

ENTRIES = (
    Entry(
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
            proof("term by term, for any number of tokens", TERM_BY_TERM),
            exact(
                Claim("g(1) = TV; g(c) = sum max(p, cq) - 1 = sum (p - cq)+ + c - 1; every g(p/q) by one sort", forms),
                cases.every_pair(6, 10),
                wrong=Claim(
                    "prefix sums without the sort give every g(p/q)",
                    lambda p, q: equal(_prefix_sums(p, q, _drawn(q)), {x: g(p, q, p[x] / q[x]) for x in _drawn(q)}),
                ),
            ),
            exact(
                SHAPE,
                weighed,
                over="every pair on 2 and 3 tokens of denominator up to 4, between its ratios, 0, 2/3, 1 and 3",
                wrong=LINEAR,
            ),
            agreement(
                Claim("the library's value at a weight, and its values at all ratios by one sort", library),
                cases.every_pair(5, 5, others=(200, 2000, 8)),
                wrong=Claim(
                    "the library's weight is on the target",
                    lambda p, q: computed(hockey_stick(floats(p), floats(q), 2.0), g(q, p, 2)),
                ),
            ),
            searched(SHAPE, weighed_pairs, over="2 to 5 tokens", spaces=(weighed_space(2),), wrong=HALF_SLOPE),
        ),
    ),
)
