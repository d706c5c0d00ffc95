"""R3: recursive rejection; with i.i.d. candidates in closed form, without renormalising."""

from __future__ import annotations

from proofs_check.algorithms.rank_laws import output_law, rank_law, recursive_rejection
from proofs_check.forms.ranks import beyond, closed_form, levels, residuals, surviving
from proofs_check.prelude import *
from proofs_check.theorems.candidates.rank_rules import ROUND, given_outputs, ranks_computed
from spectheory.verification import RecursiveRejection

# Recursive rejection of distinct candidates: algorithm, sum over orders and library side by side (R3).


UNCERTAIN = Fraction(1, 1000)
"""Given a rarer output the law of distinct candidates is not held to twelve digits: it is a quotient of differences of
the pmfs, so their last bit, 1e-16, weighs 1/p as much. The joint law is."""


def by_orders(p: AnyPmf, q: AnyPmf, rank: int, gone: frozenset[int] = frozenset()) -> tuple[Real, ...]:
    """P(R = rank, X = x) with distinct candidates, for every x: the sum over orders of rejection.

    Token y is rejected with (q_y - p_y)+. Then p goes on as norm (p - q)+, whichever y was, and q without y; when q
    runs out it is uniform over the tokens not rejected.
    """
    if rank == 1:
        return tuple(smaller(a, b) for a, b in zip(p, q, strict=True))
    law, left = tuple(0 * share for share in p), beyond(p, q)
    for y, rejected in enumerate(beyond(q, p)):
        if not is_zero(rejected):
            residual = tuple(share / sum(left) for share in left)
            following = by_orders(residual, without(q, gone | {y}), rank - 1, gone | {y})
            law = tuple(share + rejected * more for share, more in zip(law, following, strict=True))
    return law


def without(q: AnyPmf, gone: frozenset[int]) -> AnyPmf:
    """The draft given that its token is none of these; uniform over the others if it always is."""
    kept = [0 * share if y in gone else share for y, share in enumerate(q)]
    if all(map(is_zero, kept)):
        kept = [0 * share + (y not in gone) for y, share in enumerate(q)]
    return tuple(share / sum(kept) for share in kept)


