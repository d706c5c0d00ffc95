"""ERSD down draft trees as registered simulators: what they count, and what is predicted of it (S1, R2, T1).

Each set of comparisons
fails wrongly with probability `ALARM` at most, and there are fewer than 50: 5e-8 in all, of the suite's 1e-6. With
`CALLS` calls a probability of 0.1 is known to 0.006, one of 0.5 to 0.01.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulations.counts import Tally
from simulations.draws import words
from simulations.simulators.trees import paths_of, raced, raced_law, tree, tree_of
from simulations.sweeps.draft_trees import EVERY_SIZE, OPTIMAL, limits, order_of_adding, shapes, typical_law
from simulations.verdicts.predictions import compare, predictions
from spectheory.drafting import Batch, Chain, KAry, Shape, Tree, expected_tokens, node_weights
from spectheory.errors import SettingError

ALARM = 1e-9
CALLS = 100_000
RECIPE = {"tokens": 12, "spread": 2.0, "noise": 1.0, "seed": 3}
LAW = [0.6, 0.25, 0.1]

SHAPES: dict[str, Shape] = {
    "sequence": Chain(4),
    "batch": Batch(3),
    "k-ary": KAry((2, 1, 2)),
    "skips ranks": Tree.from_paths([(2,), (1,), (1, 3), (2, 1)]),
}
RACES: dict[str, dict[str, Any]] = {
    "recipe": {"pair": RECIPE},
    "one pair": {"target": [0.5, 0.3, 0.2], "draft": [0.2, 0.3, 0.5]},
    "two pairs, more ranks": {
        "target": [[0.5, 0.3, 0.2, 0.0], [0.1, 0.1, 0.1, 0.7]],
        "draft": [[0.2, 0.3, 0.1, 0.4], [0.7, 0.3, 0.0, 0.0]],
        "max_rank": 4,
    },
}


def disagreements(tally: Tally, kind: str, parameters: dict[str, Any]) -> set[str]:
    """Statements that the tally refutes."""
    compared = compare(tally, predictions(kind, parameters), ALARM)
    return {each.predicted.statement for each in compared if not each}


@pytest.mark.parametrize("shape", SHAPES)
def test_calls_have_the_laws_of_s1_and_keep_to_t1(shape: str) -> None:
    parameters = {"paths": paths_of(SHAPES[shape]), "rank_pmf": LAW}
    tally = tree(parameters, CALLS, words(1))
    assert disagreements(tally, "tree", parameters) == set()
    assert tally.trials == CALLS == tally.moments["accepted"].n


@pytest.mark.parametrize("races", RACES)
@pytest.mark.parametrize("shape", SHAPES)
def test_raced_calls_have_the_same_laws(shape: str, races: str) -> None:
    parameters = {"paths": paths_of(SHAPES[shape]), **RACES[races]}
    assert disagreements(raced(parameters, CALLS, words(2)), "raced-tree", parameters) == set()


def test_wrong_laws_are_caught() -> None:
    """Negative controls: another law of the rank, another pair; a law of so much entropy that T1 is too low."""
    paths = paths_of(KAry((2, 1, 2)))
    tally = tree({"paths": paths, "rank_pmf": LAW}, CALLS, words(1))
    assert disagreements(tally, "tree", {"paths": paths, "rank_pmf": [0.58, 0.27, 0.1]}) == {"S1"}
    assert "T1" in disagreements(tally, "tree", {"paths": paths, "rank_pmf": [0.34, 0.33]})
    seen = raced({"paths": paths, "pair": RECIPE}, CALLS, words(2))
    assert "S1" in disagreements(seen, "raced-tree", {"paths": paths, "pair": {**RECIPE, "noise": 1.2}})


def test_a_large_vocabulary_is_predicted_where_that_is_cheap() -> None:
    """6,000 tokens: the law of rank 2 would be a minute's work, that of rank 1 is a sort."""
    pair = {"pair": {**RECIPE, "tokens": 6000}}
    cheap = {"paths": paths_of(KAry((2, 2))), **pair}
    said = predictions("raced-tree", cheap)
    assert [each.says for each in said] == ["P(node 1 accepted)", "P(node 3 accepted)"]
    assert disagreements(raced(cheap, 5000, words(8)), "raced-tree", cheap) == set()
    chain = predictions("raced-tree", {"paths": paths_of(Chain(2)), **pair})
    assert {each.statement for each in chain} == {"S1", "T1"}
    assert chain[2].value == pytest.approx(said[0].value)
    with pytest.raises(SettingError, match="every node of the tree has a rank above 1"):
        predictions("raced-tree", {"paths": [[2]], **pair})


def test_the_figures_trees_are_added_by_falling_weight_below_t1() -> None:
    law = typical_law()
    assert raced_law({"pair": {**RECIPE, "tokens": 3}}, 5)[3:].tolist() == [0.0, 0.0]
    best = shapes(law, OPTIMAL, EVERY_SIZE)
    for shape, limit in zip(best.values(), limits(law), strict=True):
        assert float(expected_tokens(shape, law)) <= limit + 1e-12
    largest = best[max(best)]
    added = node_weights(tree_of(paths_of(largest)), law)[order_of_adding(largest)]
    assert (np.diff(added) <= 0).all()
