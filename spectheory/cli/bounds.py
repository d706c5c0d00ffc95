"""``spectheory bounds``: limits on tokens per call from moments, pmfs, ranks or a trace; early answers without one."""

from __future__ import annotations

from spectheory.cli.answer import View, show
from spectheory.cli.inputs import asked
from spectheory.cli.options import BoundsOptions
from spectheory.cli.progress import working
from spectheory.prediction.bounds_answer import EarlyAnswer, bounds
from spectheory.reports import bounds_report
from spectheory.reports.bounds import early_report


def run_bounds(question: BoundsOptions) -> None:
    """Answer the question and show the answer."""
    with working("working out the limits"):
        answer = bounds(**asked(question))
    report = early_report(answer) if isinstance(answer, EarlyAnswer) else bounds_report(answer)
    show(report, as_json=question.json, view=View.of(question))
