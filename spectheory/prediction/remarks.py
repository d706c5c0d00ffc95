"""Sentences about the text of a trace that several answers need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spectheory.trace import GIVEN_TEXT, SAMPLED_TEXT

OF_FIRST_DRAFT = "They are about a call's first draft: later ones have other pmfs (§10)."
GIVEN = "The text was given, not sampled from the target: the numbers are for that text as output."
_UNKNOWN = "The trace does not say where its text is from: limits assume that the target sampled it."


def sampled_choices(tokens: int | None) -> list[str]:
    """That trees and thresholds are chosen on a sample of so many tokens; nothing where they are chosen on all."""
    if tokens is None:
        return []
    return [
        f"Best trees and the thresholds of B6 are chosen on a sample of whole texts, {tokens:,} tokens or more, and "
        "evaluated on all texts."
    ]


def given(provenance: Mapping[str, Any]) -> list[str]:
    """Whether the text was not the target's own."""
    return [GIVEN] if provenance.get("origin") == GIVEN_TEXT else []


def origin(provenance: Mapping[str, Any]) -> list[str]:
    """What limits assume of where the text is from, unless the target is known to have sampled it."""
    if provenance.get("origin") != GIVEN_TEXT and provenance.get("source") == "log-probabilities":
        return ["From log-probabilities alone: limits assume that the target sampled the text."]
    return given(provenance) or ([] if provenance.get("origin") == SAMPLED_TEXT else [_UNKNOWN])
