"""The recorded run behind the figure of plain, speculative and batch decoding."""

from __future__ import annotations

import pytest

from simulations.sweeps import Scale, sweeps
from simulations.sweeps.schematic import BRANCHES, DRAFTS, METHODS, SEED, TOKENS, recorded, run

CALLS = {name: recorded()["methods"][name] for name in METHODS}


def test_calls_output_the_text() -> None:
    for calls in CALLS.values():
        assert sum(len(call["output"]) for call in calls) == TOKENS
        for call in calls:
            assert len(call["output"]) == call["accepted"] + (call["last"] != "end")
            assert 0 < call["draft_seconds"] + call["target_seconds"] <= call["seconds"]


def test_calls_draft_what_the_figure_says() -> None:
    """With m tokens to go a call is at most m - 1 deep."""
    for name, chains in {"plain": 0, "token": 1, "batch": BRANCHES}.items():
        left = TOKENS
        for call in CALLS[name]:
            depth = min(DRAFTS, left - 1) if chains else 0
            assert (call["depth"], call["drafted"]) == (depth, chains * depth)
            left -= len(call["output"])


def test_the_figure_shows_the_recorded_run() -> None:
    (sweep,) = sweeps(["schematic"])
    rows = sweep.data(Scale(True), {})["rows"]
    assert [row["calls"] for row in rows] == list(CALLS.values())


@pytest.mark.evidence
def test_the_run_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tokens and calls again; negative control: another seed gives others."""
    fields = ("drafted", "depth", "accepted", "last", "output")
    monkeypatch.setattr("simulations.sweeps.schematic.REPEATS", 1)
    expected = {name: [[call[each] for each in fields] for call in CALLS[name]] for name in METHODS}
    for seed, same in ((SEED, True), (SEED + 1, False)):
        monkeypatch.setattr("simulations.sweeps.schematic.SEED", seed)
        again = {name: [[call[each] for each in fields] for call in calls] for name, calls in run()["methods"].items()}
        assert (again == expected) is same
