"""The one-call bound along the texts of a trace (§7)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spectheory.intervals import Interval
from spectheory.prediction.over_prompts import Prompts
from spectheory.prediction.paths import one_call_terms, tokens_left
from spectheory.prediction.trace_limits import Starts
from spectheory.trace import Trace
from spectheory.verification.by_start import along_calls, log_ratio, within


def one_call_bound(prompts: Prompts, trace: Trace, ks: Sequence[int]) -> dict[int, Interval]:
    """Tokens of one call with a chain of k drafts, any lossless verification, by k (§7, estimate of an upper bound).

    It is averaged over all starting positions that have room for k tokens, so consecutive calls may exceed it; the
    limit of a whole decoding is :mod:`spectheory.prediction.decoding_limit`. Sizes are missing where texts have too
    few such starts or are no samples of the target, and beyond the drafts that are recorded by start.

    Examples
    --------
    >>> trace = Trace.from_log_probabilities([([-0.7, -0.4] * 16, [-1.6, -0.9] * 16)] * 4)
    >>> round(one_call_bound(Prompts(trace.texts), trace, [1])[1].best, 4)
    1.5066
    """
    starts = Starts(prompts, trace)
    rooms = {k: starts.with_room(k) for k in ks if k <= within(trace.columns, k)}
    found = {k: whole for k, whole in rooms.items() if whole is not None}
    if not found:
        return {}
    deepest = max(found)
    terms, _ = one_call_terms(along_calls(trace.columns, deepest, log_ratio, fill=0.0), trace.lengths)
    # No draft beyond the end of a text that ended by itself is accepted.
    inside = np.arange(deepest) < tokens_left(trace.lengths)[:, None]
    accepted = np.cumsum(np.where(inside, terms, 0.0), axis=1)
    return {k: starts.mean(accepted[:, k - 1] + 1, whole.astype(np.float64), k) for k, whole in found.items()}
