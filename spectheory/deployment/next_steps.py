"""Why a setting is no faster, and what to do next: commands, the most useful first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from spectheory.cost import ConstantRatio, CostModel, LatencyTable
from spectheory.cost.model import reads_besides
from spectheory.drafting import Chain, Copied
from spectheory.intervals import Interval
from spectheory.limits.claims import BY_START, TEXT, WHOLE_DECODING
from spectheory.prediction import Plan, Prediction
from spectheory.trace import MOST_DEPTH

WANTED = 0.05
"""Half of a 95% interval of tokens per call, relative, that is narrow enough to decide."""
_LONGEST = 1024
"""That ``predict`` takes as ``--k-max``."""


def why_not_more(best: Prediction, cost: CostModel | None) -> str:
    """What keeps a setting from a larger speed-up: rejections, the time of drafting, and a limit that binds its rule.

    Empty without costs, and where the range is certain bounds.

    Examples
    --------
    >>> from spectheory import Trace
    >>> from spectheory.prediction import plan
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.4] * 40), ([-1.0] * 40, [-1.1] * 40)])
    >>> answer = plan(trace, ConstantRatio(0.2), rules="token", k_max=2)
    >>> print(why_not_more(answer.best, answer.cost).rpartition("; upper")[0])
    79% of first drafts are accepted (if all drafts were: 2.14x); drafting takes 29% of a call (if free: 2.34x)
    """
    if cost is None or best.certified or best.speedup is None:
        return ""
    shape, tokens = best.shape, best.tokens_per_call.best
    accepted = f"{best.acceptance.best:.0%} of first drafts are accepted"
    if shape.stop:  # what a call drafts and takes is decided by its drafts
        return accepted
    call, step = cost.call(shape).best, cost.target_step().best
    free = cost.call(Chain(shape.nodes, schedule=Copied())).best  # as a call that copies its drafts
    everything = cost.speedup(Interval.exact(shape.depth + 1.0), shape, reads_besides(cost, shape.depth, 1)).best
    said = [f"{accepted} (if all drafts were: {everything:.2f}x)"]
    if shape.passes and call > free:
        share = (call - free) / call
        said.append(f"drafting takes {share:.0%} of a call (if free: {tokens * step / free:.2f}x)")
    for claim in (WHOLE_DECODING, BY_START, TEXT):
        if claim.key in best.rule.bound_by and (most := best.compared(claim)):
            said.append(f"{claim.words}, k = {shape.nodes}: {most:.2f} tokens per call")
            break
    return "; ".join(said)


def next_steps(
    best: Prediction, cost: CostModel | None, *, tried: int, prompts: int, trace: str = "TRACE"
) -> Iterator[str]:
    """What narrows or improves an answer, a sentence each.

    `tried` is the largest number of drafts per call that was tried, and `trace` how the trace is written in commands.

    Examples
    --------
    >>> from spectheory import Trace
    >>> from spectheory.prediction import plan
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.1] * 40), ([-1.0] * 40, [-1.0] * 40)])
    >>> answer = plan(trace, ConstantRatio(0.01), k_max=2)
    >>> next(next_steps(answer.best, answer.cost, tried=2, prompts=2))
    'k = 2 is the longest that was tried: set --k-max 4'
    """
    if best.speedup is not None and best.speedup.best <= 1:
        yield "a cheaper or better draft is needed: spectheory bounds --need 1.2 --c C says how good"
    elif best.shape.is_chain and best.shape.nodes == tried:
        settings = best.provenance.get("settings")
        depth = settings.get("depth") if isinstance(settings, Mapping) else None
        if depth is not None and tried >= depth:
            draft = best.provenance.get("draft")
            most = (draft.get("deepest") if isinstance(draft, Mapping) else None) or MOST_DEPTH
            if tried < most:
                deeper = f"--depth {min(2 * tried, most)}"
                yield f"k = {tried} is the deepest that was recorded of this head: measure it with {deeper}"
        elif isinstance(cost, LatencyTable) and tried + 1 >= max(cost.target):
            yield f"k = {tried} is the longest that was timed: measure with spectheory predict --k-max {2 * tried}"
        elif tried < _LONGEST:
            yield f"k = {tried} is the longest that was tried: set --k-max {min(2 * tried, _LONGEST)}"
    tokens = best.tokens_per_call
    half = (tokens.high - tokens.low) / 2 / tokens.best
    if tokens.kind == "statistical" and half > WANTED and prompts > 1:
        needed = math.ceil(prompts * (half / WANTED) ** 2)
        yield f"about {needed} prompts, in place of {prompts}, give tokens per call to ±{WANTED:.0%}"
    if isinstance(cost, ConstantRatio) and cost.c > 0:
        yield "time the pair in place of a guessed c: spectheory measure"
    yield f"where calls are lost: spectheory predict {trace} --where"


def steps_of(plan: Plan, best: Prediction, trace: str = "TRACE") -> Iterator[str]:
    """The next steps of a prediction whose first setting is `best`."""
    tried = max(each.shape.nodes for each in plan.predictions)
    return next_steps(best, plan.cost, tried=tried, prompts=plan.prompts, trace=trace)