def run_through_distinct(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """Every candidate and coin of the algorithm, against the sum over orders; R <= V, and the output law is p."""
    size = len(p)
    for candidates in range(1, size + 1):
        run = recursive_rejection(tuple(p), tuple(q), candidates, replacement=False)
        yield equal(output_law(run, size), tuple(p))
    for rank in range(1, size + 1):
        yield equal(tuple(run.get((rank, x), 0) for x in range(size)), by_orders(p, q, rank))
    yield equal(sum(rank_law(run, size)), 1)


def product_form(p: AnyPmf, q: AnyPmf, *, replacement: bool) -> Iterator[Compared]:
    """P(R > k) of the algorithm against the product of TV(p^m, q), m = 1..k."""
    for k in range(1, len(p) + 1):
        run = recursive_rejection(tuple(p), tuple(q), k, replacement=replacement)
        yield equal(1 - sum(rank_law(run, k)), surviving(p, q, k))


def orders_calculated(p: AnyPmf, q: AnyPmf, *, replacement: bool) -> Iterator[Compared]:
    """The library's rule against the sum over orders, one rank further than there are tokens."""
    law = [by_orders(p, q, rank) for rank in range(1, len(p) + 2)]
    return ranks_computed(RecursiveRejection(replacement), p, q, given_outputs(law, p), UNCERTAIN)


DISTINCT: tuple[Step, ...] = (
    *ROUND,
    valid(
        "a token that is rejected has p < q, so the residual has none of it, and one without it stays so: it is not "
        "output later on. After V - 1 rejections residual and draft are sure of the last token: R <= V",
        lambda p, q, d: [equal(positive_part(p - q), 0), equal(positive_part(0 - d), 0)],
        lambda p, q, d: [p < q, d >= 0],
    ),
)
"""Losslessness, the factors of an order of rejection, and the end."""

ORDERS = Claim(
    "without replacement the algorithm's law of rank and output = the sum over orders of rejection, R <= V, and the "
    "output law is p",
    run_through_distinct,
)

PRODUCT = Claim("without replacement P(R > k) = prod TV(p^m, q)", lambda p, q: product_form(p, q, replacement=False))

LIBRARY_DISTINCT = Claim(
    "the library's rank_pmf, rank_pmf_given and acceptance without replacement are the sum over orders",
    lambda p, q: orders_calculated(p, q, replacement=False),
)

REPLACED = Claim(
    "those with replacement are the sum over orders", lambda p, q: orders_calculated(p, q, replacement=True)
)

WITHOUT_REPLACEMENT = (
    proof("any drafts: the output law; distinct ones: a rejected token never comes back", DISTINCT),
    exact(ORDERS, every_pair(5, 8), wrong=PRODUCT),
    agreement(LIBRARY_DISTINCT, every_pair(4, 7), wrong=REPLACED),
    searched(
        ORDERS, lambda: exact_pairs(max_tokens=4), over="2 to 4 tokens, with zeros and ratios up to 1e30", wrong=PRODUCT
    ),
    searched(
        LIBRARY_DISTINCT,
        lambda: exact_pairs(max_tokens=3),
        over="2 and 3 tokens, with zeros and ratios up to 1e30",
        wrong=REPLACED,
    ),
)
"""The evidence of R3 for distinct candidates."""

CANDIDATES = 4
LONGEST = 400
"""Rejections after which a residual that still changes is given up; small denominators settle in a few dozen."""


def mean_rank(p: AnyPmf, q: AnyPmf) -> Real | None:
    """E[R], the sum of the products of TVs, ending in a geometric series; None where that never accepts."""
    total, alive, before = 0 * p[0], 1 + 0 * p[0], None
    for _, (residual, tv) in zip(range(LONGEST), residuals(p, q), strict=False):
        if residual == before:
            return None if tv == 1 else total + alive / (1 - tv)
        total, alive, before = total + alive, alive * tv, residual
    if not is_zero(alive):
        raise OverflowError(f"the residual has not settled after {LONGEST} rejections")
    return total


def run_through(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """Every candidate and coin of the algorithm, against the closed form and the product."""
    run = recursive_rejection(tuple(p), tuple(q), CANDIDATES, replacement=True)
    yield equal(output_law(run, len(p)), tuple(p))
    for rank, law in enumerate(closed_form(p, q, CANDIDATES), 1):
        yield equal(tuple(run.get((rank, x), 0) for x in range(len(p))), law)
        (_, mass) = levels(p, q, rank + 1)[-1]
        yield equal((1 - sum(rank_law(run, rank)), surviving(p, q, rank)), (mass, mass))


def every_round(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The closed form with s_(m+1) = s_m + 1: as if every round were reached."""
    run = recursive_rejection(tuple(p), tuple(q), CANDIDATES, replacement=True)
    for rank in range(1, CANDIDATES + 1):
        yield equal(1 - sum(rank_law(run, rank)), sum(beyond(p, q, rank)))


def mean_is(form: Callable[[list[tuple[Real, Real]]], Real]) -> Callable[[AnyPmf, AnyPmf], Iterator[Compared]]:
    """A claim that E[R] is a form of the pairs (p, q) of positive q, and infinite where the draft lacks a token."""

    def holds(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
        mean, pairs = mean_rank(p, q), list(zip(p, q, strict=True))
        lacks = any(is_zero(b) and not is_zero(a) for a, b in pairs)
        yield equal(int(mean is None), int(lacks))
        if not lacks:
            yield equal(mean, form([(a, b) for a, b in pairs if not is_zero(b)]))

    return holds


def closing_in(p: AnyPmf, q: AnyPmf, *, start: Real | None = None) -> Iterator[Compared]:
    """What of E[R] = c is still to come after m rejections, c - s, falls by 1 - q each, q of the largest ratio."""
    lacked = sum(a for a, b in zip(p, q, strict=True) if is_zero(b))
    c, share = max((a / b, b) for a, b in zip(p, q, strict=True) if not is_zero(b))
    for m, (s, mass) in enumerate(levels(p, q, CANDIDATES)):
        yield at_most(lacked, mass)
        if is_zero(lacked):
            yield at_most(mass, c - s)
            yield at_most(c - s, (c if start is None else start) * (1 - share) ** m)


def recursive_library(p: AnyPmf, q: AnyPmf, *, replacement: bool) -> Iterator[Compared]:
    """The library's rule against the closed form."""
    law = given_outputs(closed_form(p, q, CANDIDATES), p)
    return ranks_computed(RecursiveRejection(replacement), p, q, law)


def library_mean(
    p: AnyPmf, q: AnyPmf, *, exactly: Callable[[AnyPmf, AnyPmf], Real | None] = mean_rank
) -> Iterator[Compared]:
    """The library's E[R] with i.i.d. candidates."""
    mean, expected = RecursiveRejection().expected_rank(floats(p), floats(q)), exactly(p, q)
    yield equal(int(math.isinf(mean)), int(expected is None))
    if expected is not None:
        yield computed(mean, expected)


CLOSED: tuple[Step, ...] = (
    *ROUND,
    valid(
        "let l = P(R > m) p^(m+1), of sum G: rank m + 1 takes G min(l/G, q) = min(l, G q) of each token",
        lambda left, q, G: equal(G * smaller(left / G, q), smaller(left, G * q)),
        lambda left, q, G: [left >= 0, q >= 0, G > 0],
    ),
    valid(
        "and leaves G (l/G - q)+ = (l - G q)+, of sum P(R > m + 1) = G TV(p^(m+1), q): the product of TVs",
        lambda left, q, G: equal(G * positive_part(left / G - q), positive_part(left - G * q)),
        lambda left, q, G: [left >= 0, q >= 0, G > 0],
    ),
    valid(
        "((p - s q)+ - G q)+ = (p - (s + G) q)+: by induction from l = p, s = 0, G = 1 what is left after m rejections "
        "is (p - s_(m+1) q)+ with s_(m+1) = s_m + G_(m-1), and G_m is its sum",
        lambda p, q, s, G: equal(positive_part(positive_part(p - s * q) - G * q), positive_part(p - (s + G) * q)),
        lambda p, q, s, G: [p >= 0, q >= 0, s >= 0, G >= 0],
    ),
)
"""The closed form, for every number of tokens and candidates."""

MEAN: tuple[Step, ...] = (
    valid(
        "E[R] is the sum of G_m = P(R > m), the limit of s_m. With c = max p/q and s <= c, (p - s q)+ <= (c - s) q: "
        "summed, G <= c - s, so s + G <= c again",
        lambda p, q, s, c: at_most(positive_part(p - s * q), (c - s) * q),
        lambda p, q, s, c: [q >= 0, p <= c * q, s >= 0, s <= c],
    ),
    valid(
        "the token of ratio c and share q leaves at least c q - s q, so c - (s + G) <= (1 - q)(c - s)",
        lambda q, s, G, c: at_most(c - (s + G), (1 - q) * (c - s)),
        lambda q, s, G, c: [q > 0, q <= 1, s <= c, positive_part(c * q - s * q) <= G],
    ),
    valid(
        "(1 - q)^m <= 1/(1 + m q), by induction: times 1 - q that is at most 1/(1 + (m + 1) q). So s_m tends to c, and "
        "E[R] = max p/q",
        lambda q, m, w: at_most(w * (1 - q), 1 / (1 + (m + 1) * q)),
        lambda q, m, w: [q > 0, q <= 1, m >= 0, w >= 0, w <= 1 / (1 + m * q)],
    ),
    valid(
        "a token with q = 0 < p keeps all of p, so G_m >= p for ever: the sum is infinite",
        lambda p, q, s: equal(positive_part(p - s * q), p),
        lambda p, q, s: [p > 0, q == 0, s >= 0],
    ),
)
"""E[R] = max p/q with i.i.d. candidates."""

IID = Claim(
    "with replacement the algorithm's law of rank and output = min((p - s_r q)+, G_(r-1) q), P(R > k) = G_k = "
    "prod TV(p^m, q), and the output law is p",
    run_through,
)

EVERY_ROUND = Claim("with replacement P(R > k) = sum (p - k q)+", every_round)

LARGEST = Claim("with replacement E[R] = max p/q", mean_is(lambda pairs: max(a / b for a, b in pairs)))

SQUARES = Claim("with replacement E[R] = sum p^2/q", mean_is(lambda pairs: sum(a * a / b for a, b in pairs)))

NEARING = Claim(
    "G_m <= c - s_(m+1) <= c (1 - q)^m, q the share at the largest ratio c; where q = 0 < p somewhere, no G_m is less "
    "than that p",
    closing_in,
)

NEARING_FAST = Claim("c - s_(m+1) <= (1 - q)^m", lambda p, q: closing_in(p, q, start=1))

LIBRARY = Claim(
    "the library's rank_pmf, rank_pmf_given and acceptance with replacement are the closed form",
    lambda p, q: recursive_library(p, q, replacement=True),
)

OTHER = Claim("those without replacement are the closed form", lambda p, q: recursive_library(p, q, replacement=False))

LIBRARY_MEAN = Claim("the library's expected_rank is the mean of the algorithm", library_mean)

FINITE_MEAN = Assumption(
    "the draft lacks no token of the target, so that E[R] is finite",
    lambda p, q: every(b > 0 for a, b in zip(p, q, strict=True) if a > 0),
)

SHORT_MEAN = Claim(
    "the library's expected_rank is P(R > 0) + P(R > 1) + P(R > 2)",
    lambda p, q: library_mean(p, q, exactly=lambda p, q: sum(surviving(p, q, m) for m in range(3))),
    (FINITE_MEAN,),
)

WITH_REPLACEMENT = (
    proof("i.i.d. candidates: by induction on the rejections, token by token", CLOSED),
    proof("i.i.d. candidates: the mean", MEAN),
    exact(IID, every_pair(5, 8), wrong=EVERY_ROUND),
    exact(LARGEST, every_pair(4, 5), wrong=SQUARES),
    agreement(LIBRARY, every_pair(4, 7), wrong=OTHER),
    agreement(LIBRARY_MEAN, every_pair(4, 5), wrong=SHORT_MEAN),
    searched(
        IID,
        lambda: exact_pairs(max_tokens=4),
        over="2 to 4 tokens, with zeros and ratios up to 1e30",
        wrong=EVERY_ROUND,
    ),
    searched(
        LIBRARY, lambda: exact_pairs(max_tokens=4), over="2 to 4 tokens, with zeros and ratios up to 1e30", wrong=OTHER
    ),
    searched(NEARING, exact_pairs, over="2 to 5 tokens", spaces=(pair_space(2),), wrong=NEARING_FAST),
)
"""The evidence of R3 for i.i.d. candidates."""

R3 = Entry(
    id="R3",
    title="Recursive rejection",
    kind="identity",
    plain="i.i.d. candidates: with s_1 = 0, G_0 = 1, s_(m+1) = s_m + G_(m-1), G_m = sum (p - s_(m+1) q)+: P(R > m) "
    "= G_m = prod_{j<=m} TV(p^j, q), P(R = r, X = x) = min((p_x - s_r q_x)+, G_(r-1) q_x), and E[R] = max p/q. "
    "Distinct ones: P(R = r, X = x) is the sum over orders of rejection x_1, ..., x_(r-1) of prod_{m<r} "
    "(q^m - p^m)+(x_m) min(p^r_x, q^r_x), and R <= V. The output law is p in both",
    latex=r"P(R=r, X=x) = \min\big((p_x - s_r q_x)_+,\ G_{r-1} q_x\big),\quad s_{m+1} = s_m + G_{m-1},\quad "
    r"G_m = \sum_x (p_x - s_{m+1} q_x)_+ = P(R>m) = \prod_{j\le m} TV(p^j, q),\quad E[R] = \max_x p_x/q_x",
    source=("miao2024specinfer", "chen2024sequoia"),
    assumptions=(
        "p and q are pmfs on one finite vocabulary",
        "candidate m is accepted with probability min(1, p^m/q^m); after a rejection p^(m+1) = norm (p^m - q^m)+",
        "closed form, product, mean: candidates are i.i.d., q^m = q; E[R] is infinite where q = 0 < p",
        "sum over orders: a rejected token is taken out of q, an empty q is uniform over the tokens not rejected",
    ),
    calculators=("spectheory.verification.RecursiveRejection",),
    evidence=(
        *WITH_REPLACEMENT,
        *WITHOUT_REPLACEMENT,
        simulated(
            "ranks and output with i.i.d. candidates, a draft that lacks a token among the pairs",
            at(("recursive",), (TURNED, LACKING), max_rank=3),
            stated("R3", "lossless"),
            wrong=("those of distinct candidates", stated("R3", kind="recursive-distinct")),
        ),
        simulated(
            "ranks and output with distinct candidates, a draft that lacks a token among the pairs",
            at(("recursive-distinct",), (TURNED, LACKING), max_rank=3),
            stated("R3", "lossless"),
            wrong=("those of i.i.d. candidates", stated("R3", kind="recursive")),
        ),
    ),
)

R3_PRODUCT = Entry(
    id="R3/product",
    title="The product of total variations, for distinct candidates",
    kind="refuted",
    plain="without replacement P(R > k) = prod_{m<=k} TV(p^m, q), p^(m+1) = norm (p^m - q)+",
    latex=r"P(R>k) = \prod_{m\le k} TV(p^m, q)",
    assumptions=("p and q are positive pmfs on one finite vocabulary", "a rejected token is taken out of q"),
    evidence=(
        counterexample(
            Claim(PRODUCT.says, PRODUCT.holds, (POSITIVE,)),
            lambda effort: cases.all_pairs(3, effort.pick(4, 6)),
            over="first among the pairs on 2 tokens by their denominator",
            true=Claim(
                "with replacement P(R > k) = prod TV(p^m, q)",
                lambda p, q: product_form(p, q, replacement=True),
                (POSITIVE,),
            ),
        ),
        simulated(
            "distinct candidates have the ranks of i.i.d. ones",
            at(("recursive-distinct",), (TURNED,), max_rank=3),
            stated("R3", kind="recursive"),
            wrong=("they have those of R3 without replacement", stated("R3")),
        ),
    ),
)
