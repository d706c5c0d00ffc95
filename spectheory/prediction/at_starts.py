"""Acceptance by position as an engine counts it: at the starts of its own calls (§13)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectheory.errors import TraceError
from spectheory.prediction.paths import calls_and_visits, tokens_left
from spectheory.trace import Trace
from spectheory.verification import PathRule

Floats = NDArray[np.float64]


def survival_at_starts(trace: Trace, rule: PathRule, k: int, *, prefill_emits_token: bool = True) -> Floats:
    r"""P(a call accepts at least i drafts), i = 1..k, ``[k]`` (§13, exact for the texts of the trace).

    .. math:: S_i(k) = \frac{\sum_n v(n) P(\tau \ge i \mid n)}{\sum_n v(n)}

    The visits v are those of chains of k drafts under this rule, so S_1 differs between k. The mean over all positions
    is another number: calls start after rejections more often than positions do. Starts with fewer than k tokens left
    do not count, since the texts do not say whether drafts past their end would be accepted. By default the prompt's
    pass emits each text's first token.

    Examples
    --------
    Tokens that are accepted for certain and never, in turn: calls start at the former alone.

    >>> from spectheory.verification import TokenVerification
    >>> trace = Trace.from_log_probabilities([([-50.0, -0.5] * 20, [-0.1, -50.0] * 20)])
    >>> survival_at_starts(trace, TokenVerification(), 1, prefill_emits_token=False).round(3).tolist()
    [1.0]
    """
    rule.require(trace.columns)
    survival = rule.path_survival(trace.columns, k)
    lengths = trace.lengths - int(prefill_emits_token)
    if prefill_emits_token:
        kept = np.ones(len(survival), bool)
        kept[np.cumsum(trace.lengths) - trace.lengths] = False
        survival = survival[kept]
    _, visits = calls_and_visits(survival, lengths)
    visits = np.where(tokens_left(lengths) >= k, visits, 0.0)
    if not visits.sum() > 0:
        raise TraceError(
            f"no text has {k} tokens after its first", limit="calls need room for k drafts", remedy="lower --k-max"
        )
    return np.asarray(visits @ survival / visits.sum())
