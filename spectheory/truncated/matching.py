"""A4 and R7 from truncated pmfs: what engines really use, exact where the lists decide."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from spectheory.intervals import Interval
from spectheory.truncated.completions import MANY, RuleBounds, all_known, overlap
from spectheory.truncated.top import Floats, Ids, TopLogProbs, outward, rounding_slack, settled
from spectheory.verification.base import Rule
from spectheory.verification.matching import ArgmaxDraft, GreedyMatch, IndependentMatch, TopKMatch

_UNDECIDED = Interval(0.0, 0.5, 1.0, "bound")
_ROUNDING = 1e-12
"""Rounding of a difference of two printed log-probabilities, and of a quotient of masses."""


def _independent_acceptance(target: TopLogProbs, draft: TopLogProbs) -> Interval:
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


def _independent_acceptance_given(draft: TopLogProbs, token: int) -> Interval:
    """Acceptance by an independent match given the output x, q_x (A4, §9; certified, both ends attained)."""
    low, high = draft.range(token)
    return settled(low, 1.0, draft) if low == high else outward(low, high, rounding_slack(draft), ceiling=1.0)


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


class _Places(NamedTuple):
    """Of the known tokens `ids`, how many tokens surely and at most come before each in the draft's order.

    `before_hidden` known tokens surely come before every token that is not known.
    """

    ids: Ids
    surely: Ids
    at_most: Ids
    before_hidden: int


def _places(top: TopLogProbs, hidden_from: int | None = None) -> _Places:
    """The places of tokens by probability, lowest id first among equals, as far as the stated error and cap decide."""
    ids, logs = np.append(top.tokens, top.extra_tokens), np.append(top.log_probs, top.extra_log_probs)
    order = np.lexsort((ids, -logs))
    ids, logs, cap = ids[order], logs[order], top.log_probs[-1]
    margin = 2 * top.error + (_ROUNDING if top.error else 0.0)
    surely = at_most = np.arange(len(ids))
    if top.error:
        possible = logs > -np.inf
        surely = np.where(possible, np.searchsorted(-logs, -(logs + margin), "left"), surely)
        at_most = np.where(possible, np.searchsorted(-logs, -(logs - margin), "right") - 1, at_most)
    if not top.hidden:
        return _Places(ids, surely, at_most, len(ids))
    # Tokens that are not known: at most the cap each, and the unseen mass together.
    tie = (logs == cap) & ((top.error == 0) | (cap == -np.inf))
    lower = ids - np.searchsorted(top.known, ids)
    least, most = np.exp(logs - top.error), top.unseen_range[1] * (1 + _ROUNDING)
    room = np.floor(np.divide(most, least, out=np.full(len(ids), np.inf), where=least > 0))
    ahead = np.where(tie, lower, np.where(logs > cap + margin, 0, top.hidden))
    if hidden_from is None:
        hidden_from = int(np.argmax(np.append(top.known, -1) != np.arange(len(ids) + 1)))
    below = (logs > cap + margin) | (tie & (ids < hidden_from)) | (least > most)
    return _Places(ids, surely, at_most + np.minimum(ahead, room).astype(np.int64), int(below.sum()))


def _top_k_acceptance(target: TopLogProbs, draft: TopLogProbs, k: int) -> Interval:
    r"""P(R <= k) of top-k drafts against a sampled target, :math:`p(\text{top}_k(q))` (R7, §9).

    Exact if the lists decide the draft's k first tokens and the target knows them; else a certified bound over all
    orders that ties at the cap and the stated error allow.
    """
    overlap(target, draft)
    if k >= target.vocabulary:
        return Interval.exact(1.0)
    order = _places(draft)
    sure = order.at_most < k
    chosen = np.isin(target.known, order.ids[sure], assume_unique=True)
    mass = math.fsum(target.probabilities[chosen])
    more, unknown = k - int(sure.sum()), int(sure.sum() - chosen.sum())
    if not more and (target.complete or not unknown):
        return settled(mass, 1.0, target)
    # Further candidates: tokens that may be among the k first, r of them known to the target.
    others = order.ids[~sure & (order.surely < k)]
    may, count = np.isin(target.known, others), len(others)
    if draft.hidden and order.before_hidden < k:
        may, count = may | ~np.isin(target.known, draft.known), count + draft.hidden
    rates = np.sort(target.probabilities[may])
    r = np.arange(max(0, more - (count - len(rates))), min(more, len(rates)) + 1)
    unseen = target.cap * (unknown + more - r)
    least = np.maximum(0.0, target.unseen - target.cap * target.hidden + unseen)
    sums, tops = (np.append(0.0, np.cumsum(side))[r] for side in (rates, rates[::-1]))
    low, high = float(np.min(sums + least)), float(np.max(tops + np.minimum(target.unseen, unseen)))
    return outward(mass + low, mass + high, 2 * rounding_slack(target, draft), ceiling=1.0)


def _greedy_acceptance(target: TopLogProbs, draft: TopLogProbs) -> Interval:
    """1 where the first choices of target and draft agree, else 0 (A4; exact where both are decided)."""
    overlap(target, draft)
    (ours, sure, hidden), (theirs, decided, others) = _first(target), _first(draft)
    outside = hidden and bool(np.setdiff1d(theirs, target.known).size)
    outside = outside or (others and bool(np.setdiff1d(ours, draft.known).size)) or (hidden and others)
    if not (outside or np.intersect1d(ours, theirs).size):
        return Interval.exact(0.0)
    return Interval.exact(1.0) if sure and decided else _UNDECIDED


def _first(top: TopLogProbs) -> tuple[Ids, bool, bool]:
    """The known tokens that may be the most probable, whether one surely is, and whether an unknown one may be."""
    order = _places(top)
    sure = bool(np.any(order.at_most == 0))
    return order.ids[order.surely == 0], sure, bool(top.hidden) and not sure and order.before_hidden == 0


def _top_k_acceptance_given(draft: TopLogProbs, token: int, k: int) -> Interval:
    """1 if the output is among the draft's k most probable tokens, else 0 (R7; exact where the lists decide it)."""
    draft.range(token)
    if k >= draft.vocabulary:
        return Interval.exact(1.0)
    order = _places(draft, token)
    at = np.flatnonzero(order.ids == token)
    if at.size and order.at_most[at[0]] < k:
        return Interval.exact(1.0)
    before = order.surely[at[0]] if at.size else order.before_hidden
    return Interval.exact(0.0) if before >= k else _UNDECIDED


MATCHING: dict[Rule, RuleBounds] = {
    IndependentMatch(): RuleBounds(
        lambda p, q, k: _independent_acceptance(p, q), lambda p, q, x, k: _independent_acceptance_given(q, x)
    ),
    ArgmaxDraft(): RuleBounds(_top_k_acceptance, lambda p, q, x, k: _top_k_acceptance_given(q, x, k)),
    TopKMatch(): RuleBounds(
        _top_k_acceptance, lambda p, q, x, k: _top_k_acceptance_given(q, x, k), most=MANY, most_given=MANY
    ),
    GreedyMatch(): RuleBounds(lambda p, q, k: _greedy_acceptance(p, q), lambda p, q, x, k: _greedy_acceptance(p, q)),
}
"""What is known of rules that match a draw."""
