"""``spectheory gate``: an engine's counts against what is expected of them; the status says whether it passed."""

from __future__ import annotations

from spectheory.cli.answer import View, show
from spectheory.cli.options import GateOptions
from spectheory.cli.statuses import Status
from spectheory.judging.acceptance_gate import gate
from spectheory.reports.difference import gate_report


def run_gate(question: GateOptions) -> int:
    """Show whether it passed; the status says so too."""
    names = (str(question.expect), str(question.counts))
    answer = gate(question.counts, question.expect, rule=question.rule, alarm=question.alarm, names=names)
    show(gate_report(answer), as_json=question.json, view=View.of(question))
    return Status.DONE if answer.passed else Status.DISAGREEMENT
