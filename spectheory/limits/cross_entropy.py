"""What the mean divergence of a draft says of its acceptance, before any pass that compares tokens (A1, D1)."""

from __future__ import annotations

import math

from spectheory.checks import real


def total_variation_at_most(divergence: float) -> float:
    r"""Upper bound on the mean TV of target and draft, from the mean KL (D1; Pinsker, and Bretagnolle and Huber).

    .. math:: E[TV] \le \min\big(\sqrt{K/2},\ \sqrt{1-e^{-K}}\big), \qquad K = E[KL(P_n\|Q_n)]

    Both forms are concave in K, so they hold for means over positions as they do at one.

    Examples
    --------
    >>> round(total_variation_at_most(0.08), 6), round(total_variation_at_most(4.0), 6)
    (0.2, 0.9908)
    """
    divergence = _checked_divergence(divergence)
    return math.sqrt(min(divergence / 2, -math.expm1(-divergence)))


def acceptance_at_least(divergence: float) -> float:
    r"""Lower bound on the acceptance rate of token verification, from the mean KL of the draft in nats (A1).

    .. math:: E[1 - TV] \ge 1 - \min\big(\sqrt{K/2},\ \sqrt{1-e^{-K}}\big)

    On text *sampled from the target* K is the draft's mean cross-entropy less the target's, that is the difference of
    the logarithms of their perplexities; on other text it is not, and this is no bound. The rate is the mean over
    positions of that text; it is also that of the first draft of block verification. Means give no upper bound but 1:
    a draft may miss rare tokens alone, at any K. The acceptance itself needs the tokens' two log-probabilities:
    :math:`E\min(1, q/p)`, exactly.

    Examples
    --------
    >>> round(acceptance_at_least(0.08), 6), acceptance_at_least(0.0), acceptance_at_least(math.inf)
    (0.8, 1.0, 0.0)
    """
    return 1 - total_variation_at_most(divergence)


def race_acceptance_at_least(divergence: float) -> float:
    r"""The same for the exponential race, :math:`E[\alpha_{race}] \ge (1-v)/(1+v)` with v the bound on E[TV] (A2, A3).

    Lower bound: :math:`\alpha_{race} \ge (1-TV)/(1+TV)` at each position (``daliri2025``), which is convex in TV.

    Examples
    --------
    >>> round(race_acceptance_at_least(0.08), 6)
    0.666667
    """
    distance = total_variation_at_most(divergence)
    return (1 - distance) / (1 + distance)


def sufficient_divergence(acceptance: float) -> float:
    r"""The largest mean KL, in nats, that is sure to give an acceptance rate (inverse of :func:`acceptance_at_least`).

    .. math:: \max\big(2v^2,\ -\log(1-v^2)\big), \qquad v = 1 - \alpha

    Sufficient, not necessary: drafts with a larger KL may be accepted as often.

    Examples
    --------
    >>> round(sufficient_divergence(0.8), 6), sufficient_divergence(0.0)
    (0.08, inf)
    """
    limit, remedy = "must be in [0, 1]", "pass an acceptance rate"
    square = (1 - real("the acceptance", acceptance, lambda a: 0 <= a <= 1, limit=limit, remedy=remedy)) ** 2
    return math.inf if square == 1 else max(2 * square, -math.log1p(-square))


def _checked_divergence(divergence: float) -> float:
    limit, remedy = "must be >= 0 nats", "KL is never negative"
    return real("the divergence", divergence, lambda nats: nats >= 0, limit=limit, remedy=remedy)
