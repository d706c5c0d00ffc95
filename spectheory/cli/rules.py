"""``spectheory rules``: what every rule accepts at a position, from two pmfs or from a trace."""

from __future__ import annotations

from spectheory.cli.answer import View, show
from spectheory.cli.inputs import asked, remark_left_out
from spectheory.cli.options import RulesOptions
from spectheory.cli.progress import working
from spectheory.prediction.rules_answer import rules
from spectheory.reports import rules_report
from spectheory.verification.registry import ALL


def run_rules(question: RulesOptions) -> None:
    """Answer the question and show the answer."""
    remark_left_out()
    given = asked(question)
    with working("working out the acceptances"):
        answer = rules(rules=given.pop("rule") or ALL, **given)
    show(rules_report(answer), as_json=question.json, view=View.of(question))
