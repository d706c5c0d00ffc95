"""Pages name every folder of code and nothing that does not exist; links lead somewhere; benchmarks are those saved."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.made_up import each

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
CODE = ("spectheory", "simulations", "proofs_check", "tests", "benchmarks")


def folders() -> set[str]:
    """Every folder with Python files of its own, and the docs; not a package that only holds folders."""
    rooms = {path.parent.relative_to(ROOT) for name in CODE for path in (ROOT / name).rglob("*.py")}
    code = {f"{folder.as_posix()}/" for folder in rooms}
    return code - {"simulations/", "proofs_check/"} | {"docs/", "docs/figures/"}


def unnamed(page: str, wanted: set[str]) -> set[str]:
    return {folder for folder in wanted if f"`{folder}`" not in page}


def missing(page: str) -> set[str]:
    """Paths in backticks or links that do not exist: a path has a slash."""
    written = {name for name in re.findall(r"`([\w./-]+)`", page) if "/" in name}
    linked = {f"docs/{name}" for name in re.findall(r"\]\(([^)#:]+)\)", page)}
    return {name for name in written | linked if not (ROOT / name).exists()}


def registries(page: str) -> list[tuple[str, str]]:
    """Each ``NAME in file`` of the page."""
    return re.findall(r"`(\w+)`[^|`]* (?:in|of) `([\w./]+\.py)`", page)


def unwritten(page: str) -> list[str]:
    return [name for name, file in registries(page) if name not in (ROOT / file).read_text(encoding="utf-8")]


def test_every_folder_is_named() -> None:
    assert unnamed(PAGE, folders()) == set()
    assert unnamed(PAGE, folders() | {"spectheory/attic/"}) == {"spectheory/attic/"}


def test_every_path_exists() -> None:
    assert missing(PAGE) == set()
    invented = PAGE + "`spectheory/attic/rule.py` [page](attic.md)"
    assert missing(invented) == {"spectheory/attic/rule.py", "docs/attic.md"}


def test_every_registry_stands_in_its_file() -> None:
    assert len(registries(PAGE)) > 10
    assert unwritten(PAGE) == []
    assert unwritten(PAGE + "`ATTIC` in `spectheory/errors.py`") == ["ATTIC"]


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


@pytest.fixture(scope="module")
def script() -> Iterator[dict[str, Any]]:
    """The script that writes the page, which imports its neighbours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
        yield runpy.run_path(str(ROOT / "benchmarks" / "_benchmarks_page.py"))


def test_the_page_is_up_to_date(script: dict[str, Any]) -> None:
    """To renew it: `python benchmarks/_benchmarks_page.py`."""
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert script["renewed"](page) == page


def test_the_table_of_drafts_is_up_to_date() -> None:
    """To renew it: `python benchmarks/_drafts_page.py`."""
    page = (ROOT / "docs" / "built_in_pair.md").read_text()
    script = runpy.run_path(str(ROOT / "benchmarks" / "_drafts_page.py"))
    assert script["renewed"](page) == page
    assert script["renewed"](page.replace("EAGLE-3 head", "EAGLE-2 head", 1)) != page.replace("EAGLE-3", "EAGLE-2", 1)


def test_the_table_of_predicted_throughput_is_up_to_date() -> None:
    """To renew it: `python benchmarks/_serving_page.py`."""
    page = (ROOT / "docs" / "engines.md").read_text()
    script = runpy.run_path(str(ROOT / "benchmarks" / "_serving_page.py"))
    assert script["renewed"](page) == page
    assert (
        script["renewed"](page.replace("| 8 | 4 |", "| 8 | 5 |", 1))
        == page
        != page.replace("| 8 | 4 |", "| 8 | 5 |", 1)
    )


def test_every_row_was_equal_first(script: dict[str, Any]) -> None:
    results = script["results"]()
    assert len(results) > 10
    for name, result in results:
        assert result["title"], name
        for row in result["rows"]:
            assert row["equal"], (name, row["work"])
            assert row["ours"] > 0, (name, row["work"])
            assert bool(row["peer"]) == bool(row["peer_is"]), (name, row["work"])
            assert bool(row["limit"]) == bool(row["limit_is"]), (name, row["work"])
