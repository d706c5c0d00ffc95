"""What a page shows: parts above its tables, which the template knows by their `kind`, and tables as it writes them."""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from spectheory.errors import load_extra
from spectheory.pages.vega import VegaChart
from spectheory.prediction.where import Where
from spectheory.reports.meanings import meanings
from spectheory.reports.table import Cell, Table

MOST_TOKENS = 2_000
"""Tokens of a text that a page shows."""
LETTERS = 200
"""Letters of a token that a page shows."""
_LOST, _ACCEPTED = "213 94 0", "86 180 233"
"""Where calls end for certain, and where a draft is accepted for certain; the page's own colour lies between."""
_STRONGEST = 60
"""Opacity of these, %: letters stay readable on them, on light and dark pages."""
_IMAGE = re.compile(r"^!\[(?P<alt>[^\]]*)\]\([^)]*\)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Lines:
    """What is said in plain sentences, before any chart: a title and a sentence for each line."""

    kind: ClassVar[str] = "lines"
    name: str
    title: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Coloured:
    """A text whose tokens are coloured by the share of decodings that accept them.

    A title, and each token with its colour and what a pointer over it says; `cut` tokens are left out.
    """

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


@dataclass(frozen=True)
class Picture:
    """A drawn figure with its caption and its numbers.

    `image` is an SVG file; `caption` is Markdown, whose own image lends its words; `tables` are shown on demand.
    """

    kind: ClassVar[str] = "picture"
    name: str
    title: str
    image: Path
    caption: str = ""
    tables: Sequence[Table] = ()

    @property
    def shown(self) -> list[Shown]:
        """The tables for the template."""
        return [Shown(table) for table in self.tables]

    @property
    def source(self) -> str:
        """The image as an address that needs no network; scripts in it do not run."""
        return f"data:image/svg+xml;base64,{b64encode(self.image.read_bytes()).decode()}"

    @property
    def alt(self) -> str:
        """The words for those who do not see the image."""
        found = _IMAGE.search(self.caption)
        return found["alt"] if found else self.title

    @property
    def words(self) -> str:
        """The caption as HTML: without its heading and image, links as plain words, HTML in it escaped."""
        parser: Any = load_extra("markdown_it", extra="report").MarkdownIt("commonmark", {"html": False})
        lines = _IMAGE.sub("", self.caption).strip().splitlines()
        text = "\n".join(lines[1:] if lines and lines[0].startswith("# ") else lines)
        return re.sub(r"</?(?:a|img)\b[^>]*>", "", parser.render(text))


class Shown:
    """A table for the template: its cells as written, what they sort by, what its columns mean."""

    def __init__(self, table: Table) -> None:
        self.title, self.columns, self.notes = table.title, table.columns, table.notes
        self.rows = [
            [(text, _key(cell), isinstance(cell, Cell) and cell.best) for text, cell in zip(texts, row, strict=True)]
            for texts, row in zip(table.texts, table.rows, strict=True)
        ]
        self.meanings = [line.strip() for line in meanings(table) if not line.rstrip().endswith(":")]


def _key(cell: Any) -> Any:
    value = cell.value if isinstance(cell, Cell) else cell
    key = getattr(value, "best", value)
    if isinstance(key, float) and math.isinf(key):
        return "Infinity" if key > 0 else "-Infinity"  # as scripts read it
    return "" if key is None else key


Part: TypeAlias = VegaChart | Coloured | Lines | Picture
"""What stands above the tables, in the order given."""
