"""What to do next with a prediction: a command, or what to change, the most useful first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from spectheory.cost import LatencyTable
from spectheory.deployment.engines import EngineSettings
from spectheory.prediction import Plan

WANTED = 0.05
"""Half of a 95% interval of tokens per call, relative, that is narrow enough to decide."""


def next_steps(plan: Plan, engines: Sequence[EngineSettings], trace: str = "TRACE") -> list[str]:
    """What narrows or improves an answer, a sentence each; `trace` is how the trace is written in commands.

    Examples
    --------
    >>> from spectheory import Trace
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.deployment.deployable import deployable
    >>> from spectheory.prediction import plan
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.1] * 40), ([-1.0] * 40, [-1.0] * 40)])
    >>> found = plan(trace, ConstantRatio(0.01), k_max=2)
    >>> next_steps(found, deployable(found, trace))[0]
    'k = 2 is the longest that was tried: spectheory predict TRACE --k-max 4'
    """
    best = engines[0].candidate.prediction if engines else plan.best
    longest = max(p.shape.nodes for p in plan.predictions if p.shape.is_chain == best.shape.is_chain)
    steps = []
    if best.speedup is not None and best.speedup.best <= 1:
        steps.append("a cheaper or better draft is needed: spectheory bounds --need 1.2 --c C says how good")
    elif best.shape.is_chain and best.shape.nodes == longest:
        steps.append(f"k = {longest} is the longest that was tried: spectheory predict {trace} --k-max {2 * longest}")
    tokens = best.tokens_per_call
    half = (tokens.high - tokens.low) / 2 / tokens.best
    if tokens.kind == "statistical" and half > WANTED and plan.prompts > 1:
        needed = math.ceil(plan.prompts * (half / WANTED) ** 2)
        steps.append(f"about {needed} prompts, in place of {plan.prompts}, give tokens per call to ±{WANTED:.0%}")
    if not isinstance(plan.cost, LatencyTable):
        steps.append("time the pair in place of a guessed c: spectheory measure")
    steps.append(f"where calls are lost: spectheory predict {trace} --where")
    return steps
