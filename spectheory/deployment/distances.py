"""How far a setting is from the limits of its trace."""

from __future__ import annotations

from dataclasses import dataclass

from spectheory.limits.claims import ON_TRACES, LimitClaim
from spectheory.prediction import Prediction
from spectheory.prediction.answer import a_prediction


@dataclass(frozen=True)
class Distance:
    """A setting and one limit.

    `tokens_per_call` is the limit's best value, `reached` the share of it that the setting gives, and `speedup` what a
    call of the same cost would give at the limit. The limit `binds` if it is about settings of this kind; otherwise it
    only says what others could give.
    """

    limit: LimitClaim
    tokens_per_call: float
    reached: float
    binds: bool
    speedup: float | None


def distances(prediction: Prediction) -> list[Distance]:
    """The limits and idealised values of a prediction, with the share of each that it reaches.

    A share of B6 above one is possible: it is an estimate for a single call.

    Examples
    --------
    >>> from spectheory.drafting import Chain
    >>> from spectheory.prediction import predict
    >>> from spectheory.trace import Trace
    >>> from spectheory.verification import TokenVerification
    >>> trace = Trace.from_log_probabilities([([-0.7, -0.4] * 16, [-1.6, -0.9] * 16)] * 4)
    >>> [(d.limit.name, round(d.reached, 2)) for d in distances(predict(trace, TokenVerification(), Chain(2)))]
    [('B7', 1.0), ('B6', 0.83)]
    """
    tokens = a_prediction(prediction).tokens_per_call.best
    found = []
    for limit in ON_TRACES:
        best = prediction.compared(limit)
        if best is not None:
            speedup = prediction.speedup.best * best / tokens if prediction.speedup else None
            found.append(Distance(limit, best, tokens / best, limit.key in prediction.rule.bound_by, speedup))
    return found
