"""How far a setting is from plain decoding, and from its limits: what it needs to pay, how much it reaches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from spectheory.checks import instance, whole
from spectheory.cost import CostModel, PassCost, required_acceptance
from spectheory.cost.iid import iid_tokens_per_call
from spectheory.cost.model import a_cost, reads_besides
from spectheory.drafting import Chain
from spectheory.errors import SettingError
from spectheory.limits.claims import ON_TRACES, LimitClaim
from spectheory.prediction import Prediction

MOST_TRIED = 4096
"""Most lengths that are tried."""


@dataclass(frozen=True)
class BreakEven:
    """Where the speed-up of a setting is 1, all else unchanged.

    - `draft_ratio` is what a draft pass of this shape costs on average, in target steps, `draft_ratio_needed` what it
      may cost at most (exact). None without a draft pass; the second also if the setting loses with free drafts.
    - `tokens_per_call` is what a call gives, `tokens_per_call_needed` what it must give: a call over a target step.
    - `acceptance` and `acceptance_needed` are the i.i.d. acceptance rates that would give these tokens per call
      (inverse of C1, an idealised value); chains alone, and None if accepting every draft is not enough.
    - `least_acceptance` is the smallest i.i.d. acceptance rate at which some chain pays, `least_acceptance_k` its
      length; None if none does. What a first draft pass reads goes by that rate; chains copied
      from the text are assumed to be as often short as now.
    """

    draft_ratio: float | None
    draft_ratio_needed: float | None
    tokens_per_call: float
    tokens_per_call_needed: float
    acceptance: float | None
    acceptance_needed: float | None
    least_acceptance: float | None
    least_acceptance_k: int | None


def break_even(prediction: Prediction, cost: CostModel, k_max: int = 16) -> BreakEven:
    r"""Solve the speed-up of a setting for one of its factors (C1, C2; exact for the best values given).

    With tokens per call :math:`\tau`, target step t(1), verification t(n+1) (the mean over calls, where drafts vary in
    length) and d draft passes of mean cost :math:`c\,t(1)`, the speed-up is :math:`\tau t(1) / (t(n+1) + d c\,t(1))`.
    `cost` is what the prediction's speed-up was computed with, and `k_max` the longest chain for the smallest
    acceptance rate.

    Examples
    --------
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.prediction import predict
    >>> from spectheory.trace import Trace
    >>> from spectheory.verification import TokenVerification
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-2.0] * 40)] * 2)
    >>> losing = predict(trace, TokenVerification(), Chain(2), ConstantRatio(0.5))
    >>> point = break_even(losing, ConstantRatio(0.5))
    >>> round(losing.speedup.best, 3), round(point.draft_ratio_needed, 3), round(point.least_acceptance, 3)
    (0.744, 0.244, 0.5)
    """
    a_cost(cost)
    k_max = whole("k_max", k_max, most=MOST_TRIED, remedy="16 is usual")
    speedup = _a_prediction(prediction).speedup
    if speedup is None:
        raise SettingError("the prediction has no speed-up", limit="needs costs", remedy="predict with a cost model")
    shape, tokens = prediction.shape, prediction.tokens_per_call.best
    step = cost.target_step().best
    needed = tokens / speedup.best
    verify = cost.verification(shape).best / step if isinstance(cost, PassCost) else 1.0
    passes = len(shape.passes)
    chain = shape.is_chain
    least = _least_acceptance(cost, shape.of_length if isinstance(shape, Chain) else Chain, k_max)
    return BreakEven(
        draft_ratio=max(0.0, (needed - verify) / passes) if passes else None,
        draft_ratio_needed=(tokens - verify) / passes if passes and tokens >= verify else None,
        tokens_per_call=tokens,
        tokens_per_call_needed=needed,
        acceptance=_acceptance(tokens, shape.depth) if chain else None,
        acceptance_needed=_acceptance(needed, shape.depth) if chain else None,
        least_acceptance=least[0] if least else None,
        least_acceptance_k=least[1] if least else None,
    )


def _acceptance(tokens: float, k: int) -> float | None:
    """The rate at which k i.i.d. drafts give so many tokens per call (C1): none if they cannot."""
    if tokens <= 1:
        return 0.0
    return required_acceptance(tokens, k, 0.0) if tokens <= k + 1 else None


def _least_acceptance(cost: CostModel, chain: Callable[[int], Chain], k_max: int) -> tuple[float, int] | None:
    from scipy.optimize import brentq

    pairs = []
    for k in range(1, k_max + 1):
        gain = partial(_iid_gain, cost, chain(k))
        try:
            if gain(1.0) >= 0:
                pairs.append((0.0 if gain(0.0) >= 0 else brentq(gain, 0.0, 1.0), k))
        except SettingError:  # beyond what was measured
            break
    return min(pairs) if pairs else None


def _iid_gain(cost: CostModel, chain: Chain, rate: float) -> float:
    """Tokens per call at an i.i.d. acceptance rate, less those that its time in target steps needs."""
    tokens = iid_tokens_per_call(rate, chain.k)
    return tokens - cost.call(chain, reads_besides(cost, tokens - 1, rate**chain.k)).best / cost.target_step().best


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
    [('B7', 1.0), ('B6', 0.81)]
    """
    tokens = _a_prediction(prediction).tokens_per_call.best
    shares = []
    for limit in ON_TRACES:
        best = prediction.compared(limit)
        if best is not None:
            speedup = prediction.speedup.best * best / tokens if prediction.speedup else None
            shares.append(Distance(limit, best, tokens / best, limit.key in prediction.rule.bound_by, speedup))
    return shares


def _a_prediction(prediction: Prediction) -> Prediction:
    """Check that an argument is a prediction."""
    return instance("prediction", prediction, Prediction, remedy="spectheory.predict makes one")
