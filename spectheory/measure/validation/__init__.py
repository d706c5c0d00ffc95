"""Predicted against measured: calls counted by our decoders and by an outside judge, wall-clock, and an error budget.

Importing this needs the extra ``models``.
"""

from spectheory.measure.validation.agreement import FALSE_ALARMS
from spectheory.measure.validation.answer import SCHEMA
from spectheory.measure.validation.budget import PARTS
from spectheory.measure.validation.page import page
from spectheory.measure.validation.run import Validation, validate
from spectheory.measure.validation.settings import CHAIN_RULES, FILTERS_JUDGE, JUDGE, KS, TREE, TREE_RULES, Setting
from spectheory.measure.validation.table import headline, notes, speedup_table, tokens_table

__all__ = [
    "CHAIN_RULES",
    "FALSE_ALARMS",
    "FILTERS_JUDGE",
    "JUDGE",
    "KS",
    "PARTS",
    "SCHEMA",
    "TREE",
    "TREE_RULES",
    "Setting",
    "Validation",
    "headline",
    "notes",
    "page",
    "speedup_table",
    "tokens_table",
    "validate",
]
