"""The draft trees of kobus2025's figures, drafted under i.i.d. ranks and along the built-in pair's texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from simulations.counts import Tally
from simulations.draws import Floats
from simulations.simulators.model_races import all_texts, path_predictions, path_theorem, side_by_side
from simulations.simulators.trees import channel_limit, paths_of, raced_law, tree_of
from simulations.sweeps.base import Ask, Data, Scale, Tallies, ask
from simulations.verdicts.predictions import Predicted
from spectheory.drafting import Batch, Chain, KAry, Shape, optimal_tree
from spectheory.plots.style import BLUE, GREEN, ORANGE, PINK, Axes, Figure, LineEnd, Look, caption, name_ends, note

SEQUENCE, BATCH, K_ARY, OPTIMAL = STRATEGIES = ("sequence", "batch", "k-ary", "tau*")

SIZES = (1, 2, 4, 8, 16, 32)
EVERY_SIZE = range(1, max(SIZES) + 1)
EXPANSIONS = ((2, 1), (1, 1, 3, 1), (2, 2, 1, 1), (2, 2, 2, 2))
"""SpecInfer's way of naming k-ary trees: 4, 8, 14 and 30 nodes."""

PAIR = {"tokens": 64, "spread": 2.0, "noise": 1.0, "seed": 1}
"""One typical pair of pmfs: normal logits, the draft's with noise."""

READING = (0.733, 0.133, 0.049, 0.024, 0.013, 0.009, 0.006, 0.004)
"""Mean law of the race's rank along eight other texts of the built-in pair: it decides which trees are drafted."""

PROMPTS, GROUP, TOKENS = 48, 24, 96
EXTRAS = ("models:torch", "models:transformers")


@cache
def typical_law() -> Floats:
    """P(R = r) of the typical pair, r = 1..32."""
    law = raced_law({"pair": PAIR}, max(SIZES))
    law.flags.writeable = False
    return law


def shapes(law: Sequence[float] | Floats, strategy: str, sizes: Iterable[int] = SIZES) -> dict[int, Shape]:
    """The trees of a strategy by their numbers of nodes: batches as far as the law knows ranks, k-ary as named."""
    if strategy == K_ARY:
        return {shape.nodes: shape for shape in map(KAry, EXPANSIONS)}
    if strategy == BATCH:
        return {k: Batch(k) for k in sizes if k <= len(law)}
    return {k: Chain(k) if strategy == SEQUENCE else optimal_tree(law, k) for k in sizes}


def order_of_adding(shape: Shape) -> list[int]:
    """Where each node, in the order in which the strategy adds them, is counted."""
    counted = {path: place for place, path in enumerate(tree_of(paths_of(shape)).paths)}
    return [counted[path] for path in shape.tree().paths]


def label_of(strategy: str, nodes: int) -> str:
    """Label of one tree."""
    return f"{strategy} {nodes}"


def iid_asks(scale: Scale, *, largest: bool) -> tuple[Ask, ...]:
    """Calls down every tree, or down the largest of each strategy, each position a race of its own."""
    trials, trees = scale.pick(200_000, 2_000_000), {name: shapes(typical_law(), name) for name in STRATEGIES}
    return tuple(
        ask(
            f"i.i.d.: {label_of(strategy, nodes)}",
            "raced-tree",
            {"pair": PAIR, "paths": paths_of(shape)},
            scale,
            trials=trials,
        )
        for strategy, by_size in trees.items()
        for nodes, shape in by_size.items()
        if not largest or nodes == max(by_size)
    )


def model_recipes(scale: Scale) -> dict[str, dict[str, Any]]:
    """Each group of texts, and the trees that decode them."""
    trees = {strategy: shapes(READING, strategy) for strategy in STRATEGIES}
    common: dict[str, Any] = {
        "draft": "distilled",
        "continuations": scale.pick(1, 2),
        "tokens": TOKENS,
        "temperature": 1.0,
        "text_seed": scale.seed,
        "shapes": {label_of(s, n): paths_of(shape) for s, by_size in trees.items() for n, shape in by_size.items()},
        "nodes_of": [label_of(strategy, max(by_size)) for strategy, by_size in trees.items()],
    }
    size = scale.pick(8, GROUP)
    return {
        f"prompts {first} to {first + size - 1}": {**common, "prompts": list(range(first, first + size))}
        for first in range(0, scale.pick(size, PROMPTS), size)
    }


def model_asks(scale: Scale) -> tuple[Ask, ...]:
    """Runs of all trees through each group of texts."""
    runs = scale.pick(100, 400)
    return tuple(
        ask(f"{name}: races", "model-races", recipe, scale, trials=runs, batch=runs)
        for name, recipe in model_recipes(scale).items()
    )


def model_theory(scale: Scale) -> dict[str, Tally]:
    """What the path theorem says of each group of texts."""
    return {f"{name}: path theorem": path_theorem(recipe) for name, recipe in model_recipes(scale).items()}


def model_tallies(tallies: Tallies) -> tuple[Tally, Tally]:
    """What was counted along all texts, and what the path theorem expects."""
    races, theorem = (
        [t for label, t in tallies.items() if label.endswith(end)] for end in (": races", ": path theorem")
    )
    return side_by_side(races), all_texts(theorem)


def mean_law(theorem: Tally) -> Floats:
    """The mean law of the rank along all texts: their i.i.d. reading."""
    return np.array([theorem.moments[f"P(R = {r})"].mean for r in range(1, len(READING) + 1)])


def along_text(tallies: Tallies, of: str) -> list[tuple[str, Tally, list[Predicted]]]:
    """The races along text beside the path theorem's expectations of a kind, ``calls`` or ``node``."""
    races, theorem = model_tallies(tallies)
    return [("along text", races, [each for each in path_predictions(theorem, races.trials) if f": {of}" in each.says])]


def limits(law: Floats) -> list[float]:
    """T1 at every size up to the largest; no tree is better than the best, so its ranks are enough (S2, T1)."""
    return [channel_limit(law, shape.max_rank, k) for k, shape in shapes(law, OPTIMAL, EVERY_SIZE).items()]


# How they are drawn

LOOKS = {
    "tau*": Look(ORANGE, "o"),
    "k-ary": Look(GREEN, "s"),
    "sequence": Look(BLUE, "D"),
    "batch": Look(PINK, "^"),
}
NAMES = {"tau*": "tree τ*", "k-ary": "k-ary tree", "sequence": "sequence", "batch": "batch"}


def names(ax: Axes, ends: Sequence[LineEnd], right: float) -> None:
    """Names at the ends of lines: beside the axes where a line comes near the right end, else where it ends."""
    for x, y, text, colour in ends:
        if x < 0.8 * right:
            note(ax, text, (x, y), (7, 1), colour, va="bottom", zorder=4)
    name_ends(ax, [end for end in ends if end[0] >= 0.8 * right])


def captions(figure: Figure, left: Axes, right: Axes, data: Data, texts: str) -> None:
    """Titles of a panel of i.i.d. ranks and one of real text, and how much was simulated."""
    left.set_title("a  i.i.d. ranks: races of one pair of pmfs\n    lines exact (S1), markers simulated")
    right.set_title("b  real text: the built-in pair\n    lines exact (path theorem), markers simulated")
    made = f"a: {data['iid']['calls']:,} calls each; b: {data['models']['runs']} runs through {texts}"
    caption(figure, f"95% intervals everywhere, mostly narrower than the markers; {made}")
