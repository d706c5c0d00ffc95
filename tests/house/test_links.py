"""Every link of a page to a file of the project leads to a file, and to a heading of it where it names one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.made_up import each

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "benchmarks", "spectheory")
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(path for name in FOLDERS for path in (ROOT / name).rglob("*.md") if "_build" not in path.parts),
    ]
)


@cache
def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return re.sub(r"^(`{3,})[^\n]*\n.*?^\1$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


@cache
def anchors(page: Path) -> set[str]:
    """The headings as GitHub and MyST name them: lower case, without punctuation, blanks as hyphens."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def links(text: str) -> Iterator[str]:
    """Targets of links and pictures, without those on the network."""
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        if not target.startswith(("http:", "https:")):
            yield target


def broken(page: Path, text: str) -> list[str]:
    """The links that lead nowhere."""
    dead = []
    for link in links(text):
        name, _, anchor = link.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            dead.append(link)
    return dead


@each("page", PAGES)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken(page, prose(page)) == []


def test_a_broken_link_would_be_seen() -> None:
    """Negative control: a missing file, and a missing heading of a page and of this one."""
    text = "[a](docs/attic.md) [b](docs/start.md#attic) [c](#attic) [d](docs/start.md#install) [e](https://example.org)"
    assert broken(ROOT / "README.md", text) == ["docs/attic.md", "docs/start.md#attic", "#attic"]
