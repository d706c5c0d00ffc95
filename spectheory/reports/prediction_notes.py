"""The sentences under the tables of predictions: what is exact, what is estimated, and what the limits claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spectheory.limits.claims import (
    IID_BRANCHING,
    IID_CHANNEL,
    IID_FORMULA,
    ON_DECODINGS,
    ON_TRACES,
    LimitClaim,
    footnotes,
)
from spectheory.prediction import Plan, Prediction
from spectheory.prediction.answer import RecordedReading
from spectheory.prediction.over_prompts import few_prompts
from spectheory.prediction.remarks import origin, sampled_choices
from spectheory.prediction.shape_calls import BestTree
from spectheory.reports.policies import policies
from spectheory.reports.recorded import heavy, recorded_notes
from spectheory.reports.remarks import IN_LOOP, NO_COST
from spectheory.reports.whole_decoding import limits_of_decodings, whole_decoding
from spectheory.verification import GreedyMatch, RankRule

COUNTED = "Tokens per call count accepted drafts and the recovered or bonus token of each target call."


def notes_of_recorded(plan: Plan, in_loop: bool, recorded: Sequence[RecordedReading]) -> list[str]:
    """What a reader must know of the predictions from recorded lengths."""
    lines = [*heavy(recorded, plan.best), COUNTED, *recorded_notes(plan.best.provenance, recorded)]
    lines += ([IN_LOOP] if in_loop else []) if plan.timed else [NO_COST]
    return [*lines, *few_prompts(plan.prompts)]


def notes_of(plan: Plan, in_loop: bool) -> list[str]:
    """What a reader must know to trust the numbers, one sentence each."""
    provenance = plan.best.provenance
    lines = [
        *policies(plan),
        *whole_decoding(plan.predictions),
        COUNTED,
        "They are exact for the texts of the trace; intervals (95%) are over prompts.",
        *_estimated(plan),
        *origin(provenance),
        *_without_pmfs(plan),
        *_searched(plan),
    ]
    if not plan.timed:
        lines.append(NO_COST)
    elif in_loop:
        lines.append(IN_LOOP)
    if any(isinstance(p.rule, GreedyMatch) for p in plan.predictions) and not _greedy(provenance):
        lines.append("Greedy verification outputs the target's first choices: on other text its numbers are idealised.")
    return [*lines, *sampled_choices(plan.chosen_on), *few_prompts(plan.prompts), *_claims(plan)]


def _estimated(plan: Plan) -> list[str]:
    """Which rules are read from estimates."""
    return [
        f"{name} with several candidates is not exact: its rank laws are unbiased estimates, whose noise the intervals "
        "include."
        for name in dict.fromkeys(p.rule.name for p in plan.predictions if _from_estimates(p))
    ]


def _without_pmfs(plan: Plan) -> list[str]:
    """What a trace without full pmfs bounds, and what it leaves out."""
    lines = []
    absent = [claim.name for claim in (IID_BRANCHING, IID_CHANNEL) if plan.best.compared(claim) is None]
    bounded = dict.fromkeys(p.rule.name for p in plan.predictions if p.certified)
    if bounded:
        lines.append(
            f"{', '.join(bounded)}: not exact, but from lists of the most probable tokens. The range that they allow "
            "(`certified`) is certain for these texts; intervals join the 95% ones over prompts at both of its ends "
            "(with one prompt, the ends alone). The middle is no estimate: settings are compared by the low end."
        )
    elif absent:
        absent = ["the race rule", *absent]
    if absent:
        lines.append(f"Absent, as they need full pmfs: {', '.join(absent)}.")
    return lines


def _searched(plan: Plan) -> list[str]:
    """How trees were found and scored."""
    if not any(isinstance(p.wanted, BestTree) for p in plan.predictions):
        return []
    return [
        "Trees are the best that a local search found, one for each rule and size.",
        "Each text is scored by a tree found on other prompts; the intervals treat the trees as fixed."
        if all(p.held_out for p in plan.predictions)
        else "With one prompt they are scored on the text they were found on: too high.",
    ]


def formulas(plan: Plan) -> list[LimitClaim]:
    """C1, which knows no stopping rule, where the first chains have none."""
    return [] if plan.chains[0].stop else [IID_FORMULA]


def _claims(plan: Plan) -> list[str]:
    """What the limits claim that the tables show."""
    others = [claim for claim in ON_TRACES if claim.scope is not ON_DECODINGS]
    shown = [*limits_of_decodings(plan), *others, *formulas(plan)] if plan.chains else others
    known = [claim for claim in shown if any(p.compared(claim) is not None for p in plan.predictions)]
    lumped = (
        "T1 counts all ranks above 8 (or above those recorded) as one. For rules without ranks it uses the ranks of "
        "recursive rejection."
    )
    return [*footnotes(known), *([lumped] if IID_CHANNEL in known else [])]


def _greedy(provenance: Mapping[str, Any]) -> bool:
    """Whether the text was decoded at temperature 0."""
    settings = provenance.get("settings")
    sampling = settings.get("sampling") if isinstance(settings, dict) else None
    return isinstance(sampling, dict) and sampling.get("temperature") == 0


def _from_estimates(prediction: Prediction) -> bool:
    rule = prediction.rule
    return isinstance(rule, RankRule) and rule.estimated and prediction.shape.max_rank > 1
