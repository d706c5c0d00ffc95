"""What recorded lengths say, and what other readings of the same log would have said (§10)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from spectheory.drafting import Chain
from spectheory.prediction.answer import RecordedReading
from spectheory.prediction.per_prompt import Largest, per_prompt
from spectheory.prediction.prediction import planned
from spectheory.prediction.recorded import DEFAULT_K, recorded_rules
from spectheory.trace import Trace
from spectheory.verification import RecordedMatch


def recorded_readings(
    trace: Trace, k_max: int = DEFAULT_K, *, prefill_emits_token: bool = False
) -> Iterator[RecordedReading]:
    """Every draft of recorded lengths with every k up to `k_max` or the recorded depth.

    Examples
    --------
    >>> import numpy as np
    >>> from spectheory.trace import TextInfo
    >>> columns = {"recorded_match": np.array([[2], [1], [1], [1], [1], [1]])}
    >>> trace = Trace(columns, (TextInfo("1", 6),), {"recorded": ["eagle"]})
    >>> [(each.k, each.by_start.best, each.by_position) for each in recorded_readings(trace)]
    [(1, 2.0, 2.0), (2, 2.0, 3.0)]
    """
    largest = Largest.of_trace(trace)
    for rule in recorded_rules(trace):
        shapes = [Chain(k) for k in range(1, min(k_max, rule.most) + 1)]
        exact, rough = (
            planned(trace, None, [each], shapes, prefill_emits_token=prefill_emits_token).predictions
            for each in (rule, replace(rule, by_position=True))
        )
        by_prompt = per_prompt(trace, rule, shapes, prefill_emits_token=prefill_emits_token)
        share = _recut_share(trace, rule)
        for one, other, alike in zip(exact, rough, by_prompt, strict=True):
            yield RecordedReading(
                draft=rule.name,
                k=one.shape.nodes,
                by_start=one.tokens_per_call,
                over_requests=alike.mean,
                by_position=other.tokens_per_call.best,
                iid=one.iid_tokens_per_call,
                recut=share,
                most=rule.most,
                largest=largest,
            )


def _recut_share(trace: Trace, rule: RecordedMatch) -> float | None:
    """Share of the starts with 0 < a(n) < most, not the last of a text, where a(n + 1) = a(n) - 1; None without any.

    Examples
    --------
    >>> import numpy as np
    >>> from spectheory.trace import TextInfo
    >>> columns = {"recorded_match": np.array([[3], [2], [0], [1], [0]])}
    >>> _recut_share(Trace(columns, (TextInfo("1", 5),)), RecordedMatch("eagle", (0,), 4))
    0.6666666666666666
    """
    accepted = rule.matched(trace.columns)
    inside = np.ones(len(trace), dtype=bool)
    inside[np.cumsum(trace.lengths) - 1] = False
    starts = ((accepted > 0) & (accepted < rule.most) & inside).nonzero()[0]
    return float((accepted[starts + 1] == accepted[starts] - 1).mean()) if len(starts) else None
