r"""A draft while a model is trained: its acceptance by training step, and when to train the draft again.

A draft that stays as it is while the target changes (rollouts of reinforcement learning) is accepted less and less.
Let g(s) be the time of a token over that of plain decoding, one over the speed-up, s steps after the draft was
trained, and :math:`g(s) = g_0 + a s` the straight line through the measured steps. If training the draft takes r times
as long as plain decoding of one step's rollouts, retraining every P steps costs r / P + a P / 2 more per step than a
draft that is always fresh, which is least at

.. math:: P = \sqrt{2 r / a}.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from spectheory.deployment.candidates import Draft, all_drafts
from spectheory.deployment.ranking import check_comparable
from spectheory.drafting import Chain
from spectheory.drafting.tree import at_least_one
from spectheory.errors import SettingError, argument
from spectheory.intervals import Interval
from spectheory.prediction import Prediction
from spectheory.prediction.over_prompts import deviation, reach
from spectheory.prediction.plan_answer import measured_nodes, named_rules
from spectheory.prediction.prediction import planned
from spectheory.verification import PathRule, TokenVerification
from spectheory.verification.by_start import within

RETRAINING = (0.1, 1.0, 10.0)
"""Costs of training the draft again, over the time of plain decoding of one step's rollouts."""
_NAME = re.compile(r"step[-_]?(\d+)", re.IGNORECASE)
_ROUNDING = 1e-12
"""Relative: less than this from the first step to the last, time per token does not grow; sums are rounded."""


@dataclass(frozen=True)
class TrainingStep:
    """A checkpoint: the fastest chain, and the chain that was fastest at the first step."""

    step: int
    best: Prediction
    unchanged: Prediction


@dataclass(frozen=True)
class Staleness:
    """Steps in their order, all with one rule. `slope` is a, per step (an estimate: a straight line, with the 95% error
    of the speed-ups, as far as all of them have one). Times of passes that are the same at all steps have an error that
    moves all of them alike: it is left out.

    `pays_until` is the step at which the line reaches plain decoding, None if time per token does not grow; `periods`
    are the steps between two trainings of the draft for costs of :data:`RETRAINING`.
    """

    steps: tuple[TrainingStep, ...]
    rule: PathRule
    slope: Interval
    pays_until: float | None

    @property
    def periods(self) -> tuple[tuple[float, float], ...]:
        """Cost of training the draft again, and the best number of steps between; empty if time does not grow.

        Costs are left out with which plain decoding takes less: :math:`g_0 + r/P + aP/2` at the best P is
        :math:`g_0 + aP`, the line after P steps, so these are the P at which the draft no longer pays.
        """
        if self.pays_until is None:
            return ()
        best = ((cost, math.sqrt(2 * cost / self.slope.best)) for cost in RETRAINING)
        return tuple((cost, steps) for cost, steps in best if steps < self.pays_until - self.steps[0].step)


def step_of(name: str) -> int | None:
    """The training step that a draft's name says; None if it is another name.

    Examples
    --------
    >>> step_of("step100"), step_of("eagle3")
    (100, None)
    """
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def staleness(
    drafts: Sequence[Draft], *, rules: PathRule | str | Iterable[PathRule | str] | None = None, k_max: int = 16
) -> Staleness:
    """What each training step gives, and when the draft should be trained again (predictions: exact for each text).

    The drafts are named by their steps (``step0``, ``step100``). One draft was measured against checkpoints of a
    target, or checkpoints of a draft against one target; sampling and the origin of the texts are equal. The rule is
    token verification, or of those named the one that is fastest at the first step. The fastest k of a step is chosen
    on the texts that it is shown for.

    Raises
    ------
    SettingError
        Fewer than two steps, a step twice, other names, or settings that differ.

    Examples
    --------
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.trace import Trace
    >>> drafts = [
    ...     Draft(name, Trace.from_log_probabilities([([-1.0] * 40, [-1.0 - off] * 40)] * 2), ConstantRatio(0.1))
    ...     for name, off in (("step0", 0.1), ("step100", 0.2), ("step200", 0.4))
    ... ]
    >>> answer = staleness(drafts, k_max=6)
    >>> [(each.step, each.best.shape.k, round(each.best.speedup.best, 2)) for each in answer.steps]
    [(0, 6, 3.1), (100, 6, 2.46), (200, 4, 1.82)]
    >>> [(cost, round(steps)) for cost, steps in answer.periods]
    [(0.1, 13), (1.0, 42), (10.0, 132)]
    """
    drafts = all_drafts(drafts)
    at = {step: draft for draft in drafts if (step := step_of(draft.name)) is not None}
    if len(drafts) < 2 or len(at) < len(drafts):
        raise SettingError(
            f"drafts are named {', '.join(draft.name for draft in drafts) or 'nothing'}",
            limit="needs two training steps or more, each once",
            remedy=f"use {argument('names as step0 and step100', '--trace step0=FOLDER --trace step100=FOLDER')}",
        )
    check_comparable(drafts, same_target=False)
    at = {step: at[step].in_loop for step in sorted(at)}
    drafts = list(at.values())
    k_max = at_least_one("k_max", k_max)
    k_max = min(within(draft.trace.columns, measured_nodes(draft.cost, k_max)) for draft in drafts)
    chains = [Chain(k) for k in range(1, k_max + 1)]
    asked = named_rules(rules, [draft.trace for draft in drafts]) or [TokenVerification()]
    first = planned(drafts[0].trace, drafts[0].cost, asked, chains).best
    steps = []
    for step, draft in at.items():
        of_rule = planned(draft.trace, draft.cost, [first.rule], chains).predictions
        unchanged = next(one for one in of_rule if one.wanted == first.wanted)
        steps.append(TrainingStep(step, max(of_rule, key=lambda one: one.gain), unchanged))
    slope, pays_until = _line(steps, alike=all(draft.cost == drafts[0].cost for draft in drafts))
    return Staleness(tuple(steps), first.rule, slope, pays_until)


def _line(steps: Sequence[TrainingStep], *, alike: bool) -> tuple[Interval, float | None]:
    """The slope of time per token by step, and where the line reaches plain decoding; `alike`: costs are the same."""
    speedups = [each.best.speedup for each in steps if each.best.speedup]
    at, time = np.array([float(each.step) for each in steps]), np.array([1 / each.best for each in speedups])
    ranges = [each.best.tokens_per_call for each in steps] if alike else speedups
    errors = time * [deviation(each.low, each.high) for each in ranges]
    weights = 1 / errors**2 if np.all(errors > 0) else np.ones(len(at))
    middle, mean = weights @ at / weights.sum(), weights @ time / weights.sum()
    spread = weights @ (at - middle) ** 2
    slope = float(weights @ ((at - middle) * (time - mean)) / spread)
    slope = 0.0 if abs(slope) * np.ptp(at) < _ROUNDING * mean else slope
    half = reach(math.inf) / math.sqrt(spread) if np.all(errors > 0) else 0.0
    until = float(middle + (1 - mean) / slope) if slope > 0 else None
    return Interval(slope - half, slope, slope + half, "estimate"), until
