"""What a plan assumes and leaves out, in sentences."""

from __future__ import annotations

from spectheory.cost import LatencyTable, LoopedTable, Roofline
from spectheory.deployment import serving_engines, without_method, without_stop
from spectheory.deployment.lock_step import MOST_TOGETHER
from spectheory.deployment.whole import Deployment
from spectheory.prediction.over_prompts import Prompts, few_prompts
from spectheory.prediction.remarks import given, sampled_choices
from spectheory.reports.recorded import heavy, recorded_notes
from spectheory.reports.remarks import IN_LOOP

OF_ENGINES = (
    "An engine's k may differ from the best k above: it is the fastest under the engine's own rule by the time of "
    "passes alone. The engine's own work between passes comes on top."
)
"""Why settings for engines differ from the best setting."""
CHOSEN = (
    "Lengths, sizes and the best setting are chosen on the texts they are scored on, and the intervals do not include "
    "that choice."
)


def _of_lengths(answer: Deployment) -> list[str]:
    """What holds of recorded lengths."""
    lines = heavy(answer.recorded, answer.ranking.best.prediction)
    lines += [line for draft in answer.drafts for line in recorded_notes(draft.trace.provenance, answer.recorded)]
    return [*dict.fromkeys(lines), CHOSEN, *few_prompts(answer.prompts)]


def deployment_notes(answer: Deployment) -> list[str]:
    """What must be known to trust a plan, a sentence each."""
    if answer.recorded:
        return _of_lengths(answer)
    drafts, ranking, engines = answer.drafts, answer.ranking, answer.engines
    costs = [draft.cost for draft in drafts]
    lines = [
        "Tokens per call count the recovered or bonus token; exact for the texts of the trace (path theorem).",
        "Intervals (95%) are over prompts and latencies together. Settings whose intervals overlap may still differ, "
        "since they share prompts and latencies.",
        f"Trees are scored on other prompts than those they were found on. {CHOSEN}",
        IN_LOOP if isinstance(ranking.best.draft.cost, LoopedTable) else "Speed-ups are of passes alone.",
        OF_ENGINES,
    ]
    rule = ranking.best.prediction.rule.name
    if rule not in {settings.candidate.prediction.rule.name for settings in engines}:
        lines.append(f"No engine here has {rule} verification, the best rule: see what each engine's own rule gives.")
    lines += [*without_method(drafts), *without_stop(answer.stops)]
    for cost in costs[:1]:
        if isinstance(cost, LatencyTable):
            lines.append(
                f"Latencies are of batch 1 and context {cost.context}: for other batches and contexts give --hardware."
            )
        elif isinstance(cost, Roofline):
            lines.append(
                f"Seconds are a roofline's, an estimate, at batch {cost.batch} and context {cost.context}; in the "
                "table every sequence has the same context."
            )
            if max((choice.batch for choice in answer.batches), default=0) > MOST_TOGETHER:
                lines.append(f"Lock-step is planned up to {MOST_TOGETHER} texts.")
    best = ranking.best.prediction.shape
    if best.nodes == (answer.k_max if ranking.best.kind == "chain" else answer.nodes):
        lines.append("The best shape is the largest tried: a longer --k-max or a larger --nodes-max may give more.")
    lines += [f"Left out: {what}" for what in ranking.left_out]
    if len({draft.fact("prompts", "sha256") for draft in drafts}) > 1:
        lines.append("The drafts were measured on different prompts: part of their difference is the text's.")
    lines += next(filter(None, (given(draft.trace.provenance) for draft in drafts)), [])
    if drafts[0].fact("settings", "sampling", "min_p"):
        able = [engine.name for engine in serving_engines() if engine.takes_min_p]
        lines.append(f"Measured with min-p, which holds where drafts are verified in these engines: {', '.join(able)}.")
    if any(draft.fact("settings", "sampling", "temperature") == 0 for draft in drafts):
        lines.append("Greedy decoding: every rule accepts the target's first choice alone; trees are left out.")
    prompts = [Prompts(draft.trace.texts) for draft in drafts]
    chosen_on = min(filter(None, (each.chosen_on for each in prompts)), default=None)
    return [*lines, *sampled_choices(chosen_on), *few_prompts(min(each.count for each in prompts))]
