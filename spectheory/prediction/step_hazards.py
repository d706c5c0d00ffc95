r"""Tokens per call at every k from means at one or several k, without counts by position (an estimate).

*Step hazards*: with means at :math:`k_1 < k_2 < \dots` each draft from :math:`k_{j-1} + 1` to :math:`k_j` is accepted
with one chance, given the drafts before it: the one that raises the mean at :math:`k_{j-1}` to that at :math:`k_j`.
Beyond the longest k the last chance is kept. Of one mean that is the formula of i.i.d. acceptances. From k = 1, 2 and 3
of the built-in pair it misses k = 8 by up to 3.2%, where the mean at k = 3 alone misses by up to 7.5%.
docs/published.md holds it against published curves. Ranges hold every text with these means (C6), for a rule that
decides each position alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import accumulate, pairwise
from operator import mul

from spectheory.cost import required_acceptance
from spectheory.intervals import Interval
from spectheory.limits import tokens_per_call_between


def step_hazards(means: Mapping[int, float]) -> tuple[float, ...]:
    """P(draft i accepted | the drafts before it), i up to the longest k; 0 where a mean does not exceed the last.

    Examples
    --------
    >>> [round(hazard, 3) for hazard in step_hazards({1: 1.8, 3: 2.6})]
    [0.8, 0.618, 0.618]
    """
    hazards: list[float] = []
    survival = 1.0
    for (before, fewer), (k, tokens) in pairwise([(0, 1.0), *sorted(means.items())]):
        steps = k - before
        gain = (tokens - fewer) / survival if survival else 0.0
        hazard = required_acceptance(1 + min(max(gain, 0.0), steps), steps, 0.0)
        hazards += [hazard] * steps
        survival *= hazard**steps
    return tuple(hazards)


def tokens_from_means(means: Mapping[int, float], k: int) -> Interval:
    """Tokens per call of chains of k drafts by step hazards; the ends are of every text with these means (C6).

    Examples
    --------
    >>> tokens_from_means({1: 1.8, 3: 2.6}, 2).best
    2.294...
    """
    if k in means:
        return Interval.estimate(means[k])
    hazards = step_hazards(means)
    longest = len(hazards)
    shares = list(accumulate([*hazards, *[hazards[-1]] * (k - longest)], mul))
    shorter = max((at for at in means if at < k), default=0)
    best = means.get(shorter, 1.0) + math.fsum(shares[shorter:k])
    ends = [tokens_per_call_between(tokens, at, k) for at, tokens in means.items()]
    low, high = max(low for low, _ in ends), min(high for _, high in ends)
    return Interval(min(low, best), best, max(high, best), "estimate")


def falls(means: Iterable[tuple[int, float]]) -> tuple[int, int] | None:
    """The first k after which a mean is lower, and the next k; None where none is.

    Examples
    --------
    >>> falls([(1, 1.8), (2, 2.3), (3, 2.2)])
    (2, 3)
    """
    pairs = pairwise(sorted(means))
    return next(((one, other) for (one, tokens), (other, then) in pairs if then < tokens), None)
