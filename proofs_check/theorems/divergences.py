"""D1: the sums that separate two pmfs, their signs and their order."""

from __future__ import annotations

import spectheory
from proofs_check.forms.divergences import (
    Order,
    entropy,
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
from spectheory import kl_divergence

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


def renyi_grows(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The Rényi divergence at growing orders."""
    for small, large in pairwise(renyi(p, q, order) for order in ORDERS):
        yield at_most(small, large)


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


def library(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
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
        found = spectheory.pair_statistics(np.log(target), np.log(draft))
    yield computed(found.total_variation, total_variation(p, q))
    yield computed(found.kl, divergence)
    yield computed(found.target_entropy, h)
    yield computed(found.target_second_moment, second_moment(p))
    yield computed(found.cross_entropy, h + divergence)
    yield computed(found.harmonic_similarity, similarity(p, q))


def lacks(p: AnyPmf, q: AnyPmf) -> bool:
    """Whether q lacks a token of p."""
    return any(b == 0 < a for a, b in zip(p, q, strict=True))


def infinite(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """Where the library's divergences are infinite; Rényi below order 1 is so on disjoint supports alone."""
    target, draft, lacking = floats(p), floats(q), lacks(p, q)
    disjoint = all(a * b == 0 for a, b in zip(p, q, strict=True))
    for value in (spectheory.kl_divergence(target, draft), spectheory.chi_square(target, draft)):
        yield equal(int(math.isinf(value)), int(lacking))
    for n, m in ORDERS:
        value = spectheory.renyi_divergence(target, draft, n / m if m else math.inf)
        yield equal(int(math.isinf(value)), int(lacking if n >= m else disjoint))


BOUNDS = Claim(
    "TV^2 <= KL/2 and 1 - e^-KL, 0 <= KL <= log(1 + chi-square), 0 <= H <= log V, H^2 <= M2", bounds, (COVERED,)
)

GROWS = Claim("Rényi of orders 1/4, 1/2, 9/10, 1 (KL), 11/10, 2, 5/2, infinity does not fall", renyi_grows, (COVERED,))

SUMS = Claim(
    "TV = sum (p-q)+ = 1 - sum min(p, q) = max of p(E) - q(E); chi-square = sum (p-q)^2/q >= 4TV^2; the sums of order "
    "2, 3, 4 satisfy m2^2 <= m3, m3^3 <= m4^2",
    sums,
    (COVERED,),
)

LIBRARY = Claim("TV, KL, chi-square, H, M2, Rényi and pair_statistics are these sums", library, (COVERED,))

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

ENTRIES = (
    Entry(
        id="D1",
        title="Divergences and moments of a pair of pmfs",
        kind="bounds",
        plain="TV = sum|p-q|/2 = sum (p-q)+; KL = sum p log(p/q) with 2TV^2 <= KL <= log(1 + chi-square) and TV^2 <= 1 "
        "- e^-KL; chi-square = sum p^2/q - 1; 0 <= H <= log V; M2 = sum p log^2 p >= H^2; Rényi is nondecreasing in "
        "its order, and KL at order 1",
        latex=r"TV = \tfrac12\sum|p-q|,\quad 2\,TV^2 \le KL = \sum p\log\frac{p}{q} = D_1 \le D_2 = \log(1+\chi^2),"
        r"\quad TV^2 \le 1 - e^{-KL},"
        r"\quad \chi^2 = \sum\frac{p^2}{q}-1,\quad D_a = \frac{1}{a-1}\log\sum p^a q^{1-a} \text{ nondecreasing in } a,"
        r"\quad 0 \le H \le \log V,\quad M_2 = \sum p\log^2 p \ge H^2",
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
                SUMS,
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
    ),
)
