"""A text whose tokens are coloured by the share of decodings that accept them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from spectheory.prediction.where import Where

MOST_TOKENS = 2_000
"""Tokens of a text that a page shows."""
LETTERS = 200
"""Letters of a token that a page shows."""
_LOST, _ACCEPTED = "213 94 0", "86 180 233"
"""Where calls end for certain, and where a draft is accepted for certain; the page's own colour lies between."""
_STRONGEST = 60
"""Opacity of these, %: letters stay readable on them, on light and dark pages."""


@dataclass(frozen=True)
class Coloured:
    """A title, and each token with its colour and what a pointer over it says; `cut` tokens are left out."""

    kind: ClassVar[str] = "text"
    name: str
    title: str
    tokens: Sequence[tuple[str, str, str]]
    cut: int = 0
    chosen_of: str = ""

    @classmethod
    def of(cls, found: Where, texts: int, *, sampled_of: int | None = None) -> Coloured:
        """The text that a search for lost calls shows, of so many texts; they may be a sample of more."""
        text = found.text
        sampled = "" if sampled_of in (None, texts) else f", a sample of {sampled_of}"
        chosen = f"Of {texts} texts{sampled}, this one loses as many calls per token as the median."
        shown = list(zip(text.tokens, text.accepted, strict=True))[:MOST_TOKENS]
        tokens = [(_cut(str(token)), colour(share), f"accepted in {share:.0%} of decodings") for token, share in shown]
        title = f"Text {text.id}, token by token: {found.rule.label}, {found.shape}"
        return cls("text", title, tokens, len(text.tokens) - len(shown), chosen)


def _cut(token: str) -> str:
    return token if len(token) <= LETTERS else f"{token[:LETTERS]}…"


def colour(share: float) -> str:
    """From orange over clear to blue.

    Examples
    --------
    >>> colour(0.0), colour(0.5), colour(1.0)
    ('rgb(213 94 0 / 60%)', 'rgb(86 180 233 / 0%)', 'rgb(86 180 233 / 60%)')
    """
    return f"rgb({_LOST if share < 0.5 else _ACCEPTED} / {abs(2 * share - 1) * _STRONGEST:.0f}%)"
