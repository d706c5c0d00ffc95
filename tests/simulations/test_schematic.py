"""The recorded run behind the figure of plain, speculative and batch decoding repeats."""

from __future__ import annotations

import pytest

from simulations.sweeps.schematic import METHODS, SEED, recorded, run

CALLS = {name: recorded()["methods"][name] for name in METHODS}


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
