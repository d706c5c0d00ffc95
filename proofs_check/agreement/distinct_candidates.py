"""Recursive rejection of distinct candidates: algorithm, sum over orders and library side by side (R3)."""

from __future__ import annotations

from proofs_check.agreement.rank_rules import given_outputs, ranks_computed
from proofs_check.algorithms.rank_laws import output_law, rank_law, recursive_rejection
from proofs_check.forms.ranks import beyond, surviving
from proofs_check.prelude import *
from proofs_check.proofs.several_candidates import ROUND
from spectheory.verification import RecursiveRejection

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


def run_through(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
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
    run_through,
)

PRODUCT = Claim("without replacement P(R > k) = prod TV(p^m, q)", lambda p, q: product_form(p, q, replacement=False))

LIBRARY = Claim(
    "the library's rank_pmf, rank_pmf_given and acceptance without replacement are the sum over orders",
    lambda p, q: orders_calculated(p, q, replacement=False),
)

OTHER = Claim("those with replacement are the sum over orders", lambda p, q: orders_calculated(p, q, replacement=True))

WITHOUT_REPLACEMENT = (
    proof("any drafts: the output law; distinct ones: a rejected token never comes back", DISTINCT),
    exact(ORDERS, every_pair(5, 8), wrong=PRODUCT),
    agreement(LIBRARY, every_pair(4, 7), wrong=OTHER),
    searched(
        ORDERS, lambda: exact_pairs(max_tokens=4), over="2 to 4 tokens, with zeros and ratios up to 1e30", wrong=PRODUCT
    ),
    searched(
        LIBRARY, lambda: exact_pairs(max_tokens=3), over="2 and 3 tokens, with zeros and ratios up to 1e30", wrong=OTHER
    ),
)
"""The evidence of R3 for distinct candidates."""
