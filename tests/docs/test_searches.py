"""``make docs`` fails if a search does not lead to its page; here, its check on a small index."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[2] / "docs" / "searches.py"
INDEX = {
    "docnames": ["how_to/a_head", "planning", "theory", "glossary", "theorems/time"],
    "titles": ["Predict a head: EAGLE-3", "Planning", "Theory", "Glossary", "A batch"],
    "terms": {"eagle": [0, 2, 3], "batch": 1, "draft": [1, 2], "tree": [2, 3]},
    "titleterms": {"eagle": [0], "batch": [4]},
}


def module() -> Any:
    spec = importlib.util.spec_from_file_location("searches", FILE)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_results_have_every_word_and_guides_and_headings_come_first() -> None:
    results = module().results
    assert results(INDEX, "EAGLE-3", str) == ["how_to/a_head", "glossary", "theory"]
    assert results(INDEX, "batch", str) == ["planning", "theorems/time"], "guides first"
    assert results(INDEX, "draft tree", str) == ["theory"]
    assert results(INDEX, "TTFT", str) == []


def test_a_page_that_is_not_shown_is_named() -> None:
    """The control: of the searches asked, only those that this index answers are not named."""
    searches = module()
    named = {line.split("'")[1] for line in searches.missing(INDEX, str)}
    assert named == searches.SEARCHES.keys() - {"EAGLE-3", "batch"}


def test_every_page_exists() -> None:
    pages = module().SEARCHES.values()
    assert [page for page in pages if not (FILE.parent / f"{page}.md").exists()] == []
