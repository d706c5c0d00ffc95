"""D2: the harmonic-mean similarity and distance, between functions of the total variation."""

from __future__ import annotations

from proofs_check.forms.divergences import similarity, total_variation
from proofs_check.prelude import *
from spectheory import harmonic_mean_distance, harmonic_mean_similarity


def triangular(p: AnyPmf, q: AnyPmf) -> Real:
    """Half the triangular discrimination: half the sum of (p - q)^2/(p + q)."""
    pairs = ((a, b) for a, b in zip(p, q, strict=True) if not (is_zero(a) and is_zero(b)))
    return sum((a - b) * (a - b) / (a + b) for a, b in pairs) / 2


def forms(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """One minus the similarity is half the triangular discrimination, and neither has a side."""
    yield equal(1 - similarity(p, q), triangular(p, q))
    yield equal(similarity(p, q), similarity(q, p))


def between(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The similarity between two functions of TV."""
    tv = total_variation(p, q)
    yield at_least(similarity(p, q), 1 - tv)
    yield at_most(similarity(p, q), 1 - tv * tv)


def library(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The library's similarity and distance."""
    yield computed(harmonic_mean_similarity(floats(p), floats(q)), similarity(p, q))
    yield computed(harmonic_mean_distance(floats(p), floats(q)), triangular(p, q))


TERM_BY_TERM: tuple[Step, ...] = (
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

ENTRIES = (
    Entry(
        id="D2",
        title="Harmonic-mean similarity and distance",
        kind="bounds",
        plain="S = sum 2pq/(p+q), 1 - S = sum (p-q)^2/(p+q)/2, half the triangular discrimination; "
        "1 - TV <= S <= 1 - TV^2",
        latex=r"S = \sum\frac{2pq}{p+q},\quad D_{HM} = 1 - S = \tfrac12\sum\frac{(p-q)^2}{p+q},\quad "
        r"TV^2 \le D_{HM} \le TV",
        assumptions=("p and q are pmfs on one finite vocabulary", "a token with p = q = 0 adds nothing"),
        calculators=("spectheory.harmonic_mean_similarity", "spectheory.harmonic_mean_distance"),
        evidence=(
            proof("term by term, for any number of tokens", TERM_BY_TERM),
            solved(
                Claim(BETWEEN.says, between, (POSITIVE,)),
                (2,),
                wrong=Claim(
                    "S <= 1 - TV", lambda p, q: at_most(similarity(p, q), 1 - total_variation(p, q)), (POSITIVE,)
                ),
            ),
            exact(
                Claim("1 - S = sum (p-q)^2/(p+q)/2, and S has no side", forms),
                every_pair(7, 10),
                wrong=Claim(
                    "1 - S = sum (p-q)^2/(p+q), the normalisation without the half",
                    lambda p, q: equal(1 - similarity(p, q), 2 * triangular(p, q)),
                ),
            ),
            exact(BETWEEN, every_pair(7, 10), wrong=SQUARED),
            agreement(
                Claim("the library's similarity and distance", library),
                every_pair(5, 5, others=(200, 2000, 8)),
                wrong=Claim(
                    "the library's distance is the whole triangular discrimination",
                    lambda p, q: computed(harmonic_mean_distance(floats(p), floats(q)), 2 * triangular(p, q)),
                ),
            ),
            searched(BETWEEN, exact_pairs, over="2 to 5 tokens", spaces=(pair_space(2), pair_space(3)), wrong=SQUARED),
        ),
    ),
)
