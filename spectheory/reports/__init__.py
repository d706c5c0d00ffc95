"""Answers as terminal tables, sentences and JSON; nothing here prints, nothing here needs torch.

A `*_report` function turns an answer into a :class:`Report`: its typed content, its tables, and what is shown first.
"""

from spectheory.reports.base import Report
from spectheory.reports.bounds import bounds_report
from spectheory.reports.deployment import deployment_report
from spectheory.reports.engines import engines_report
from spectheory.reports.judgement import judgement_report
from spectheory.reports.prediction import prediction_report
from spectheory.reports.readings import import_report, readings_report
from spectheory.reports.rules import rules_report, tree_report
from spectheory.reports.table import Cell, Column, Drawing, Table
from spectheory.reports.validation import PARTS, SCHEMA, headline, page, validation_report

__all__ = [
    "PARTS",
    "SCHEMA",
    "Cell",
    "Column",
    "Drawing",
    "Report",
    "Table",
    "bounds_report",
    "deployment_report",
    "engines_report",
    "headline",
    "import_report",
    "judgement_report",
    "page",
    "prediction_report",
    "readings_report",
    "rules_report",
    "tree_report",
    "validation_report",
]
