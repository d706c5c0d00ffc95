"""A drawn figure with its caption and its numbers."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from spectheory.errors import load_extra
from spectheory.pages.shown import Shown
from spectheory.reports.table import Table

_IMAGE = re.compile(r"^!\[(?P<alt>[^\]]*)\]\([^)]*\)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Picture:
    """`image` is an SVG file; `caption` is Markdown, whose own image lends its words; `tables` are shown on demand."""

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
