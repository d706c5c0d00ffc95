"""What the mean divergence of a draft says of its acceptance, before any pass that compares tokens (A1, D1)."""

from __future__ import annotations

import math

from spectheory.checks import MOST_EXACT, real, whole
from spectheory.errors import argument


def total_variation_at_most(divergence: float) -> float:
    r"""Upper bound on the mean TV of target and draft, from the mean KL (D1; Pinsker, and Bretagnolle and Huber).

    .. math:: E[TV] \le \min\big(\sqrt{K/2},\ \sqrt{1-e^{-K}}\big), \qquad K = E[KL(P_n\|Q_n)]

    Both forms are concave in K, so they hold for means over positions as they do at one.

    Examples
    --------
    >>> round(total_variation_at_most(0.08), 6), round(total_variation_at_most(4.0), 6)
    (0.2, 0.9908)
    """
    limit, remedy = "must be >= 0 nats", "KL is never negative"
    divergence = real("the divergence", divergence, lambda nats: nats >= 0, limit=limit, remedy=remedy)
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


def first_choice_at_least(entropy: float) -> float:
    r"""Lower bound on how often the target's most probable token is its output, from its mean entropy in nats (A4).

    .. math:: E[\max_x p_x] \ge e^{-E[H]}

    A perfect argmax draft is accepted so often. Equality where the target is uniform on some tokens, equally many at
    every position.

    Examples
    --------
    >>> round(first_choice_at_least(math.log(4)), 6)
    0.25
    """
    limit, remedy = "must be >= 0 nats", "give the mean entropy of the target's pmfs"
    return math.exp(-real("the entropy", entropy, lambda nats: nats >= 0, limit=limit, remedy=remedy))


def first_choice_at_most(entropy: float, vocabulary: int) -> float:
    r"""Upper bound on the acceptance of one draft token that is not sampled, from the target's mean entropy (A4).

    .. math:: E[p(\text{draft})] \le 1 - e, \qquad h(e) + e\log(V-1) = E[H],\quad 0 \le e \le 1 - 1/V

    This is Fano's inequality; h is the entropy of a coin, in nats, V the vocabulary. It binds every draft that is
    chosen without regard to the target's draw, however good; a sampled draft may be accepted always. It is concave in
    the entropy, so it holds for means over positions. Equality where all tokens but one are equally probable.

    Examples
    --------
    >>> round(first_choice_at_most(math.log(2), 2), 6), round(first_choice_at_most(1.9, 50_000), 4)
    (0.5, 0.8616)
    """
    vocabulary = whole(argument("vocabulary"), vocabulary, most=MOST_EXACT, remedy="count the tokens")
    most = math.log(vocabulary)
    inside = f"must be in [0, log {vocabulary} = {most:.6g}] nats"
    entropy = real(
        "the entropy", entropy, lambda nats: 0 <= nats <= most * (1 + 1e-12), limit=inside, remedy="give it in nats"
    )
    if entropy >= most:
        return 1 / vocabulary
    if entropy == 0:
        return 1.0
    from scipy.optimize import brentq

    return 1 - float(brentq(lambda e: _entropy_of_misses(e, vocabulary) - entropy, 0.0, 1 - 1 / vocabulary, xtol=1e-16))


def _entropy_of_misses(e: float, vocabulary: int) -> float:
    """Entropy if one token has probability 1 - e and all others are equally probable."""
    if e == 0:
        return 0.0
    return -e * math.log(e / (vocabulary - 1)) - (1 - e) * math.log1p(-e)
