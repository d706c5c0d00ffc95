"""ERSD down a draft tree whose ranks are i.i.d.: its nodes, its depths, the mean (S1, R2), and the limit (T1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from simulations.counts.quantities import Mean, Share
from simulations.draws.alias import Floats
from simulations.predicted.races import race_ranks
from simulations.simulators.trees import pair_of, tree_of
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.drafting import Tree, node_weights, survival
from spectheory.errors import SettingError
from spectheory.limits import tunstall_bound
from spectheory.verification import RaceVerification
from spectheory.verification.rank_entropy import rank_entropy


@predicts("tree")
def tree(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Ranks from a given law."""
    yield from _calls(tree_of(parameters["paths"]), np.asarray(parameters["rank_pmf"], dtype=np.float64))


@predicts("raced-tree")
def raced(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Ranks of races; of high ranks over a large vocabulary only the nodes that need none of them."""
    shape = tree_of(parameters["paths"])
    target, draft = (np.atleast_2d(np.asarray(pmf)) for pmf in pair_of(parameters))
    known = race_ranks(target.shape[-1], shape.max_rank, max(len(target), len(draft)))
    if known == shape.max_rank:
        yield from _calls(shape, raced_law(parameters, known))
        return
    within = [node for node, path in enumerate(shape.paths) if max(path) <= known]
    if not within:
        raise SettingError(
            f"every node of the tree has a rank above {known}",
            limit=f"for {target.shape[-1]} tokens theory is worked out up to that",
            remedy="draft lower ranks",
        )
    law = raced_law(parameters, known)
    yield from _nodes(shape, np.pad(law, (0, shape.max_rank - known)), within)


def raced_law(parameters: dict[str, Any], max_rank: int) -> Floats:
    """P(R = r), r = 1..max_rank, where each position draws one of the pairs (R2, exact)."""
    target, draft = (np.atleast_2d(np.asarray(pmf, dtype=np.float64)) for pmf in pair_of(parameters))
    return np.asarray(RaceVerification().rank_pmf(target, draft, max_rank)).mean(axis=0)


def channel_limit(rank_pmf: Floats, max_rank: int, nodes: int) -> float:
    """T1 for trees of so many nodes on ranks up to `max_rank`; higher ranks are one letter (upper bound)."""
    return tunstall_bound(float(rank_entropy(rank_pmf[:max_rank])), max_rank + 1, nodes)


def _calls(shape: Tree, law: Floats) -> Iterator[Predicted]:
    """What S1 and T1 say; a depth of one node is that node, stated once."""
    accepted = Mean("accepted", 0, shape.depth)
    depths = survival(shape, law)
    yield Predicted("accepted drafts per call, one fewer than tokens", "S1", accepted, float(depths.sum()))
    limit = channel_limit(law, shape.max_rank, shape.nodes) - 1
    yield Predicted("accepted drafts per call, one fewer than tokens", "T1", accepted, limit, "upper bound")
    widths = np.bincount(shape.depths)
    for depth, share in enumerate(depths, start=1):
        if widths[depth] > 1:
            yield Predicted(f"P(accepted >= {depth})", "S1", Share("at_least", depth - 1), float(min(share, 1.0)))
    yield from _nodes(shape, law, range(shape.nodes))


def _nodes(shape: Tree, law: Floats, among: Iterable[int]) -> Iterator[Predicted]:
    weights = node_weights(shape, law)
    for node in among:
        yield Predicted(f"P(node {node + 1} accepted)", "S1", Share("reached", node), float(min(weights[node], 1.0)))
