"""Bounds on one call along the texts of a trace: with one chain of drafts (§7), or with several (§12)."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import numpy as np

from spectheory.intervals import Interval
from spectheory.limits.several_chains import several_chain_terms
from spectheory.prediction.over_prompts import Prompts
from spectheory.prediction.paths import tokens_left
from spectheory.prediction.trace_limits import Starts
from spectheory.trace import Trace
from spectheory.verification.by_start import along_calls, within

_SCORES = ("log_target", "log_draft")


def one_call_bound(prompts: Prompts, trace: Trace, ks: Sequence[int], *, chains: int = 1) -> dict[int, Interval]:
    """Tokens of one call with i.i.d. chains of k drafts, any lossless verification, by k: estimate of an upper bound.

    It is averaged over all starting positions that have room for k tokens, so consecutive calls may exceed it; the
    limit of a whole decoding is :mod:`spectheory.prediction.decoding_limit`. Sizes are missing where texts have too
    few such starts or are no samples of the target, and beyond the drafts that are recorded by start.

    Examples
    --------
    >>> trace = Trace.from_log_probabilities([([-0.7, -0.4] * 16, [-1.6, -0.9] * 16)] * 4)
    >>> [round(one_call_bound(Prompts(trace.texts), trace, [1], chains=k)[1].best, 4) for k in (1, 2)]
    [1.5066, 1.8488]
    """
    starts = Starts(prompts, trace)
    rooms = {k: starts.with_room(k) for k in ks if k <= within(trace.columns, k)}
    found = {k: whole for k, whole in rooms.items() if whole is not None}
    if not found:
        return {}
    deepest = max(found)
    target, draft = (along_calls(trace.columns, deepest, itemgetter(name), fill=0.0) for name in _SCORES)
    terms = several_chain_terms(target, draft, chains)
    # No draft beyond the end of a text that ended by itself is accepted.
    inside = np.arange(deepest) < tokens_left(trace.lengths)[:, None]
    accepted = np.cumsum(np.where(inside, terms, 0.0), axis=1)
    return {k: starts.mean(accepted[:, k - 1] + 1, whole.astype(np.float64), k) for k, whole in found.items()}
