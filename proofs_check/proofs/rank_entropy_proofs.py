"""Proofs about the entropy of a rank: at least KL, E log R, and the entropy of any rank from its E log R.

One inequality about logarithms is used, log t <= t - 1, shown as in D1; where the solver meets a logarithm it is a
number of which no more than this is known.
"""

from __future__ import annotations

from proofs_check.prelude import *
from proofs_check.proofs.divergence_proofs import TANGENT
from proofs_check.statement import calculus

AT_LEAST_KL: tuple[Step, ...] = (
    valid(
        "the r-th candidate is x with probability q_x, so P(R = r, X = x) <= q_x, and given x no rank is likelier than "
        "q_x/p_x, whatever the rule",
        lambda joint, p, q: at_most(joint / p, q / p),
        lambda joint, p, q: [joint >= 0, joint <= q, p > 0],
    ),
    valid(
        "so -log P(r|x) >= l = log(p_x/q_x) for every r, and the mean over r too, as P(r|x) sums to 1: rank by rank, "
        "two that have this have it together. Over x ~ p the mean of l is KL: KL <= H(R|X)",
        lambda a, b, s, t, low: at_most((a + b) * low, a * s + b * t),
        lambda a, b, s, t, low: [a >= 0, b >= 0, s >= low, t >= low],
    ),
    *TANGENT,
    same(
        "H(R) - H(R|X) is the sum of j log(j/m) over r and x, j = P(r, x), m = p_x P(r)",
        lambda j, p, w: (j * calculus.log(j / p) - j * calculus.log(w), j * calculus.log(j / (p * w))),
    ),
    valid(
        "and j log(m/j) <= j (m/j - 1) = m - j, which sum to 0: H(R|X) <= H(R)",
        lambda j, m, log_ratio: at_most(j * log_ratio, m - j),
        lambda j, m, log_ratio: [j > 0, m >= 0, log_ratio <= m / j - 1],
    ),
)
"""For every selection from i.i.d. candidates, on any number of tokens."""

LOG_RANK: tuple[Step, ...] = (
    *TANGENT,
    valid(
        "with m = E[R|x]: log r - log m <= r/m - 1, which has mean 0, here for two ranks: E[log R|x] <= log E[R|x], "
        "which is log(1 + g) for the Poisson race",
        lambda a, b, r, s, k, n, m: at_most(a * k + b * n, 0),
        lambda a, b, r, s, k, n, m: [
            a >= 0,
            b >= 0,
            a + b == 1,
            m > 0,
            m == a * r + b * s,
            k * m <= r - m,
            n * m <= s - m,
        ],
    ),
    valid(
        "(c q - p)+ <= c q, summed over y: g <= c = p_x/q_x, so E log R <= sum p log(1 + p/q)",
        lambda c, p, q: at_most(positive_part(c * q - p), c * q),
        lambda c, p, q: [c >= 0, p >= 0, q >= 0],
    ),
    same(
        "log(1 + p/q) = log(p/q) + log 2 + log((1 + q/p)/2)",
        lambda p, q: (calculus.log(1 + p / q), calculus.log(p / q) + calculus.log(2) + calculus.log((1 + q / p) / 2)),
    ),
    same(
        "by the tangent p times the last is at most (q - p)/2, which sum to 0 or less: at most KL + log 2",
        lambda p, q: (p * ((1 + q / p) / 2 - 1), (q - p) / 2),
    ),
)
"""E log R of the Poisson race."""

FROM_THE_LOG: tuple[Step, ...] = (
    *TANGENT,
    valid(
        "any law w on the ranks: the sum of P log(w/P) is at most that of w - P, 0: H(R) <= the sum of -P log w",
        lambda P, w, log_ratio: at_most(P * log_ratio, w - P),
        lambda P, w, log_ratio: [P > 0, w >= 0, log_ratio <= w / P - 1],
    ),
    same(
        "take w = r^(-s)/Z, s = 1 + 1/E, E = E log R > 0 (R = 1 for sure at E = 0): H(R) <= s E + log Z",
        lambda r, s, Z: (-calculus.log(r ** (-s) / Z), s * calculus.log(r) + calculus.log(Z)),
    ),
    same(
        "Z is the sum of r^(-s); each term from r = 2 on is at most the integral over the step before r, where the "
        "power is larger: Z <= 1 + the integral from 1 of t^(-s), which is 1 + E",
        lambda t, E: (calculus.integral(calculus.exp(-(1 + 1 / E) * calculus.log(t)), t, 1, math.inf), E),
    ),
    same(
        "so H(R) <= E + 1 + log(1 + E). In another unit of b nats, E = b F, take s = 1 + 1/F: H(R)/b <= F + 1 + "
        "log(1 + F)/b, another bound",
        lambda F, b: ((1 + 1 / F) * (b * F) / b, F + 1),
    ),
)
"""The entropy of any rank from E log R."""
