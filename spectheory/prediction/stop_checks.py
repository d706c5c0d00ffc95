"""Which verification rules a stopping rule can go with: those whose drafts a model makes (§11)."""

from __future__ import annotations

from collections.abc import Sequence

from spectheory.drafting import StoppingRule
from spectheory.errors import SettingError
from spectheory.prediction.stopped import check_stops
from spectheory.trace import Trace
from spectheory.verification import PathRule
from spectheory.verification.registry import DEFAULT_RULES


def check_asked(trace: Trace, rules: Sequence[PathRule] | None, stops: Sequence[StoppingRule]) -> None:
    """Refuse stopping rules for drafts that no model makes, or without the column that they read."""
    for rule in rules_of_models(trace, rules):
        for stop in stops:
            check_stops(rule, stop, trace.columns, trace.sampling)


def rules_of_models(trace: Trace, rules: Sequence[PathRule] | None) -> list[PathRule]:
    """The rules whose drafts a model makes and that the trace has columns for; a named one that has none is refused."""
    trace.require_scores("a stopping rule")
    drafted = [rule for rule in rules or DEFAULT_RULES if rule.uses_draft and not rule.grows]
    if not drafted:
        raise SettingError(
            f"a stopping rule is given with {', '.join(rule.label for rule in rules or ())}",
            limit="a stopping rule reads the pmfs of a draft that a model makes",
            remedy="use a rule whose drafts a model makes, as token or block",
        )
    return [rule for rule in drafted if rules or not rule.missing_columns(trace.columns)]
