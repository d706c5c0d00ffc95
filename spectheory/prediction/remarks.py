"""Sentences about the text of a trace that several answers need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spectheory.trace import AHEAD, ALIKE, GIVEN_TEXT, REPEATED, SAMPLED_TEXT

OF_FIRST_DRAFT = "They are about a call's first draft: later ones have other pmfs (§10)."
GIVEN = "The text was given, not sampled from the target: the numbers are for that text as output."
_AHEAD = (
    "Texts that the target sampled are a million times more probable under the draft, as these are, with probability "
    "1e-6 at most: the two are exchanged, or the target did not sample the texts."
)
_ALONE = "From log-probabilities alone: limits assume that the target sampled the text."
_UNKNOWN = "The trace does not say where its text is from: limits assume that the target sampled it."


def sampled_choices(tokens: int | None) -> list[str]:
    """That trees and thresholds are chosen on a sample of so many tokens; nothing where they are chosen on all."""
    if tokens is None:
        return []
    return [
        f"Best trees and the thresholds of B6 are chosen on a sample of whole texts, {tokens:,} tokens or more, and "
        "evaluated on all texts."
    ]


def doubts(provenance: Mapping[str, Any]) -> list[str]:
    """What makes the numbers of a trace of log-probabilities doubtful: it is said before the answer.

    Examples
    --------
    >>> doubts({"draft_ahead": 0.4})
    ['The draft explains the texts better, by 0.4 nats a token: models exchanged?']
    """
    ahead = provenance.get(AHEAD)
    return [
        *([f"The draft explains the texts better, by {ahead:.2g} nats a token: models exchanged?"] if ahead else []),
        *(["Draft and target have the same log-probabilities: one model twice?"] if provenance.get(ALIKE) else []),
    ]


def exchanged(draft: object, target: object) -> str:
    """The question of a draft with more parameters than its target; empty where it has not, or one is unknown.

    Examples
    --------
    >>> exchanged(8_000_000_000, 1_000_000_000), exchanged(None, 1_000_000)
    ('draft and target have 8000M and 1000M parameters: are they exchanged?', '')
    """
    if not (isinstance(draft, int) and isinstance(target, int) and draft > target):
        return ""
    return f"draft and target have {draft / 1e6:.4g}M and {target / 1e6:.4g}M parameters: are they exchanged?"


def about_texts(provenance: Mapping[str, Any]) -> list[str]:
    """What changes the reading of texts: they are not the target's own, they are equal, the draft explains them."""
    same = provenance.get(REPEATED)
    return [
        *([GIVEN] * (provenance.get("origin") == GIVEN_TEXT)),
        *([f"Texts that equal an earlier one: {same}; intervals take them as its prompt's."] if same else []),
        *([_AHEAD] if provenance.get(AHEAD) else []),
    ]


def origin(provenance: Mapping[str, Any]) -> list[str]:
    """What limits assume of where the text is from, unless it is known, and what changes the reading of it."""
    said = about_texts(provenance)
    if provenance.get("origin") in (GIVEN_TEXT, SAMPLED_TEXT):
        return said
    return [_ALONE if provenance.get("source") == "log-probabilities" else _UNKNOWN, *said]
