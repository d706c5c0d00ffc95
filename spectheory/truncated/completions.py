r"""The two extreme completions of two truncated pmfs; every rate lies between its values there.

Write (P, Q) >= (P', Q') if one noisy channel turns P into P' and Q into Q'. Channels are made of splitting a token in
proportion and of merging tokens, so a quantity that splits leave alone and merges move one way is monotone in this
order. Of this kind are all f-divergences, every hockey stick g(c), the race, the Poisson race and the optimal
acceptance of k drafts:

- f-divergence, g(c): joint convexity;
- race and Poisson race: a sum of q F(p/q) with F(r) = r f(m), f(m) = 1 - (1 - 1/m)^k, where m(r) = 1 + g(r) >= 1 is the
  largest of the lines A + B r, A and B >= 0 (a sum of max(p_y, r q_y)). f falls, so F is the least of r f(A + B r);
  each is concave, for in m its second derivative is a multiple of 2f' + (m - A)f'', which is negative if f'' is, and
  else at most 2f' + m f'' = -k(k-1)(1 - 1/m)^(k-2)/m^3. And merging lowers g;
- optimal acceptance: 1 + min_H p(H) - q(H)^k over fewer sets H after a merge; along the split of a token it is
  concave, so no split set is better than both whole ones.

*Disjoint tails* (C = known to both; one token for all else that the target has, one for the draft's) is above every
completion in this order: each token is sent to what it stands for. It is itself a completion, up to splits, if
ceil(s/a) + ceil(t/b) <= n; else it is certain but loose. *Best completion* is below every completion: the one whose
g(c) is least for every c at once (for two pmfs that is the order of channels, by Blackwell's theorem); attained.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spectheory.distributions import ratio
from spectheory.errors import ShapeError
from spectheory.intervals import Interval
from spectheory.truncated.top import EPS, Floats, TopLogProbs, a_top, outward, rounding_slack, settled

_REST = 16 * EPS
"""A remainder below this share of its mass comes from rounding."""

Value = Callable[[Floats, Floats], float]
"""A quantity of two pmfs ``[T]``."""
Law = tuple[Interval, ...]
Acceptance = Callable[[TopLogProbs, TopLogProbs, int], Interval]
MANY = math.inf
"""As many candidates as are asked for."""


class RuleBounds(NamedTuple):
    """What is known of a rule: acceptance, alone and given the token, and rank laws; up to `most` candidates each."""

    acceptance: Acceptance | None = None
    given: Callable[[TopLogProbs, TopLogProbs, int, int], Interval] | None = None
    rank_pmf: Callable[[TopLogProbs, TopLogProbs, int], Law] | None = None
    rank_pmf_given: Callable[[TopLogProbs, TopLogProbs, int, int], Law] | None = None
    most: float = 1
    most_given: float = 1


class _Overlap(NamedTuple):
    """Who knows what: probabilities of tokens known to both, to one alone, and the number known to none."""

    both_target: Floats
    both_draft: Floats
    target_only: Floats
    draft_only: Floats
    outside: int


def overlap(target: TopLogProbs, draft: TopLogProbs) -> _Overlap:
    """Sort the tokens by who knows them."""
    if a_top("target", target).vocabulary != a_top("draft", draft).vocabulary:
        raise ShapeError(
            f"target has {target.vocabulary} tokens and draft {draft.vocabulary}",
            limit="one vocabulary for both",
            remedy="both models must share a tokenizer",
        )
    common, at, bt = np.intersect1d(target.known, draft.known, assume_unique=True, return_indices=True)
    p, q = target.probabilities, draft.probabilities
    outside = target.vocabulary - len(p) - len(q) + len(common)
    return _Overlap(p[at], q[bt], np.delete(p, at), np.delete(q, bt), outside)


def all_known(target: TopLogProbs, draft: TopLogProbs) -> bool:
    """Whether every completion is the disjoint one, up to splits: then all that depends on the ratios is settled."""
    parts = overlap(target, draft)
    target_settled = target.complete or not parts.draft_only.any()
    draft_settled = draft.complete or not parts.target_only.any()
    return target_settled and draft_settled and (target.complete or draft.complete)


def disjoint_tails(target: TopLogProbs, draft: TopLogProbs) -> tuple[Floats, Floats]:
    """Pmfs on C and one token for each tail: above every completion in the order of channels."""
    parts = overlap(target, draft)
    p_tail = math.fsum([target.unseen, *parts.target_only])
    q_tail = math.fsum([draft.unseen, *parts.draft_only])
    return np.append(parts.both_target, [p_tail, 0.0]), np.append(parts.both_draft, [0.0, q_tail])


def best_completion(target: TopLogProbs, draft: TopLogProbs) -> tuple[Floats, Floats]:
    """Pmfs of the completion with the least g(c) for every c, equal tokens merged; good to rounding in total variation.

    On tokens that one side alone knows, the other follows it in proportion up to its cap: min(b, lambda p), or min(a,
    kappa q). What is left lies outside both with ratio q/p = rho: the n tokens there take the q-mass min(n b, t -
    Qa(rho)) and the p-mass min(n a, s - Pb(1/rho)), rho solving q-mass = rho p-mass. These are the optimality
    conditions of every f-divergence at once. Steep divergences need :func:`_best_log_ratios`.
    """
    parts, s, t = overlap(target, draft), target.unseen, draft.unseen
    p_out = q_out = 0.0  # on tokens known to none
    if parts.outside and s and t:
        rho, mass = _ratio_outside(target.cap, s, draft.cap, t, parts)
        p_out, q_out = mass / rho, min(mass, t)
    p_filled, p_left = _fill(s - p_out, target.cap, parts.draft_only)
    q_filled, q_left = _fill(t - q_out, draft.cap, parts.target_only)
    # What rounding leaves over is nothing.
    p_left, q_left = p_left * (p_left > _REST * s), q_left * (q_left > _REST * t)
    p = np.concatenate([parts.both_target, parts.target_only, p_filled, [p_out, p_left, 0.0]])
    q = np.concatenate([parts.both_draft, q_filled, parts.draft_only, [q_out, 0.0, q_left]])
    return p, q


def _ratio_outside(a: float, s: float, b: float, t: float, parts: _Overlap) -> tuple[float, float]:
    """The ratio q/p on tokens known to none (the least that keeps it so if there is none), and their q-mass."""
    n = parts.outside

    def offered(rho: float) -> float:
        return float(min(n * b, t - np.minimum(b, rho * parts.target_only).sum()))

    def wanted(rho: float) -> float:
        return float(min(rho * n * a, rho * s - np.minimum(rho * a, parts.draft_only).sum()))

    low, high = 1e-300, 1e300
    while high > low * (1 + 2 * EPS):
        middle = math.sqrt(low) * math.sqrt(high)
        if not low < middle < high:
            break
        low, high = (middle, high) if max(offered(middle), 0.0) > max(wanted(middle), 0.0) else (low, middle)
    # Nothing lies outside where one side has nothing to give; else both masses from one, in the exact ratio.
    return high, wanted(high) if min(offered(low), wanted(high)) > 0 else 0.0


def _fill(mass: float, cap: float, like: Floats) -> tuple[Floats, float]:
    """Shares min(cap, x * like) that sum to `mass`, and what exceeds the caps of the tokens with like > 0."""
    mass = max(mass, 0.0)
    level = _level(mass, cap, like)
    if level == math.inf:
        positive = like > 0
        return np.where(positive, cap, 0.0), mass - int(np.count_nonzero(positive)) * cap
    return np.minimum(cap, level * like), 0.0


def _level(mass: float, cap: float, like: Floats) -> float:
    """The x for which the shares min(cap, x * like) sum to `mass`; infinite if they cannot exceed it."""
    positive = int(np.count_nonzero(like))
    if mass - positive * cap >= 0:
        return math.inf
    falling = np.sort(like)[::-1][:positive]
    rest = np.cumsum(falling[::-1])[::-1]
    scale = (mass - cap * np.arange(positive)) / rest  # if so many of the largest are at the cap
    fits = scale * falling <= cap + _REST * mass
    return float(scale[int(np.argmax(fits)) if fits.any() else positive - 1])


def _best_log_ratios(parts: _Overlap, a: float, s: float, b: float, t: float) -> Floats:
    """Logarithms of p/q at the best completion: tokens known to both, to the target, to the draft, to none (one entry).

    They come from the common ratios of the uncapped tokens, not from masses, which are differences without right digits
    where the other side has next to nothing.
    """
    rho = _ratio_outside(a, s, b, t, parts)[0] if parts.outside else 1.0
    kappa, lam = (
        min(max(ratio, _level(max(mass - parts.outside * cap, 0.0), cap, like)), _level(mass, cap, like))
        for ratio, mass, cap, like in ((rho, t, b, parts.target_only), (1 / rho, s, a, parts.draft_only))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        both = np.log(parts.both_target) - np.log(parts.both_draft)
        ours = np.maximum(np.log(parts.target_only) - np.log(b), -np.log(kappa))
        theirs = np.minimum(np.log(a) - np.log(parts.draft_only), np.log(lam))
    logs = np.concatenate([both, ours, theirs, [-math.log(rho)]])
    return np.where(np.isnan(logs), 0.0, logs)  # where both have nothing


def farthest_ratios(target: TopLogProbs, draft: TopLogProbs) -> tuple[Floats, Floats]:
    """Target masses and ratios p/q that no completion exceeds; infinite where the draft may give a token nothing."""
    parts = overlap(target, draft)
    least = draft.least_unseen
    under_tail = min([least] * (parts.outside > 0) + parts.draft_only.tolist(), default=1.0)
    most = target.unseen_range[1]
    masses = np.concatenate([parts.both_target, parts.target_only, [most]])
    largest = np.concatenate([parts.both_target, parts.target_only, [min(target.cap, most)]])
    drafts = np.concatenate([parts.both_draft, np.full(len(parts.target_only), least), [under_tail]])
    return masses[masses > 0], ratio(largest, drafts, np)[masses > 0]


def between(
    target: TopLogProbs, draft: TopLogProbs, value: Value, scale: float = 1.0, ceiling: float = 1.0
) -> Interval:
    """Certified interval of a quantity that is monotone in the order of channels.

    A change of either pmf by a total variation distance of d must move it by at most `scale` times d.
    """
    worst = value(*disjoint_tails(target, draft))
    if all_known(target, draft):
        return settled(worst, scale, target, draft)
    low, high = sorted((worst, value(*best_completion(target, draft))))
    return outward(low, high, scale * rounding_slack(target, draft), ceiling=ceiling)
