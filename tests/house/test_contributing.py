"""What contributors read: issue forms are whole and ask for `spectheory doctor`; commands and paths exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_is_whole_and_asks_for_the_doctor(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert set(form) == {"name", "description", "labels", "body"}
    asked = {field["id"]: field for field in form["body"]}
    assert len(asked) == len(form["body"])
    assert all(field["attributes"]["label"] and field["attributes"]["description"] for field in form["body"])
    assert "spectheory doctor" in asked["doctor"]["attributes"]["label"]
    assert asked["doctor"]["validations"]["required"] is True


def unknown(guide: str) -> set[str]:
    """Targets of make and paths that the guide names and that do not exist."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {f"make {name}" for name in re.findall(r"make (\w+)", guide) if f"\n{name}:" not in makefile}
    named = re.findall(r"`([\w./]+/[\w./]*)`", guide) + re.findall(r"\]\(([\w./]+)", guide)
    return targets | {path for path in named if not (ROOT / path).exists()}


def test_the_guide_names_what_there_is() -> None:
    assert unknown(GUIDE) == set()
    assert unknown(GUIDE + "`docs/attic.md` make haste") == {"docs/attic.md", "make haste"}
