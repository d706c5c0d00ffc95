"""How far a setting is from the limits beside it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from spectheory.intervals import Interval
from spectheory.prediction import Prediction

CLAIMS = {
    "one_call": ("1 call", "limit", "any lossless verification of a chain drawn from the draft; one call, any start"),
    "text": ("B6", "limit", "drafts that do not sample, trees of as many nodes; one call, any start"),
    "iid_branching": ("B2'", "reading", "what B6 would be under i.i.d. conditional pmfs of the target"),
    "iid_channel": ("T1", "reading", "trees of as many nodes if ranks were i.i.d. along the text"),
}
"""Name, side and assumption of each limit, by its field in Limits."""


@dataclass(frozen=True)
class Distance:
    """A setting against one limit.

    Attributes
    ----------
    name, side, claim : str
        What the limit is called, ``limit`` or ``reading``, and for what it holds.
    tokens_per_call : float
        The limit's best value.
    reached : float
        Tokens per call of the setting over it.
    binds : bool
        Whether the limit is about settings of this kind; otherwise it only says what others could give.
    speedup : float, optional
        What a call of the same cost would give at the limit.
    """

    name: str
    side: str
    claim: str
    tokens_per_call: float
    reached: float
    binds: bool
    speedup: float | None

    def as_dict(self) -> dict[str, Any]:
        """The fields as a JSON-ready dictionary."""
        return asdict(self)


def distances(prediction: Prediction) -> list[Distance]:
    """The limits and readings of a prediction, with the share of each that it reaches.

    A share above one is possible: limits are averaged over all starting positions, and readings are idealised.

    Parameters
    ----------
    prediction : Prediction
        The setting.

    Examples
    --------
    >>> from spectheory.drafting import Chain
    >>> from spectheory.prediction import predict
    >>> from spectheory.trace import Trace
    >>> from spectheory.verification import TokenVerification
    >>> trace = Trace.from_log_probabilities([([-0.7, -0.4] * 16, [-1.6, -0.9] * 16)] * 4)
    >>> [(d.name, round(d.reached, 2)) for d in distances(predict(trace, TokenVerification(), Chain(2)))]
    [('1 call', 0.99), ('B6', 0.83)]
    """
    tokens = prediction.tokens_per_call.best
    found = []
    for field, (name, side, claim) in CLAIMS.items():
        value = getattr(prediction.limits, field)
        best = value.best if isinstance(value, Interval) else value
        if best is not None:
            speedup = prediction.speedup.best * best / tokens if prediction.speedup else None
            found.append(Distance(name, side, claim, best, tokens / best, field in prediction.rule.bound_by, speedup))
    return found
