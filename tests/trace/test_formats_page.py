"""docs/formats.md has the table of the formats that are read."""

from __future__ import annotations

from pathlib import Path

from spectheory.trace.importers import formats

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"


def table() -> str:
    rows = ["| `--format` | what it is | what follows | what does not |", "|---|---|---|---|"]
    rows += [f"| `{each.name}` | {each.title} | {each.gives} | {each.lacks or '-'} |" for each in formats().values()]
    return "\n".join(rows) + "\n"


def test_the_documented_table_is_that_of_the_formats() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), f"the table is now\n{table()}"
