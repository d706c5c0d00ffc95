"""What the target's entropy alone says of drafts that do not sample: how often the best single token is right (A4)."""

from __future__ import annotations

import math

from spectheory.checks import MOST_EXACT, real, whole


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
    vocabulary = whole("vocabulary", vocabulary, most=MOST_EXACT, remedy="count the tokens")
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
