"""C1's limits: calls of different acceptance rates are not calls of the mean rate."""

from __future__ import annotations

from proofs_check.forms.speedup import tokens
from proofs_check.prelude import *


def mixture(alphas: Sequence[Real], k: int) -> Real:
    """Tokens per call where every call has one of these rates, each as often."""
    return sum(tokens(alpha, k) for alpha in alphas) / len(alphas)


def mixtures(effort: Effort) -> Iterator[Case]:
    """Two rates in tenths and coarser, shorter chains and simpler rates first."""
    for k, parts in product(range(1, 5), range(1, effort.pick(10, 20) + 1)):
        for low, high in combinations(range(parts + 1), 2):
            yield {"alphas": (Fraction(low, parts), Fraction(high, parts)), "k": k}


AT_THE_MEAN = Claim(
    "tokens per call of a mixture are at most those at the mean rate",
    lambda alphas, k: at_most(mixture(alphas, k), tokens(sum(alphas) / len(alphas), k)),
)
JENSEN = Claim(
    "tokens per call of a mixture are at least those at the mean rate",
    lambda alphas, k: at_least(mixture(alphas, k), tokens(sum(alphas) / len(alphas), k)),
)

CONVEX: tuple[Step, ...] = (
    same(
        "with weights w and 1-w, rates x and y and their powers u and v: the mean of the next power exceeds the mean "
        "rate times the mean power by w(1-w)(x-y)(u-v)",
        lambda w, x, y, u, v: (
            (w * x * u + (1 - w) * y * v) - (w * x + (1 - w) * y) * (w * u + (1 - w) * v),
            w * (1 - w) * (x - y) * (u - v),
        ),
    ),
    valid(
        "which is not negative, as powers are ordered like rates; so if the mean of alpha^i is at least m^i, m the "
        "mean rate, that of alpha^(i+1) is at least m^(i+1): summed over i, the mixture has at least tau at m",
        lambda m, M, N, extra: at_least(m * M + extra, m * N),
        lambda m, M, N, extra: [m >= 0, M >= N, extra >= 0],
    ),
)
"""The true neighbour: the formula at the mean rate is a lower estimate."""

ENTRIES = (
    Entry(
        id="C1/mixture",
        title="The i.i.d. formula at the mean rate of a mixture",
        kind="refuted",
        plain="where alpha is constant within calls and mixed across them, tokens per call are at most the sum of "
        "powers of the mean alpha (they are at least that: alpha .5 and .9, k = 4, gives 3.016, not 2.773)",
        latex=r"\mathbb E\sum_{i\le k}A^i \le \sum_{i\le k}(\mathbb E A)^i",
        assumptions=("a call's acceptances are independent given its rate",),
        evidence=(
            counterexample(
                AT_THE_MEAN, mixtures, over="first with the shortest chain and the simplest pair of rates", true=JENSEN
            ),
            counterexample(
                AT_THE_MEAN,
                lambda effort: [{"alphas": (Fraction(1, 2), Fraction(9, 10)), "k": 4}],
                over="rates .5 and .9, k = 4: 3.016 against 2.773",
                true=JENSEN,
            ),
        ),
    ),
)
