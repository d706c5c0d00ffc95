"""Answers as terminal tables, sentences and JSON; nothing here prints, nothing here needs torch."""

from spectheory.reports.base import Report
from spectheory.reports.bounds import BoundsAnswer, Column, bounds_report
from spectheory.reports.rules import RulesAnswer, rules_report
from spectheory.reports.trees import TreeAnswer, tree_report
from spectheory.reports.validation_page import page
from spectheory.reports.validation_table import headline, notes, speedup_table, tokens_table
from spectheory.reports.validation_terms import FALSE_ALARMS, PARTS, SCHEMA, WITHIN

__all__ = [
    "FALSE_ALARMS",
    "PARTS",
    "SCHEMA",
    "WITHIN",
    "BoundsAnswer",
    "Column",
    "Report",
    "RulesAnswer",
    "TreeAnswer",
    "bounds_report",
    "headline",
    "notes",
    "page",
    "rules_report",
    "speedup_table",
    "tokens_table",
    "tree_report",
]
