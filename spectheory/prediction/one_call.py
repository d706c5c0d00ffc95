"""Bounds on one call along the texts of a trace: with one chain of drafts (§7), or with several (§12)."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from spectheory.intervals import Interval
from spectheory.limits.several_chains import several_chain_terms
from spectheory.prediction.call_system import tokens_left
from spectheory.prediction.over_prompts import Prompts
from spectheory.prediction.text_limit import StartsByPosition
from spectheory.trace import Trace
from spectheory.verification.by_start import Columns, along_calls, within

Floats = NDArray[np.float64]


def call_terms(columns: Columns, k: int, chains: int = 1) -> Floats:
    r"""Terms of the bound on the accepted drafts of a call from each start, ``[N, k]`` (§7; of several chains §12).

    With one chain :math:`\min(1, \prod_{l \le i} \rho_{n+l})`. The mean over target-sampled text of the sum of a row
    is an upper bound for a call of any lossless verification of drafts drawn from q. The terms are no survival
    function, and no bound over several calls; argmax drafts may exceed it. Terms past the end of a text carry no
    meaning.

    Examples
    --------
    >>> call_terms({"log_target": np.log([0.5, 0.5]), "log_draft": np.log([0.25, 1.0])}, 2)[0]
    array([0.5, 1. ])
    """
    target, draft = (along_calls(columns, k, itemgetter(name), fill=0.0) for name in ("log_target", "log_draft"))
    return several_chain_terms(target, draft, chains)


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
    starts = StartsByPosition(prompts, trace)
    rooms = {k: starts.with_room(k) for k in ks if k <= within(trace.columns, k)}
    found = {k: whole for k, whole in rooms.items() if whole is not None}
    if not found:
        return {}
    deepest = max(found)
    terms = call_terms(trace.columns, deepest, chains)
    # No draft beyond the end of a text that ended by itself is accepted.
    inside = np.arange(deepest) < tokens_left(trace.lengths)[:, None]
    accepted = np.cumsum(np.where(inside, terms, 0.0), axis=1)
    return {k: starts.mean(accepted[:, k - 1] + 1, whole.astype(np.float64), k) for k, whole in found.items()}
