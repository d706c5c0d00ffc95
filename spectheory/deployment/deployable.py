"""What can be deployed of a predicted trace: the fastest setting of each engine, under the rule that it really runs."""

from __future__ import annotations

from collections.abc import Sequence

from spectheory.checks import instance
from spectheory.deployment.candidates import Draft
from spectheory.deployment.engines import EngineSettings, engine_settings, named_engines
from spectheory.prediction import Plan
from spectheory.trace import Trace
from spectheory.trace.record import a_trace


def deployable(plan: Plan, trace: Trace, engines: Sequence[str] | None = None) -> tuple[EngineSettings, ...]:
    """The fastest setting of each engine for the trace of a plan, with its costs: the fastest engine first.

    `engines` are names of :func:`~spectheory.deployment.serving_engines`; without, every one. Chains are as long as
    those of the plan, and end as its stopping rules say. Of equally fast engines those come first whose setting is one
    line to paste. Empty without costs, and where nothing says what engines would accept: recorded lengths, and lists of
    log-probabilities.

    Examples
    --------
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.prediction import plan
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40), ([-1.0] * 40, [-1.1] * 40)])
    >>> [each.engine for each in deployable(plan(trace, ConstantRatio(0.1)), trace, ["transformers", "vllm"])]
    ['vllm', 'transformers']
    """
    instance("plan", plan, Plan, remedy="spectheory.plan makes one")
    a_trace(trace)
    named_engines(engines)
    if not plan.timed or plan.cost is None or trace.recorded or plan.best.certified:
        return ()
    longest = max(prediction.shape.nodes for prediction in plan.predictions)
    draft = Draft("draft", trace, plan.cost)
    stops = list(dict.fromkeys(each.shape.stop for each in plan.predictions if each.shape.stop))
    settings = engine_settings(
        [draft],
        k_max=longest,
        nodes=longest,
        stops=stops,
        engines=engines,
        prefill_emits_token=plan.prefill_emits_token,
    )
    return fastest_of_each(settings)


def fastest_of_each(settings: Sequence[EngineSettings]) -> tuple[EngineSettings, ...]:
    """The fastest of each engine's settings, the fastest engine first; of equally fast ones those that are one line."""
    best: dict[str, EngineSettings] = {}
    for each in settings:
        known = best.get(each.engine)
        if known is None or each.candidate.speedup.best > known.candidate.speedup.best:
            best[each.engine] = each
    return tuple(sorted(best.values(), key=lambda each: (-each.candidate.speedup.best, "\n" in each.paste)))
