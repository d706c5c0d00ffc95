"""ERSD over a draft tree, as the paper states it: a call goes down the tree as long as the next rank is drafted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

import numpy as np

from simulations.draws.alias import Floats
from simulations.draws.streams import Stream
from simulations.reference.drawing import from_table

Path: TypeAlias = tuple[int, ...]
"""The ranks from the root to a node."""


class Exit(NamedTuple):
    """Where a call left the tree: the last accepted node, and the rank that led out, A + 1 for all above A."""

    node: Path
    rank: int


def walk(paths: Iterable[Path], read_rank: Callable[[], int]) -> Exit:
    """One call: accept drafts as long as the output's rank is that of a drafted child."""
    drafted, node = set(paths), Path()
    while (*node, rank := read_rank()) in drafted:
        node = (*node, rank)
    return Exit(node, rank)


def rank_from_law(law: Floats, stream: Stream) -> int:
    """A rank from its law P(R = 1..A); A + 1 for all above A."""
    return 1 + from_table(np.append(law, max(1 - law.sum(), 0)), stream)


def rank_from_race(target: Floats, draft: Floats, most: int, stream: Stream) -> int:
    """The rank of the target's winner in the draft's race (kobus2025), in Gumbel form; `most` + 1 if none or higher."""
    row = math.floor(stream.uniform() * len(target))
    with np.errstate(divide="ignore"):
        gumbels = -np.log([stream.exponential() for _ in target[row]])
        output = int(np.argmax(gumbels + np.log(target[row])))
        order = np.argsort(-(gumbels + np.log(draft[row])), kind="stable")
    if draft[row][output] == 0:
        return most + 1
    return min(1 + order.tolist().index(output), most + 1)
