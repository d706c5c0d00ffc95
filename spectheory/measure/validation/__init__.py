"""Predicted against measured: calls of our decoders and of transformers, wall-clock time, and an error budget.

Importing this needs the extra ``models``; :mod:`spectheory.reports` shows results without it.
"""

from spectheory.measure.validation.run import Validation, validate
from spectheory.measure.validation.settings import CHAIN_RULES, KS, TREE, TREE_RULES, Setting
from spectheory.reports.validation import FILTERS_JUDGE, JUDGE

__all__ = [
    "CHAIN_RULES",
    "FILTERS_JUDGE",
    "JUDGE",
    "KS",
    "TREE",
    "TREE_RULES",
    "Setting",
    "Validation",
    "validate",
]
