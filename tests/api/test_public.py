"""What is public is listed by its module, documented, and shown by an example; docs/api has all of it."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.house.test_house import ROOMS

DOCS = Path(__file__).parents[2] / "docs" / "api"
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
DIRECTIVE = re.compile(r"^\.\. automodule:: (\S+)\n((?:   :.*\n)*)", re.MULTILINE)
PUBLIC = {module: options for page in PAGES.values() for module, options in DIRECTIVE.findall(page)}
"""The modules of docs/api, with the options of their directive."""

INTERNAL = {
    "ngrams",
    "extensions",
    "checks",
    "reports",
    "files",
    "store",
    "processes",
    "runner",
    "kernels",
    "engines",
    "logit_statistics",
    "pages",
    "cli",
    "__main__",
}
"""Rooms that nobody builds on."""

SHOWN = [
    *("spectheory", "spectheory.divergences", "spectheory.intervals", "spectheory.answers.schema"),
    *(f"spectheory.{room}" for room in ("verification", "limits", "drafting", "truncated", "cost")),
]
"""Modules whose functions and classes show an example; the suite runs it."""
RESULTS = {"BatchPoint", "Prediction"}
"""What functions return, and users do not make."""


def members(module: ModuleType | SimpleNamespace) -> Iterator[tuple[str, Any]]:
    """The public functions and classes."""
    for name in module.__all__:
        member = getattr(module, name)
        if inspect.isclass(member) or inspect.isroutine(member):
            yield name, member


def without_docstring(module: Any) -> list[str]:
    return [name for name, member in members(module) if not (member.__doc__ or "").strip()]


def without_example(module: Any) -> list[str]:
    """Functions and classes without an example; abstract classes and results need none."""
    return [
        name
        for name, member in members(module)
        if name not in RESULTS and not inspect.isabstract(member) and ">>>" not in (member.__doc__ or "")
    ]


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_public_module_lists_what_there_is_and_documents_it(name: str) -> None:
    module = importlib.import_module(name)
    assert len(set(module.__all__)) == len(module.__all__) > 0
    assert [each for each in module.__all__ if not hasattr(module, each)] == []
    assert without_docstring(module) == []
    assert (module.__doc__ or "").strip()


@pytest.mark.parametrize("name", SHOWN)
def test_a_public_function_shows_an_example(name: str) -> None:
    assert without_example(importlib.import_module(name)) == []


def test_gaps_would_be_seen() -> None:
    """Negative control."""

    def bare() -> None: ...

    def with_words() -> None:
        """Words, and no example."""

    made = SimpleNamespace(__all__=["bare", "with_words"], bare=bare, with_words=with_words)
    assert without_docstring(made) == ["bare"]
    assert without_example(made) == ["bare", "with_words"]


def test_every_room_is_public_or_not() -> None:
    public = {name.split(".")[1] for name in PUBLIC if name.startswith("spectheory.")}
    assert set(ROOMS) - public == INTERNAL, "a new room: give it a page in docs/api, or list it here"


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_the_page_shows_all_that_is_public(name: str) -> None:
    """What a package exports is defined elsewhere: the directive must take imported members."""
    module, options = importlib.import_module(name), PUBLIC[name]
    if name == "spectheory":
        assert ":no-members:" in options, "its names are shown where they are defined"
        return
    assert ":members:" in options
    defined = {getattr(member, "__module__", name) for _, member in members(module)}
    assert ":imported-members:" in options or defined == {name}


def test_every_page_is_reached() -> None:
    listed = re.search(r"```\{toctree\}\n:hidden:\n(.*?)```", PAGES["index.md"], re.DOTALL)
    assert listed
    assert {f"{name}.md" for name in listed[1].split()} == set(PAGES) - {"index.md"}
    missing = [name for name in PUBLIC if f"{{py:mod}}`{name}`" not in PAGES["index.md"]]
    assert missing == ["spectheory"], "the table names every module; it stands under the module `spectheory` itself"
