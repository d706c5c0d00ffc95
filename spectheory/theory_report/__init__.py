"""What the theory says of rules, limits and trees as terminal tables and as JSON; nothing here prints."""

from spectheory.theory_report.base import Report
from spectheory.theory_report.bounds import BoundsAnswer, Column, bounds_report
from spectheory.theory_report.rules import RulesAnswer, rules_report
from spectheory.theory_report.trees import TreeAnswer, tree_report

__all__ = [
    "BoundsAnswer",
    "Column",
    "Report",
    "RulesAnswer",
    "TreeAnswer",
    "bounds_report",
    "rules_report",
    "tree_report",
]
