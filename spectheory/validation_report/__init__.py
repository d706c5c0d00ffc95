"""A finished validation in words: terminal tables, sentences, and one page for several pairs; no torch."""

from spectheory.validation_report.page import page
from spectheory.validation_report.table import headline, notes, speedup_table, tokens_table
from spectheory.validation_report.terms import FALSE_ALARMS, PARTS, SCHEMA, WITHIN

__all__ = ["FALSE_ALARMS", "PARTS", "SCHEMA", "WITHIN", "headline", "notes", "page", "speedup_table", "tokens_table"]
