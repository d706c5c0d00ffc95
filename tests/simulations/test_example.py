"""The illustrations: draft trees are what the algorithms return, and the recorded run of decoding repeats."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from simulations.draws import Stream, words
from simulations.reference.decoding import ALGORITHMS, DraftTree, Pair
from simulations.reference.pictured import Pictured, race_pictured, rejection_pictured
from simulations.sweeps.example import DRAFT, LAST, PATHS, SEEDS, TARGET
from simulations.sweeps.schematic import METHODS, SEED, recorded, run
from tests.made_up import each

PAIR, TREE = Pair(np.array(TARGET), np.array(DRAFT)), DraftTree(PATHS)
PICTURED: dict[str, Callable[[DraftTree, Pair, int, int], Pictured]] = {
    "recursive": rejection_pictured,
    "race": race_pictured,
}
RUNS = 200


@each("rule", ["recursive", "race"])
def test_the_picture_is_the_algorithm(rule: str) -> None:
    """The plain algorithm from the same stream; negative control: from another stream the output is often another."""
    others = 0
    for seed in (SEEDS[rule], *range(RUNS)):
        picture = PICTURED[rule](TREE, PAIR, LAST, seed)
        again, other = (
            ALGORITHMS[rule].call(TREE, PAIR, 0, LAST, Stream(words(start))).tokens for start in (seed, seed + 1)
        )
        assert tuple(picture.output) == again
        others += again != other
        assert {node.path for node in picture.nodes} == set(PATHS)
        accepted = [node for node in sorted(picture.nodes) if node.decision == "accepted"]
        assert [node.token for node in accepted] == picture.output[:-1]
    assert others > RUNS / 3


def test_coins_decide() -> None:
    for seed in range(RUNS):
        for node in rejection_pictured(TREE, PAIR, LAST, seed).nodes:
            tried = node.decision != "not tried"
            assert tried == (node.coin is not None)
            if node.coin is not None and node.chance is not None:
                assert (node.decision == "accepted") == (node.coin < node.chance)


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
