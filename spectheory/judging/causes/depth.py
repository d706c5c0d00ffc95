"""Acceptance that ends at some depth of a call: a fault of hidden states or of the draft's cache."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spectheory.judging.causes.base import Cause, Context, Finding, best_fit
from spectheory.judging.comparison import Comparison
from spectheory.judging.standing import FALSE_ALARMS, Floats, Standing

FAR_BELOW = 0.5
"""Deeper drafts are accepted less than this times as often as expected."""


def explains(context: Context) -> Finding | None:
    """Nothing is accepted beyond a depth and all else fits; or the first draft is as expected, later ones are not."""
    if not context.refuted[0].positions:
        return None
    for depth in range(1, context.counting.k):
        survivals: Mapping[str, str | Floats] = {
            one.rule: context.survival(one.rule) * (np.arange(context.counting.k) < depth) for one in context.refuted
        }
        if found := best_fit(context, survivals, context.counting):
            rule, standing = found
            what = f"nothing is accepted beyond position {depth} of a call, and up to there rule {rule} fits"
            return Finding(DEPTH.name, f"{what} (p = {standing.p:.2g}): {SUSPECTS}", rule, standing, standing.closeness)
    falling = [one for one in context.refuted if _falls(one)]
    if not falling:
        return None
    rule, starts = falling[0].rule, falling[0].starts
    counts = ", ".join(f"{one.counted} of {one.low:.0f}" for one in starts[1:])
    sentence = f"the first draft of a call is accepted as expected, later ones far less ({counts} expected): {SUSPECTS}"
    return Finding(DEPTH.name, sentence, rule, {"starts": starts})


def _falls(one: Standing) -> bool:
    return len(one.starts) > 1 and one.starts[0].p >= FALSE_ALARMS and all(map(_far_below, one.starts[1:]))


def _far_below(one: Comparison) -> bool:
    return one.p < FALSE_ALARMS and one.counted < FAR_BELOW * one.low


SUSPECTS = "look at the hidden states or the cache that drafts after the first one read"
DEPTH = Cause("dead beyond a depth", "acceptance is zero, or far below, beyond the first drafts of a call", explains)
