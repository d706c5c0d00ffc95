"""A3: the bounds of the race's acceptance, each a chain of steps that hold term by term."""

from __future__ import annotations

from proofs_check.forms.divergences import overlap, reciprocal, similarity
from proofs_check.forms.ranks import race
from proofs_check.prelude import *
from simulations.counts.quantities import Share
from simulations.verdicts.predictions import Predicted, Side
from spectheory.verification import race_inequalities


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


def library(p: AnyPmf, q: AnyPmf) -> list[Compared]:
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


ENTRIES = (
    Entry(
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
                Claim(HALF.says, HALF.holds, (POSITIVE,)),
                (2,),
                wrong=Claim(LOOK_ALIKE.says, LOOK_ALIKE.holds, (POSITIVE,)),
            ),
            exact(BOUNDS, cases.every_pair(7, 10), wrong=LOOK_ALIKE),
            agreement(
                Claim("the library's five bounds", library),
                cases.every_pair(4, 6),
                wrong=Claim(
                    "S in place of S/2",
                    lambda p, q: computed(race_inequalities(floats(p), floats(q)).half_similarity, similarity(p, q)),
                ),
            ),
            searched(
                BOUNDS, exact_pairs, over="2 to 5 tokens", spaces=(pair_space(2), pair_space(3)), wrong=LOOK_ALIKE
            ),
            simulated(
                "races with a clock for every token between the bounds",
                at(("race-dense",), (TURNED, LACKING, NEAR), max_rank=1),
                bounds,
                wrong=(LOOK_ALIKE.says, look_alike),
            ),
        ),
    ),
    Entry(
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
    ),
)
