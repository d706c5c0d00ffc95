"""H refuted: for distinct tokens, and for a rank that is cut, the entropy of the rank may lie far below KL."""

from __future__ import annotations

from proofs_check.forms.rank_information import (
    FINITE,
    RANKS,
    Pair,
    divergence,
    entropy,
    poisson_entropy,
    poisson_given,
    poisson_law,
    recursive_entropies,
    wrapped,
)
from proofs_check.prelude import *
from proofs_check.twins import race_ranks

THOUSANDTH = Fraction(1, 1000)
FAR = (1 - THOUSANDTH, THOUSANDTH)
"""p of the theory's examples."""

OF_DISTINCT = {"pair": Pair(FAR, FAR[::-1])}
"""p = (.999, .001), q = (.001, .999)."""

OF_A_CUT = {"pair": Pair(FAR, (Fraction(1, 100), Fraction(99, 100)))}
"""p = (.999, .001), q = (.01, .99)."""


def distinct(pair: Pair) -> Real:
    """H(R) of the race over distinct tokens."""
    return entropy(race_ranks.rank_law(pair.p, pair.q))


def cut(pair: Pair) -> Real:
    """H of the Poisson race's rank cut at one candidate: 1 or none. Recursive rejection's may be more or less."""
    accepted = poisson_law(pair, 1)[0]
    return entropy((accepted, 1 - accepted))


def whole(pair: Pair) -> Iterator[Compared]:
    """KL <= H(R) of whole ranks with i.i.d. candidates."""
    yield at_most(divergence(pair), poisson_entropy(pair, RANKS)[0])
    yield at_most(divergence(pair), recursive_entropies(pair)[1])


def digits(value: Real, printed: Fraction, last: Fraction) -> Iterator[Compared]:
    """The value rounds to what is printed."""
    yield at_most(interval(printed - last / 2), value)
    yield at_most(value, interval(printed + last / 2))


def printed_of_distinct(pair: Pair) -> Iterator[Compared]:
    """KL is 6.893 and H(R) .0144."""
    yield from digits(divergence(pair), Fraction(6893, 1000), Fraction(1, 1000))
    yield from digits(distinct(pair), Fraction(144, 10000), Fraction(1, 10000))


def printed_of_a_cut(pair: Pair) -> Iterator[Compared]:
    """KL is 4.59 and H .06."""
    yield from digits(divergence(pair), Fraction(459, 100), Fraction(1, 100))
    yield from digits(cut(pair), Fraction(6, 100), Fraction(1, 100))


DISTINCT = Claim(
    "KL <= H(R) of the race over distinct tokens", lambda pair: at_most(divergence(pair), distinct(pair)), (FINITE,)
)

CUT = Claim("KL <= H of the rank cut at one candidate", lambda pair: at_most(divergence(pair), cut(pair)), (FINITE,))

NEARLY_CERTAIN = {"target": [0.999, 0.001], "draft": [0.001, 0.999]}
"""The same pair, as simulators take it."""

ENTRIES = (
    Entry(
        id="H/distinct",
        title="The entropy of the rank for distinct tokens",
        kind="refuted",
        plain="H(R) >= KL for the race over distinct tokens (R2)",
        latex=r"H(R_{R2}) \ge KL(P\|Q)",
        assumptions=("the draft lacks no token of the target",),
        evidence=(
            counterexample(
                DISTINCT,
                lambda effort: wrapped(cases.all_pairs(2, 8)),
                over="first among the pairs on 2 tokens by their denominator",
                true=Claim("KL <= H(R) of whole ranks with i.i.d. candidates", whole, (FINITE,)),
                kind="certified",
            ),
            counterexample(
                DISTINCT,
                lambda effort: [OF_DISTINCT],
                over="at p = (.999, .001), q = (.001, .999)",
                true=Claim("KL is 6.893 and H(R) .0144 there", printed_of_distinct),
                kind="certified",
            ),
            simulated(
                "entropy of ranks in races over distinct tokens at least KL there, 10,000 ranks a trial",
                (("rank-entropy", {"rule": "race", **NEARLY_CERTAIN, "max_rank": 2, "draws": 10_000}),),
                against_kl("lower bound"),
                wrong=("it is that of R2's ranks", stated("R2")),
                trials=(100, 1_000),
            ),
        ),
        without={"exact": "logarithms enter"},
    ),
    Entry(
        id="H/truncated",
        title="The entropy of a rank that is cut",
        kind="refuted",
        plain="H >= KL for the rank of i.i.d. candidates cut at k, with all later ranks as one letter",
        latex=r"H(\min(R, k+1)) \ge KL(P\|Q)",
        assumptions=("the draft lacks no token of the target",),
        evidence=(
            counterexample(
                CUT,
                lambda effort: wrapped(cases.all_pairs(2, 8)),
                over="first among the pairs on 2 tokens by their denominator, k = 1",
                true=Claim(
                    "KL <= H(R|X) of the whole rank",
                    lambda pair: at_most(divergence(pair), poisson_given(pair)),
                    (FINITE,),
                ),
                kind="certified",
            ),
            counterexample(
                CUT,
                lambda effort: [OF_A_CUT],
                over="at p = (.999, .001), q = (.01, .99), k = 1",
                true=Claim("KL is 4.59 and H .06 there", printed_of_a_cut),
                kind="certified",
            ),
        ),
        without={"exact": "logarithms enter"},
    ),
)
