"""ERSD along texts of the built-in target: a trial is a run, in which every text is decoded once by every shape.

Parameters are the recipe of the texts (:mod:`simulations.models.raced_texts`), ``shapes``, the paths of each draft tree
by its label, and ``nodes_of``, the labels of those whose nodes are counted one by one.

Each position runs its full race, given that the text's token won the target's: no law of the rank is used. All shapes
of a run read the same ranks. Samples are ``LABEL: calls``, the calls that all texts of a run took together, and
``LABEL: node i``, how many of them accepted node i, counted from 1 in the order of
:func:`~simulations.simulators.trees.tree_of`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulations.counts.tally import Tally
from simulations.draws.streams import Words
from simulations.experiments.registry import simulator
from simulations.models.positions import Floats
from simulations.models.raced_texts import pmfs_along, texts
from simulations.simulators.trees import tree_of
from spectheory.drafting.shapes import Tree

Ints = NDArray[np.int64]
Children = list[dict[int, int]]
"""Of each node, the root first: its children by their ranks."""


@simulator("model-races", version="1")
def model_races(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A run through texts of the built-in target, a race at every position (§7, R2)."""
    rng = np.random.default_rng([int(word) for word in state])
    shapes = {label: tree_of(paths) for label, paths in parameters["shapes"].items()}
    children = {label: children_of(shape) for label, shape in shapes.items()}
    accepted = {label: np.zeros((trials, shape.nodes + 1), dtype=np.int64) for label, shape in shapes.items()}
    for text in texts(parameters):
        target, draft, tokens = pmfs_along(parameters, text)
        for run in range(trials):
            ranks = raced_ranks(target, draft, tokens, rng).tolist()
            for label in shapes:
                accepted[label][run] += decoded(children[label], ranks)
    samples = {f"{label}: calls": counts[:, 0] for label, counts in accepted.items()}
    for label in parameters["nodes_of"]:
        samples |= {f"{label}: node {node}": accepted[label][:, node] for node in range(1, shapes[label].nodes + 1)}
    return Tally.of(trials, samples=samples)


def raced_ranks(target: Floats, draft: Floats, tokens: Any, rng: np.random.Generator) -> Ints:
    r"""The rank of each token in the draft's race, given that it won the target's; 0 where the draft cannot draw it.

    The winner's clock is :math:`E_x = p_x u`, u ~ Exp(1). The others ring later, :math:`E_y > p_y u`, and the excess is
    Exp(1) again. The rank is the place of :math:`E_x/q_x` among all :math:`E_y/q_y`, compared by cross-multiplication.
    """
    rows = np.arange(len(target))
    first = rng.standard_exponential(len(target))
    clocks = rng.standard_exponential(target.shape)
    clocks += target * first[:, None]
    own = target[rows, tokens] * first
    clocks[rows, tokens] = own
    own_draft = draft[rows, tokens]
    before = np.count_nonzero(clocks * own_draft[:, None] < own[:, None] * draft, axis=1)
    return np.where(own_draft > 0, 1 + before, 0)


def children_of(shape: Tree) -> Children:
    """The table of a tree's children."""
    children: Children = [{} for _ in range(shape.nodes + 1)]
    for node, (parent, rank) in enumerate(zip(shape.parents.tolist(), shape.ranks.tolist(), strict=True), start=1):
        children[parent + 1][rank] = node
    return children


def decoded(children: Children, ranks: Sequence[int]) -> list[int]:
    """Calls that a text takes, and how often each node is accepted, ``[nodes + 1]``; a call ends where the text ends.

    The token that leaves the tree is recovered, or a bonus token below a leaf; the next call starts after it.
    """
    accepted = [0] * len(children)
    at, end = 0, len(ranks)
    while at < end:
        node: int | None = 0
        while node is not None:
            accepted[node] += 1
            if at == end:
                break
            node = children[node].get(ranks[at])
            at += 1
    return accepted
