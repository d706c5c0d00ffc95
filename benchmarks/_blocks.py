"""Blocks of pages that a script writes, each between a mark with its name and an end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from textwrap import fill
from typing import Any

END = "<!-- end -->"


def begin(script: str, name: str) -> str:
    """The mark before a block."""
    return f"<!-- {name}: written by benchmarks/{script}.py -->"


def renewed(page: str, script: str, blocks: Mapping[str, Callable[[], str]]) -> str:
    """The page with each block of the script that stands on it written again."""
    for name, block in blocks.items():
        before, mark, rest = page.partition(begin(script, name))
        if mark:
            page = f"{before}{mark}\n\n{_wrapped(block())}\n\n{END}{rest.partition(END)[2]}"
    return page


def grid(head: str, align: str, rows: Iterable[Iterable[Any]]) -> str:
    """A table in Markdown."""
    return "\n".join([head, align, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def _wrapped(text: str) -> str:
    """Lines of at most 120 characters; tables as they are."""
    return text if text.startswith("|") else fill(text, 120, break_long_words=False, break_on_hyphens=False)
