"""Every command line that a page shows with its output prints this output."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.docs.outputs import PAGES, ROOT, prepare, printed, with_outputs
from tests.made_up import each

SHOWN = [path.relative_to(ROOT) for path in PAGES if "```console" in path.read_text(encoding="utf-8")]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Commands in the folder of the examples, each once."""
    folder = tmp_path_factory.mktemp("pages")
    prepare(folder)
    return cache(lambda command: printed(command, folder))


@each("page", SHOWN)
def test_a_page_shows_what_its_commands_print(page: Path, run: Callable[[str], str]) -> None:
    """If this fails, ``python -m tests.docs.outputs`` writes the page again."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert with_outputs(text, run) == text


def test_another_output_would_be_seen() -> None:
    """Negative control: a line that is no longer printed, and one that is not shown."""
    page = "text\n```console\n$ spectheory a\nold\n$ spectheory b | head -n 1\n```\nmore\n"
    assert with_outputs(page, lambda command: f"{command[-1]}\n") == (
        "text\n```console\n$ spectheory a\na\n$ spectheory b | head -n 1\n1\n```\nmore\n"
    )
