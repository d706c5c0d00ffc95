"""A report and its charts as one file, which needs no network: parts above its tables, and tables as it writes them."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from spectheory import __version__
from spectheory.deployment import EngineSettings
from spectheory.deployment.candidates import in_words
from spectheory.errors import OutputError, load_extra
from spectheory.files import strip_control_characters, write_whole
from spectheory.pages.vega import VegaChart
from spectheory.plots.style import PALETTE
from spectheory.prediction.where import Where
from spectheory.reports.base import Report
from spectheory.reports.meanings import meanings
from spectheory.reports.table import Cell, Table

_HERE = Path(__file__).parent
LARGEST = 32_000_000
"""Bytes of a page that browsers still open at once; beyond it a page is refused."""


MOST_TOKENS = 2_000
"""Tokens of a text that a page shows."""
LETTERS = 200
"""Letters of a token that a page shows."""
_LOST, _ACCEPTED = "213 94 0", "86 180 233"
"""Where calls end for certain, and where a draft is accepted for certain; the page's own colour lies between."""
_STRONGEST = 60
"""Opacity of these, %: letters stay readable on them, on light and dark pages."""
_COMMAND = re.compile(r"spectheory \w+(?: (?:--[\w-]+|[A-Z]+\b|[\d.]+%?|\S*[/:.]\S*))*")
"""A command in a sentence: options, placeholders, numbers and paths."""
_IMAGE = re.compile(r"^!\[(?P<alt>[^\]]*)\]\([^)]*\)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Lines:
    """What is said in plain sentences, before any chart: a title and a sentence for each line."""

    kind: ClassVar[str] = "lines"
    name: str
    title: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Commands:
    """Lines to copy, each with the words above it; those in `others` are folded. They stand at the top of a page."""

    kind: ClassVar[str] = "commands"
    name: str
    title: str
    commands: Sequence[tuple[str, str]]
    others: Sequence[tuple[str, str]] = ()

    @classmethod
    def of(cls, engines: Sequence[EngineSettings], steps: Sequence[str] = ()) -> list[Commands]:
        """What to paste into engines, the first one's first, and what to do next."""
        several = len({each.candidate.draft.name for each in engines}) > 1
        lines = [(_setting(each, named=several), each.paste) for each in engines]
        commands = [cls("run", "To run it", lines[:1], lines[1:])] if lines else []
        return [*commands, cls("next", "Next", [*map(_step, steps)])] if steps else commands


def _setting(settings: EngineSettings, *, named: bool) -> str:
    """What is run, and its speed-up; the draft is named where there are several."""
    one = settings.candidate
    draft = f", draft {one.draft.name}" if named and one.prediction.rule.uses_draft else ""
    gives = f"speed-up {one.speedup.best:.2f}x{'' if settings.pays else ', does not pay'}"
    engine = f"{settings.engine} {settings.version}"
    return f"{engine}: {one.prediction.rule.label}, {in_words(one.prediction.shape)}{draft}: {gives}"


def _step(words: str) -> tuple[str, str]:
    """A sentence, and the command in it."""
    command = _COMMAND.search(words)
    if not command:
        return words, ""
    return (words if words[command.end() :] else words[: command.start()].rstrip(": ")), command[0]


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
    def of(cls, losses: Where, texts: int, *, sampled_of: int | None = None) -> Coloured:
        """The text that a search for lost calls shows, of so many texts; they may be a sample of more."""
        text = losses.text
        sampled = "" if sampled_of in (None, texts) else f", a sample of {sampled_of}"
        chosen = f"Of {texts} texts{sampled}, this one loses as many calls per token as the median."
        shown = list(zip(text.tokens, text.accepted, strict=True))[:MOST_TOKENS]
        tokens = [(_cut(str(token)), colour(share), f"accepted in {share:.0%} of decodings") for token, share in shown]
        title = f"Text {text.id}, token by token: {losses.rule.label}, {losses.shape}"
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
    def shown(self) -> list[_Shown]:
        """The tables for the template."""
        return [_Shown(table) for table in self.tables]

    @property
    def source(self) -> str:
        """The image as an address that needs no network; scripts in it do not run."""
        return f"data:image/svg+xml;base64,{b64encode(self.image.read_bytes()).decode()}"

    @property
    def alt(self) -> str:
        """The words for those who do not see the image."""
        image = _IMAGE.search(self.caption)
        return image["alt"] if image else self.title

    @property
    def words(self) -> str:
        """The caption as HTML: without its heading and image, links as plain words, HTML in it escaped."""
        parser: Any = load_extra("markdown_it", extra="report").MarkdownIt("commonmark", {"html": False})
        lines = _IMAGE.sub("", self.caption).strip().splitlines()
        text = "\n".join(lines[1:] if lines and lines[0].startswith("# ") else lines)
        return re.sub(r"</?(?:a|img)\b[^>]*>", "", parser.render(text))


class _Shown:
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


Part: TypeAlias = VegaChart | Commands | Coloured | Lines | Picture
"""What stands above the tables, in the order given; commands stand before all others."""


def write_page(report: Report, file: Path, *, title: str, parts: Sequence[Part] = ()) -> None:
    """Write the page; it appears when whole. Everything that is not ours is escaped.

    Raises
    ------
    OutputError
        If the answer is too large for a page.
    """
    specs = {part.name: part.spec for part in parts if isinstance(part, VegaChart)}
    answer = report.as_dict()
    provenance = answer.get("provenance")
    jinja = load_extra("jinja2", extra="report")
    template = jinja.Environment(
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: strip_control_characters(value) if type(value) is str else value,
    ).from_string((_HERE / "page.html").read_text(encoding="utf-8"))
    page = template.render(
        title=title,
        version=__version__,
        report=report,
        verdict=report.brief.verdict if report.brief else [report.headline],
        commands=[part for part in parts if isinstance(part, Commands)],
        parts=[part for part in parts if not isinstance(part, Commands)],
        tables=[_Shown(piece) for piece in report.pieces if isinstance(piece, Table)],
        provenance=json.dumps(provenance, indent=1, ensure_ascii=False) if provenance else "",
        specs=_safe(specs),
        csv=_safe({part.name: part.csv for part in parts if isinstance(part, VegaChart)}),
        answer=_safe(answer),
        palette=PALETTE,
        style=(_HERE / "page.css").read_text(encoding="utf-8"),
        script=(_HERE / "page.js").read_text(encoding="utf-8"),
        drawing_code=drawing_code() if specs else "",
    )
    content = page.encode(errors="replace")  # halves of letters, which a token may hold
    if (size := len(content)) > LARGEST:
        raise OutputError(
            f"the report takes {size / 1e6:.0f} MB",
            limit=f"a page holds {LARGEST / 1e6:.0f} MB",
            remedy="ask for fewer rules or a smaller --k-max, or use --json",
        )
    write_whole(file, lambda partial: partial.write_bytes(content))


def _safe(data: Any) -> str:
    """JSON for a script element: no end tag can stand in it."""
    return json.dumps(data, allow_nan=False).replace("<", "\\u003c")


@cache
def drawing_code() -> str:
    """The code that draws specifications, to stand in the page.

    It is made in a process of its own: where the address space is limited, what makes it ends by a trap.
    """
    load_extra("vl_convert", extra="report")
    code = "import sys, vl_convert; sys.stdout.write(vl_convert.javascript_bundle())"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=False)
    if made.returncode or not made.stdout:
        raise OutputError(
            f"the charts of a page cannot be made (vl-convert ended with status {made.returncode})",
            limit="it reserves some 70 GB of address space",
            remedy="raise the limit (ulimit -v), or leave --report out",
        )
    return made.stdout
