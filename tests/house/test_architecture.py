"""docs/architecture.md names every folder of code, and nothing that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

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
