"""The figures of the docs: each is the pure function of its saved tallies that it says it is.

Closed forms are worked out again from the saved tallies and must give the saved data; nothing is drawn at random here.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from simulations.sweeps import NAMES, Scale, sweeps
from simulations.sweeps.base import saved_tallies
from spectheory.errors import SettingError

DOCS = Path(__file__).parents[2] / "docs" / "figures"
SEED = 0

AGAIN = 1e-9
"""Relative difference of closed forms on another machine: libraries round sums and exponentials otherwise."""


@cache
def saved(name: str) -> dict[str, Any]:
    return dict(json.loads((DOCS / f"{name}.json").read_text(encoding="utf-8")))


@cache
def made_again(name: str) -> dict[str, Any]:
    (sweep,) = sweeps([name])
    content = saved(name)
    again = sweep.made(Scale(content["setting"] == "full", content["seed"]), saved_tallies(content), content["alarm"])
    return dict(json.loads(json.dumps(again, allow_nan=False)))


def differences(one: Any, other: Any, where: str = "") -> list[str]:
    """Places where two JSON values differ by more than rounding."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [difference for key in one for difference in differences(one[key], other[key], f"{where}.{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [f for i, (a, b) in enumerate(zip(one, other, strict=True)) for f in differences(a, b, f"{where}[{i}]")]
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (one, other))
    equal = math.isclose(one, other, rel_tol=AGAIN, abs_tol=AGAIN) if numbers else one == other
    return [] if equal else [f"{where}: {one!r} is {other!r} now"]


def test_differences_are_seen() -> None:
    """Negative control."""
    assert differences({"a": [1.0, {"b": 2}]}, {"a": [1.0 + 1e-12, {"b": 2}]}) == []
    assert differences({"a": [1.0, {"b": 2}]}, {"a": [1.0, {"b": 3}]}) == [".a[1].b: 2 is 3 now"]
    assert differences([1], [1, 2])
    assert differences({"a": 1}, {"b": 1})


@pytest.mark.evidence
@pytest.mark.parametrize("name", NAMES)
def test_the_data_follow_from_the_saved_tallies(name: str) -> None:
    content, again = saved(name), made_again(name)
    assert (content["figure"], content["setting"], content["seed"]) == (name, "full", SEED)
    assert content["alarm"] == 1e-6
    for part in ("title", "statements", "results", "data"):
        assert differences(content[part], again[part], part) == []
    assert differences(content.get("theory"), again.get("theory"), "theory") == []


@pytest.mark.evidence
@pytest.mark.parametrize("name", NAMES)
def test_theory_and_simulation_agree(name: str) -> None:
    """As saved, and as worked out again; the alarm rates add up to the figure's."""
    for content in (saved(name), made_again(name)):
        assert [row for row in content["comparisons"] if not row["agrees"]] == []
        assert sum(row["alarm"] for row in content["comparisons"]) <= content["alarm"] * (1 + AGAIN)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_saved_is_what_the_command_asks_for(name: str) -> None:
    (sweep,) = sweeps([name])
    asks = sweep.asks(Scale(True, SEED))
    rows = {row["label"]: row for row in saved(name)["results"]}
    assert rows.keys() == {one.label for one in asks}
    assert len(rows) == len(asks)
    for one in asks:
        assert differences(rows[one.label]["task"], json.loads(json.dumps(one.task.as_dict()))) == [], one.label
        assert rows[one.label]["trials"] >= one.trials > rows[one.label]["trials"] - one.task.trials


@pytest.mark.parametrize("full", [False, True])
def test_tasks_shared_by_figures_have_one_end(full: bool) -> None:
    ends: dict[str, int] = {}
    for sweep in sweeps():
        for one in sweep.asks(Scale(full)):
            assert ends.setdefault(one.task.id, one.trials) == one.trials, (sweep.name, one.label)


def test_tallies_of_another_version_are_refused() -> None:
    content = json.loads(json.dumps(saved("race")))
    content["results"][0]["task"]["version"] = "0"
    with pytest.raises(SettingError, match="simulated by version 0 of race"):
        saved_tallies(content)
