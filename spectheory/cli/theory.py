"""``spectheory bounds``, ``rules`` and ``tree``: limits, acceptances and draft trees, from pmfs or from a trace."""

from __future__ import annotations

from spectheory.cli.answer import show
from spectheory.cli.inputs import _remark_left_out, asked
from spectheory.cli.options import BoundsOptions, RulesOptions, TreeOptions
from spectheory.cli.progress import working
from spectheory.prediction.bounds_answer import EarlyAnswer, bounds
from spectheory.prediction.rules_answer import rules
from spectheory.prediction.tree_answer import tree
from spectheory.reports import bounds_report, rules_report, tree_report
from spectheory.reports.bounds import early_report
from spectheory.verification.registry import ALL


def run_bounds(question: BoundsOptions) -> None:
    """Limits on tokens per call from moments, pmfs, ranks or a trace; early answers without one."""
    with working("working out the limits"):
        answer = bounds(**asked(question))
    show(early_report(answer) if isinstance(answer, EarlyAnswer) else bounds_report(answer), question)


def run_rules(question: RulesOptions) -> None:
    """What every rule accepts at a position, from two pmfs or from a trace."""
    _remark_left_out()
    given = asked(question)
    with working("working out the acceptances"):
        answer = rules(rules=given.pop("rule") or ALL, **given)
    show(rules_report(answer), question)


def run_tree(question: TreeOptions) -> None:
    """The best draft tree for i.i.d. ranks, or for the texts of a trace."""
    with working("searching trees"):
        answer = tree(**asked(question))
    show(tree_report(answer), question)
