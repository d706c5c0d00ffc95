"""Stopping rules of a question: predicted beside fixed lengths, and swept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spectheory.cli.console import remarks
from spectheory.cli.options import Question
from spectheory.cli.shapes import read_stops
from spectheory.cost import CostModel
from spectheory.deployment.candidates import measured_nodes
from spectheory.drafting import Chain
from spectheory.errors import SettingError
from spectheory.prediction import Plan, plan
from spectheory.prediction.adaptive import AdaptiveWorth, adaptive_worth
from spectheory.prediction.stop_checks import check_asked, rules_of_models
from spectheory.prediction.stopped import draft_inside_target
from spectheory.trace import Trace
from spectheory.verification import PathRule
from spectheory.verification.by_start import within


def with_stops(
    question: Question, trace: Trace, cost: CostModel | None, rules: Sequence[PathRule] | None, fixed: Plan
) -> tuple[Plan, list[AdaptiveWorth]]:
    """A plan of fixed shapes with the stopping rules asked for, and what adapting is worth if thresholds are swept."""
    stops, swept = read_stops(question.stop)
    if stops or swept:
        check_asked(trace, rules, stops)
    prefill = getattr(question, "prefill_token", False)
    longest = within(trace.columns, question.k_max)
    longest = longest if cost is None else measured_nodes(cost, longest)
    drafted = rules_of_models(trace, rules)
    adaptive: list[AdaptiveWorth] = []
    if stops:
        shapes = [Chain(k, stop=stop) for stop in stops for k in range(1, longest + 1)]
        fixed += plan(trace, cost, rules=drafted, shapes=shapes, prefill_emits_token=prefill)
    if swept:
        adaptive = [adaptive_worth(trace, rule, longest, _costs(cost), prefill_emits_token=prefill) for rule in drafted]
    _remark_impossible(trace, drafted)
    return fixed, adaptive


def _remark_impossible(trace: Trace, rules: Sequence[PathRule]) -> None:
    """Say how many tokens of the texts the draft cannot draw, and what follows for estimates of drafted tokens."""
    drawn = [rule for rule in rules if rule.drafts != "chosen"]
    count = int(np.isneginf(trace.columns["log_draft"]).sum())
    if count and drawn:
        cut = (
            ". Drafts that the target cannot output (p = 0 < q) are in no text: the lower estimate misses the calls "
            "that make them, the upper one counts them"
        )
        remarks.print(
            f"{count} of {len(trace)} tokens of the texts have q = 0: the draft cannot draw them. Their likelihood "
            "ratios are 0, which biases no estimate of drafted tokens"
            f"{'' if draft_inside_target(drawn[0], trace) else cut}",
            markup=False,
        )


def refuse_stops(question: Question) -> None:
    """Refuse them where chains of fixed lengths were timed, or are exported."""
    if question.stop:
        raise SettingError(
            "--stop is given with --bench or --export",
            limit="both are about chains of a fixed length",
            remedy="leave one of them out",
        )


def _costs(cost: CostModel | None) -> CostModel:
    """The cost model; without one thresholds cannot be compared."""
    if cost is None:
        raise SettingError(
            "--stop best is given without costs",
            limit="thresholds are compared by seconds: a lower one always needs fewer calls",
            remedy="give --c or --latency",
        )
    return cost
