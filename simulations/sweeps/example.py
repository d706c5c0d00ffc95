"""Decision trees of every shape, and one call of a small pair of models by recursive rejection and by a race."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulations.counts.quantities import Mean
from simulations.predicted.decoding import calls_of
from simulations.reference.any_rule import DraftTree
from simulations.reference.markov import Pair
from simulations.reference.pictured import race_pictured, rejection_pictured
from simulations.sweeps.base import Ask, Data, Scale, Sweep, Tallies, ask
from spectheory.drafting import Batch, Chain
from spectheory.plots.example import draw

WORDS = ("the", "cat", "dog", "sat", "ran", ".")
TARGET = (
    (0.00, 0.55, 0.35, 0.04, 0.04, 0.02),
    (0.02, 0.00, 0.03, 0.60, 0.30, 0.05),
    (0.02, 0.03, 0.00, 0.25, 0.60, 0.10),
    (0.25, 0.00, 0.00, 0.00, 0.05, 0.70),
    (0.30, 0.00, 0.00, 0.05, 0.00, 0.65),
    (0.80, 0.08, 0.08, 0.02, 0.02, 0.00),
)
DRAFT = (
    (0.05, 0.25, 0.50, 0.05, 0.10, 0.05),
    (0.05, 0.05, 0.05, 0.30, 0.50, 0.05),
    (0.05, 0.05, 0.05, 0.50, 0.30, 0.05),
    (0.40, 0.05, 0.05, 0.05, 0.05, 0.40),
    (0.40, 0.05, 0.05, 0.05, 0.05, 0.40),
    (0.60, 0.10, 0.10, 0.05, 0.05, 0.10),
)
"""The pmf of the next word after each word, in the order of the words."""

LAST = WORDS.index("the")
PATHS = ((1,), (2,), (1, 1), (1, 2), (2, 1), (1, 2, 1))
"""A tree of six nodes, two of them after the root."""
SEEDS = {"recursive": 283, "race": 263}
"""Chosen so that the pictures show acceptances and rejections."""
LENGTH = 8
"""Words of a text that is decoded for the verdict."""

SHAPES = {
    "no drafts": (),
    "k = 1": tuple(Chain(1).tree().paths),
    "chain, k = 4": tuple(Chain(4).tree().paths),
    "batch, k = 4": tuple(Batch(4).tree().paths),
    "tree, k = 6": PATHS,
}
"""Shapes whose decision trees are drawn: those of the paper's figure."""


def asks(scale: Scale) -> tuple[Ask, ...]:
    """Whole texts of the same pair, by the same algorithms, for the verdict."""
    pair = {"target": TARGET, "draft": DRAFT, "initial": np.eye(len(WORDS))[LAST].tolist()}
    given = {**pair, "paths": PATHS, "length": LENGTH}
    return tuple(ask(rule, "decode", {**given, "rule": rule}, scale, trials=scale.pick(400, 6000)) for rule in SEEDS)


def data(scale: Scale, tallies: Tallies) -> Data:
    """The two calls, the shapes, and the calls of a text as predicted and counted."""
    pair, tree = Pair(np.array(TARGET), np.array(DRAFT)), DraftTree(PATHS)
    calls = {
        "recursive": rejection_pictured(tree, pair, LAST, SEEDS["recursive"]),
        "race": race_pictured(tree, pair, LAST, SEEDS["race"]),
    }
    return {
        "words": WORDS,
        "last": LAST,
        "shapes": {name: [list(path) for path in paths] for name, paths in SHAPES.items()},
        "calls": {rule: call.as_dict() for rule, call in calls.items()},
        "per_text": {one.label: _per_text(one, tallies) for one in asks(scale)},
    }


def _per_text(one: Ask, tallies: Tallies) -> dict[str, Any]:
    found = Mean("calls").estimate(tallies[one.label])
    predicted = calls_of(one.task.kind, one.task.parameters).expected
    return {"predicted": predicted, "low": found.low, "best": found.best, "high": found.high, "length": LENGTH}


SWEEP = Sweep(
    "example",
    "Draft trees and their decisions: recursive rejection, and the race beside it",
    ("R3", "R2", "S1", "§7"),
    asks,
    data,
    draw,
    (9.0, 10.2),
)
