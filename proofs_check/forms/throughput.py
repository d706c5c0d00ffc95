"""Many sequences at once (C4): what a call gains over plain steps, the knee and the break-even, in fractions."""

from __future__ import annotations

from math import inf

from proofs_check.forms.roofline import seconds
from proofs_check.prelude import *

Times = Sequence[Real]
"""Seconds to read the weights, to read a sequence's cache, to compute a token, and beside; empty for free drafts."""


def gain(target: Times, draft: Times, k: int, tokens: Real, batch: Real) -> Real:
    """Tokens per call times a plain step, minus a call of a chain: above 0 where speculative decoding pays."""
    drafting = k * seconds(draft, 1, batch) if draft else 0
    return tokens * seconds(target, 1, batch) - seconds(target, k + 1, batch) - drafting


def knee(time: Times, tokens: int) -> Any:
    """The batch at which computing takes as long as reading; None if it never does."""
    weights, cache, token, _ = time
    excess = tokens * token - cache
    return weights / excess if excess > 0 else None


def end(target: Times, draft: Times, k: int, tokens: Real) -> Any:
    """The upper end of the batches that pay: None if none does, infinite if there is no end; linear between knees."""
    knees = {knee(target, 1), knee(target, k + 1), *([knee(draft, 1)] if draft else [])} - {None}
    corners = [Fraction(1), *sorted(at for at in knees if at > 1)]
    corners.append(2 * corners[-1])
    gains = [gain(target, draft, k, tokens, at) for at in corners]
    if gains[-1] > gains[-2] or gains[-1] == gains[-2] > 0:
        return inf
    last = max((i for i, value in enumerate(gains) if value > 0), default=None)
    if last is None:
        return None
    left = min(last, len(corners) - 2)  # beyond the last corner the last line goes on
    (a, b), (x, y) = corners[left : left + 2], gains[left : left + 2]
    return a + x * (b - a) / (x - y)


def small_times(effort: Effort) -> Iterator[Case]:
    """Pairs of small whole times, free drafts among them."""
    highest = effort.pick(2, 4)
    drafts = [(), *product((1,), range(highest + 1), (1,), (0, 2))]
    for cache, overhead, draft, k, weights in product(range(5), (0, 1), drafts, (1, 3), (3, 20)):
        for share in (0, 1, 2, 3):
            target = tuple(map(Fraction, (weights, cache, 1, overhead)))
            tokens = 1 + Fraction(share * k, 3)
            yield {"target": target, "draft": tuple(map(Fraction, draft)), "k": k, "tokens": tokens}


INDEPENDENT: tuple[Case, ...] = (
    {
        "target": tuple(map(Fraction, (10, 2, 1, 0))),
        "draft": tuple(map(Fraction, (1, 2, 1, 0))),
        "k": 1,
        "tokens": Fraction(3, 2),
        "has_knee": 0,
        "has_end": 1,
    },
    {
        "target": (Fraction(10), Fraction(3, 2), Fraction(1), Fraction(0)),
        "draft": (),
        "k": 1,
        "tokens": Fraction(3, 2),
        "has_knee": 1,
        "has_end": 0,
    },
)
"""A break-even without a knee, where the draft's cache weighs as much as the target's, and a knee without an end."""
