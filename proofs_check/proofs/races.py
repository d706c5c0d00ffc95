"""Steps about races of exponential clocks that several statements share."""

from __future__ import annotations

from proofs_check.prelude import *
from proofs_check.statement.calculus import exp


def over_all(weight: Real, u: Real) -> Real:
    """The integral over all times u > 0."""
    return integral(weight, u, 0, math.inf)


WINNER = same(
    "clocks E_y are Exp(1); i rings first for the target at u = E_i/p_i with density p_i e^(-p_i u), and the others, "
    "E_y > u p_y, are later with e^(-u(1 - p_i)): together p_i e^(-u), so winner i ~ p and time u ~ Exp(1) are "
    "independent",
    lambda p, u: (p * exp(-p * u) * exp(-u * (1 - p)), p * exp(-u)),
)
"""Winner and winning time of a race."""

LOSSLESS = in_words(
    "x's clock of race j wins the output if all others, of k races, are beyond t p_y/p_x: D = k/p_x, and over the k "
    "races p_x: the output has law p. Within one race D = 1/q_x: drafts have law q, and are independent",
    lambda k, p: (k / (k * (1 / p)), p),
)
"""The laws of output and drafts."""
