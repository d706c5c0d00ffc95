"""A4 and R7 from truncated pmfs: what engines really use, exact where the lists decide."""

from __future__ import annotations

import math

import numpy as np

from spectheory.intervals import Interval
from spectheory.truncated.completions import all_known, overlap
from spectheory.truncated.masses import Floats
from spectheory.truncated.outward import outward, rounding_slack, settled
from spectheory.truncated.top import TopLogProbs
from spectheory.verification.base import at_least_one


def independent_acceptance(target: TopLogProbs, draft: TopLogProbs) -> Interval:
    r"""Acceptance of an independent match :math:`\sum_x p_xq_x` over all completions (A4, §9; certified bound).

    At the high end each tail fills the other side's tokens from the largest down, and the rest of both meets outside.
    It is attained unless one side alone knows an extra token, which counts here as large as the cap.
    """
    parts = overlap(target, draft)
    low = float(np.sum(parts.both_target * parts.both_draft))
    if all_known(target, draft):
        return settled(low, 2.0, target, draft)
    on_draft, p_left = _earn(target.unseen, target.cap, np.maximum(parts.draft_only, draft.cap))
    on_target, q_left = _earn(draft.unseen, draft.cap, np.maximum(parts.target_only, target.cap))
    high = low + on_draft + on_target + _meet(p_left, target.cap, q_left, draft.cap)
    return outward(low, high, 2 * rounding_slack(target, draft), ceiling=1.0)


def _earn(mass: float, cap: float, rates: Floats) -> tuple[float, float]:
    """The most that `mass` earns at most `cap` per rate, and what is left over."""
    room = cap * np.arange(len(rates))
    shares = np.clip(mass - room, 0.0, cap)
    return float(np.sum(shares * np.sort(rates)[::-1])), max(0.0, mass - cap * len(rates))


def _meet(p_mass: float, p_cap: float, q_mass: float, q_cap: float) -> float:
    """Largest sum of p q over tokens that hold these masses under these caps: aligned and full one by one."""
    if min(p_mass, q_mass) == 0:
        return 0.0
    full = min(math.floor(p_mass / p_cap), math.floor(q_mass / q_cap))
    return full * p_cap * q_cap + min(p_cap, p_mass - full * p_cap) * min(q_cap, q_mass - full * q_cap)


def top_k_acceptance(target: TopLogProbs, draft: TopLogProbs, k: int) -> Interval:
    r"""P(R <= k) of top-k drafts against a sampled target, :math:`p(\text{top}_k(q))` (R7, §9).

    Exact if k <= m and the target knows those tokens; else a certified bound, both ends attained for k <= m.
    """
    at_least_one("k", k)
    overlap(target, draft)
    if k >= target.vocabulary:
        return Interval.exact(1.0)
    candidates = draft.tokens[:k]
    more = k - len(candidates)
    chosen = np.isin(target.known, candidates, assume_unique=True)
    mass = math.fsum(target.probabilities[chosen])
    unknown = len(candidates) - int(chosen.sum())
    if not more and (target.complete or not unknown):
        return settled(mass, 1.0, target)
    low = mass + max(0.0, target.unseen - target.cap * (target.hidden - unknown))
    # Of the further candidates, r are the most probable known to the target and the rest are unseen.
    known = np.sort(target.probabilities[~chosen])[::-1][:more]
    sums = np.concatenate([[0.0], np.cumsum(known)])
    unseen = np.minimum(target.unseen, target.cap * (unknown + more - np.arange(len(sums))))
    return outward(low, mass + float(np.max(sums + unseen)), 2 * rounding_slack(target, draft), ceiling=1.0)


def greedy_acceptance(target: TopLogProbs, draft: TopLogProbs) -> Interval:
    """1 where the first choices of target and draft agree, else 0 (A4; always exact)."""
    overlap(target, draft)
    return Interval.exact(float(target.tokens[0] == draft.tokens[0]))


def top_k_acceptance_given(draft: TopLogProbs, token: int, k: int) -> Interval:
    """1 if the output is among the draft's k most probable tokens, else 0 (R7; exact if k <= m or it is listed)."""
    at_least_one("k", k)
    draft.range(token)
    if token in draft.tokens[:k] or k >= draft.vocabulary:
        return Interval.exact(1.0)
    listed = len(draft.tokens)
    return Interval.exact(0.0) if k <= listed or token in draft.tokens else Interval(0.0, 0.5, 1.0, "bound")
