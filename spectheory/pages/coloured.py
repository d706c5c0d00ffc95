"""A text whose tokens are coloured by the share of decodings that accept them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spectheory.prediction.where import Where

MOST_TOKENS = 2_000
"""Tokens of a text that a page shows."""
_LOST, _ACCEPTED = (213, 94, 0), (86, 180, 233)
"""Where calls end for certain, and where a draft is accepted for certain; white lies between."""


@dataclass(frozen=True)
class Coloured:
    """A title, and each token with its colour and what a pointer over it says."""

    title: str
    tokens: Sequence[tuple[str, str, str]]
    cut: int

    @classmethod
    def of(cls, found: Where) -> Coloured:
        """The text that a search for lost calls shows."""
        text = found.text
        shown = list(zip(text.tokens, text.accepted, strict=True))[:MOST_TOKENS]
        tokens = [(str(token), colour(share), f"accepted in {share:.0%} of decodings") for token, share in shown]
        return cls(f"Text {text.id}: {found.rule.label}, {found.shape}", tokens, len(text.tokens) - len(shown))


def colour(share: float) -> str:
    """From orange over white to blue.

    Examples
    --------
    >>> colour(0.0), colour(0.5), colour(1.0)
    ('#d55e00', '#ffffff', '#56b4e9')
    """
    end, weight = (_LOST, 1 - 2 * share) if share < 0.5 else (_ACCEPTED, 2 * share - 1)
    return "#" + "".join(f"{round(255 + (part - 255) * weight):02x}" for part in end)
