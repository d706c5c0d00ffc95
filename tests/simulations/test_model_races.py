"""ERSD along texts of the built-in pair: races given the text, decoding by any tree, and the path theorem (§7, R2).

Each set of comparisons fails wrongly with probability `ALARM` at most, and there are fewer than 30: 3e-8 in all, of the
suite's 1e-6. Shares at `RACES` races per position are known to 0.02; the calls of the models' runs to about 1%.
"""

from __future__ import annotations

import itertools
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from proofs_check.library.strategies import Floats, extreme_pairs
from simulations.counts import Share, Tally
from simulations.draws import words
from simulations.reference.decoding import walk
from simulations.simulators.model_races import (
    children_of,
    decoded,
    expected_counts,
    model_races,
    path_predictions,
    path_theorem,
    raced_ranks,
)
from simulations.simulators.trees import paths_of, tree_of
from simulations.verdicts.predictions import Predicted, compare
from spectheory.drafting import Batch, Chain, KAry, Shape, Tree
from spectheory.verification import PoissonRace, RaceVerification

ALARM = 1e-9
RACES = 20_000
RUNS = 60

SHAPES: dict[str, Shape] = {
    "sequence": Chain(3),
    "batch": Batch(2),
    "k-ary": KAry((2, 1)),
    "skips ranks": Tree.from_paths([(2,), (1,), (1, 2), (2, 2), (2, 2, 1)]),
}
PARAMETERS: dict[str, Any] = {
    "draft": "distilled",
    "prompts": [2, 31],
    "continuations": 2,
    "tokens": 16,
    "temperature": 0.8,
    "text_seed": 5,
    "shapes": {label: paths_of(shape) for label, shape in SHAPES.items()},
    "nodes_of": ["k-ary", "skips ranks"],
}


# Races given the winner


def ranked_by_the_twin(target: Floats, draft: Floats, tokens: list[int], rng: np.random.Generator) -> list[int]:
    """One position after the other: the clocks in the draft's order."""
    times, waits = rng.standard_exponential(len(tokens)), rng.standard_exponential(target.shape)
    ranks = []
    for p, q, x, time, wait in zip(target, draft, tokens, times, waits, strict=True):
        clocks = [p[y] * time + (wait[y] if y != x else 0.0) for y in range(len(p))]
        order = sorted((y for y in range(len(p)) if q[y] > 0), key=lambda y: clocks[y] / q[y])
        ranks.append(1 + order.index(x) if q[x] > 0 else 0)
    return ranks


PAIRS = {
    **{name: (p, q) for name, (p, q) in extreme_pairs().items() if name != "large"},
    "typical": tuple(np.random.default_rng(1).dirichlet(np.full(9, 0.5), size=2)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_races_are_their_twin(name: str) -> None:
    p, q = PAIRS[name]
    tokens = np.repeat(np.flatnonzero(p), 20)
    target, draft = (np.tile(pmf, (len(tokens), 1)) for pmf in (p, q))
    ranks = raced_ranks(target, draft, tokens, np.random.default_rng(3)).tolist()
    assert ranks == ranked_by_the_twin(target, draft, tokens.tolist(), np.random.default_rng(3))


TARGET, DRAFT = [0.4, 0.3, 0.2, 0.1], [0.1, 0.25, 0.3, 0.35]


@cache
def ranks_of(token: int) -> Tally:
    rows = [np.tile(pmf, (RACES, 1)) for pmf in (TARGET, DRAFT)]
    ranks = raced_ranks(rows[0], rows[1], np.full(RACES, token), np.random.default_rng(token))
    return Tally.of(RACES, counts={"rank": np.bincount(ranks, minlength=5)})


def law_given(rule: Any, token: int) -> list[Predicted]:
    law = rule.rank_pmf_given(np.array(TARGET), np.array(DRAFT), token, 4)
    return [Predicted(f"P(R = {r + 1})", "R2", Share("rank", r + 1), min(float(s), 1.0)) for r, s in enumerate(law)]


@pytest.mark.parametrize("token", range(4))
def test_ranks_given_the_token_follow_r2(token: int) -> None:
    assert all(compare(ranks_of(token), law_given(RaceVerification(), token), ALARM))


def test_another_law_of_ranks_is_caught() -> None:
    """Negative controls: the Poisson race, another token, and the race whose winner is not conditioned on."""
    assert not all(compare(ranks_of(0), law_given(PoissonRace(), 0), ALARM))
    assert not all(compare(ranks_of(1), law_given(RaceVerification(), 2), ALARM))
    law = RaceVerification().rank_pmf(TARGET, DRAFT, 4)
    free = [Predicted("P(R)", "R2", Share("rank", r + 1), float(share)) for r, share in enumerate(law)]
    assert not all(compare(ranks_of(0), free, ALARM))


# Decoding along a text


def decoded_by_the_twin(shape: Shape, ranks: list[int]) -> list[int]:
    """Call by call: the end of the text is a rank that no tree has."""
    paths = shape.tree().paths
    accepted, at = [0] * (len(paths) + 1), 0
    while at < len(ranks):
        left = walk(paths, partial(next, iter(ranks[at:]), 0))
        accepted[0] += 1
        for depth in range(1, len(left.node) + 1):
            accepted[1 + paths.index(left.node[:depth])] += 1
        at += len(left.node) + 1
    return accepted


@pytest.mark.parametrize("shape", SHAPES)
def test_decoding_is_its_twin(shape: str) -> None:
    tree = tree_of(paths_of(SHAPES[shape]))
    rng = np.random.default_rng(4)
    for length in (1, 2, 3, 40):
        for _ in range(20):
            ranks = rng.choice([0, 1, 2, 3], size=length, p=[0.1, 0.5, 0.3, 0.1]).tolist()
            assert decoded(children_of(tree), ranks) == decoded_by_the_twin(tree, ranks)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_path_theorem_is_the_mean_over_all_ranks(shape: str) -> None:
    """Every sequence of ranks of a short text, each with its probability: expected calls and nodes, exactly."""
    tree = tree_of(paths_of(SHAPES[shape]))
    law = np.random.default_rng(6).dirichlet(np.ones(3), size=5)
    mean = np.zeros(tree.nodes + 1)
    for ranks in itertools.product(range(3), repeat=len(law)):
        weight = np.prod([row[rank] for row, rank in zip(law, ranks, strict=True)])
        mean += weight * np.array(decoded(children_of(tree), [rank + 1 for rank in ranks]))
    expected = expected_counts("it", tree, law, nodes=True)
    assert list(expected.values()) == pytest.approx(mean.tolist(), rel=1e-12)


# With the models


@cache
def raced() -> Tally:
    return model_races(PARAMETERS, RUNS, words(2))


def test_runs_along_text_agree_with_the_path_theorem() -> None:
    compared = compare(raced(), path_predictions(path_theorem(PARAMETERS), raced().trials), ALARM)
    assert [str(each.agreement) for each in compared if not each] == []
    assert len(compared) >= 4 + 1, "all calls, and the nodes that are accepted often"


def test_other_texts_are_caught() -> None:
    """Negative control: the theorem along other texts of the same prompts."""
    other = path_theorem({**PARAMETERS, "text_seed": 6})
    assert not all(compare(raced(), path_predictions(other, raced().trials), ALARM))
