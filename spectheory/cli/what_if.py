"""``spectheory predict --what-if``: what a change would give, from a trace, from counts or from a rate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from spectheory.cli.answer import show
from spectheory.cli.inputs import refuse_idle
from spectheory.cli.options import PredictOptions
from spectheory.cli.progress import working
from spectheory.cost import CostModel
from spectheory.errors import SettingError
from spectheory.plots.chart import write_curves
from spectheory.plots.prediction import costs_chart
from spectheory.prediction.what_if_answer import WhatIf, what_if, what_if_counted
from spectheory.reports.what_if import what_if_report
from spectheory.trace import Trace

if TYPE_CHECKING:
    from spectheory.pages import Part

TAKEN = {"trace", "logprobs", "draft_log", "what_if", "rule", "shape", "k_max", "c", "latency", "passes_alone"}
TAKEN |= {"prefill_token", "json", "out", "all", "explain", "report"}


def _check_what_if(question: PredictOptions, *, recorded: bool) -> None:
    """Refuse a change without anything recorded, and options that its answer does not take."""
    if not recorded:
        raise SettingError(
            "--what-if is given without a trace", limit="it asks of what was recorded", remedy="name a trace or counts"
        )
    refuse_idle(question, TAKEN, "--what-if", "ask for it alone", "its answer stands alone")


def _show_of_trace(
    question: PredictOptions, rules: list[str] | None, trace: Trace, passes: CostModel | None, asked: dict[str, Any]
) -> None:
    """What changes would give along the texts of a trace."""
    with working("predicting"):
        answer = what_if(trace, question.what_if or (), passes, rules=rules, **asked)
    _show(question, answer)


def show_of_chains(question: Any, rows: Iterable[Any], *, counted: bool = False) -> None:
    """What another c would give chains of known tokens per call; `counted` by an engine."""
    _show(question, what_if_counted(rows, question.what_if), counted=counted)


def _show(question: Any, answer: WhatIf, *, counted: bool = False) -> None:
    costs = answer.costs

    def parts() -> list[Part]:
        from spectheory.pages.vega import curves

        return [curves(costs_chart(costs))] if costs else []

    show(
        what_if_report(answer, counted=counted),
        question,
        "what_if",
        figures=lambda folder: write_curves({"speedup_by_c": costs_chart(costs)}, folder) if costs else [],
        title="What if",
        parts=parts,
    )
