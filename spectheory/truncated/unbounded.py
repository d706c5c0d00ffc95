"""D1 of two truncated pmfs where a token that the draft lacks makes it infinite: KL, chi-square, Rényi.

Their low ends are in :mod:`spectheory.truncated.tangents`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import spectheory.divergences as exact
from spectheory.distributions import ratio
from spectheory.intervals import Interval
from spectheory.truncated.completions import Value, all_known, disjoint_tails, farthest_ratios
from spectheory.truncated.masses import EPS, Floats
from spectheory.truncated.outward import outward, rounding_slack, settled
from spectheory.truncated.tangents import least_renyi_divergence
from spectheory.truncated.top import TopLogProbs

_LARGEST_LOG = math.log(sys.float_info.max) - EPS * 1000
"""Beyond it an exponential is infinite, which is no lower bound."""


def kl_divergence(target: TopLogProbs, draft: TopLogProbs) -> Interval:
    r"""Kullback-Leibler divergence :math:`\sum_x p_x\log(p_x/q_x)` in nats over all completions (D1, §9; certified).

    The low end is attained. The high one is infinite, as a rule: a token that the draft does not know may have q = 0;
    it is finite, certain and loose if the draft's unseen mass leaves none of its tokens out.

    Examples
    --------
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.125, 0.125], 2), TopLogProbs.from_pmf([0.25, 0.5, 0.125, 0.125], 2)
    >>> print(kl_divergence(p, q))
    0.173 [0.173, inf]
    """

    def value(masses: Floats, ratios: Floats) -> float:
        return float(np.sum(masses * np.log(ratios)))

    return _unbounded(target, draft, exact.kl_divergence, value, 1.0)


def chi_square(target: TopLogProbs, draft: TopLogProbs) -> Interval:
    r"""Chi-square divergence :math:`\sum_x p_x^2/q_x-1` over all completions (D1, §9; certified bound).

    Ends as for :func:`kl_divergence`.

    Examples
    --------
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.25, 0], 4), TopLogProbs.from_pmf([0.25, 0.5, 0.25, 0], 3)
    >>> print(chi_square(p, q), chi_square(p, q).kind)
    0.375 exact
    """

    def value(masses: Floats, ratios: Floats) -> float:
        with np.errstate(over="ignore"):  # beyond the floats is infinite
            return float(np.sum(masses * ratios)) - 1

    return _unbounded(target, draft, exact.chi_square, value, 2.0, squared=True)


def renyi_divergence(target: TopLogProbs, draft: TopLogProbs, order: float) -> Interval:
    r"""Rényi divergence :math:`\frac{1}{a-1}\log\sum_x p_x^aq_x^{1-a}` of order a > 0 over all completions (D1, §9).

    The low end is attained. The high end is that of disjoint tails below order 1, and as for :func:`kl_divergence`
    from order 1 on.

    Examples
    --------
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.125, 0.125], 2), TopLogProbs.from_pmf([0.25, 0.5, 0.125, 0.125], 2)
    >>> print(renyi_divergence(p, q, 0.5))
    0.390 [0.088, 0.693]
    """
    order = exact.checked_order(order)
    if order == 1:
        return kl_divergence(target, draft)

    def whole(p: Floats, q: Floats) -> Any:
        return exact.renyi_divergence(p, q, order)

    def value(masses: Floats, ratios: Floats) -> float:
        return _renyi(masses, ratios, order)

    return _unbounded(target, draft, whole, value, order)


def _renyi(masses: Floats, ratios: Floats, order: float) -> float:
    """Rényi divergence from target masses and ratios p/q."""
    logs = np.log(ratios)
    if order == math.inf or (order > 1 and logs.max() == math.inf):
        return float(logs.max())
    total = float(np.logaddexp.reduce(np.log(masses) + (order - 1) * logs))
    return total / (order - 1)


def _unbounded(
    target: TopLogProbs,
    draft: TopLogProbs,
    whole: Callable[[Floats, Floats], Any],
    value: Value,
    order: float,
    *,
    squared: bool = False,
) -> Interval:
    """Interval of a divergence: `whole` of two known pmfs, `value` of target masses and ratios, at the far end.

    From order 1 on, a sum of p^a q^(1-a) falls in q and (beyond x log x, which the slack covers) rises in p; below
    order 1 it rises in both, and the divergence is largest at the disjoint tails.
    """
    slack = rounding_slack(target, draft)
    farthest = _ratios(*disjoint_tails(target, draft)) if order < 1 else farthest_ratios(target, draft)
    finite = farthest[1][farthest[1] < math.inf]
    # A mean log-ratio moves with the masses by the largest log-ratio, x log x by e log e.
    factor = 1.0 if squared or order in (1, math.inf) else (1 + order) / abs(order - 1)
    scale = factor * (3 - 2 * math.log(slack) + float(np.abs(np.log(finite)).max(initial=0.0)))
    if all_known(target, draft) and target.complete:
        return settled(float(whole(*disjoint_tails(target, draft))), scale, target, draft, relative=squared)
    low = least_renyi_divergence(target, draft, order)
    if squared:
        low = math.expm1(min(low, _LARGEST_LOG)) * (1 - 4 * EPS) if low < math.inf else low
    far = value(*farthest)
    high = outward(far, far, scale * slack, relative=squared).high
    return outward(low, max(low, high), 0.0)


def _ratios(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """Target masses and their ratios p/q, inf where the draft has none."""
    return p[p > 0], ratio(p, q, np)[p > 0]
