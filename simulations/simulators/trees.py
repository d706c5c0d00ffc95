"""ERSD down a draft tree: a trial is a call.

Parameters are ``paths``, the ranks from the root to each node, as lists or as one text like ``1 2 1-1``, and what ranks
come from: ``rank_pmf``, ``[A]``, or races between ``target`` and ``draft``, ``[V]`` or ``[n, V]``, or between the pmfs
of a recipe, ``{"pair": {"tokens": V, "spread": s, "noise": e, "seed": n}}``.

Counted are ``accepted``, ``[depth + 1]``, calls by their accepted drafts, ``at_least``, ``[depth]``, calls with so many
of them or more, from 1 on, and ``reached``, ``[nodes]``, calls that accepted each node, in the order of
:func:`tree_of`. A call outputs one token more than it accepts drafts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import softmax

from simulations.counts import Mean, Moments, Share, Tally
from simulations.draws import Counts, Floats, Words
from simulations.experiments.tasks import simulator
from simulations.kernels.ranked_trees import TreeCounts, raced_tree, ranked_tree
from simulations.simulators.positions import race_ranks
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.drafting import Shape, Tree, node_weights, survival
from spectheory.errors import SettingError
from spectheory.limits import tunstall_bound
from spectheory.verification import RaceVerification
from spectheory.verification.rank_entropy import rank_entropy


@simulator("tree", version="1")
def tree(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A call down a draft tree, ranks i.i.d. (S1, S3, T1)."""
    shape = tree_of(parameters["paths"])
    return _tally(shape, ranked_tree(shape, parameters["rank_pmf"], trials, state=state))


@simulator("raced-tree", version="1")
def raced(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A call down a draft tree, a race at every node (S1, R2)."""
    shape = tree_of(parameters["paths"])
    pair = pair_of(parameters)
    return _tally(shape, raced_tree(shape, *pair, trials, state=state, max_rank=parameters.get("max_rank")))


def paths_of(shape: Shape) -> str:
    """The paths of a shape as one text, which keeps parameters short."""
    return " ".join("-".join(map(str, path)) for path in shape.tree().paths)


def tree_of(paths: str | Sequence[Sequence[int]]) -> Tree:
    """The tree of paths, its nodes depth by depth."""
    if not isinstance(paths, str):
        return Tree.from_paths(paths)
    try:
        read = [tuple(map(int, path.split("-"))) for path in paths.split()]
    except ValueError as error:
        raise SettingError(
            f"the paths are {paths[:40]!r}", limit="ranks joined by hyphens, paths by blanks", remedy="as '1 2 1-1'"
        ) from error
    return Tree.from_paths(read)


def pair_of(parameters: Mapping[str, Any]) -> tuple[Any, Any]:
    """Target and draft pmfs that a task asks for: given, or from normal logits of scale `spread` plus `noise`."""
    recipe = parameters.get("pair")
    if recipe is None:
        return parameters["target"], parameters["draft"]
    rng = np.random.default_rng(recipe["seed"])
    logits = recipe["spread"] * rng.standard_normal(recipe["tokens"])
    return softmax(logits), softmax(logits + recipe["noise"] * rng.standard_normal(recipe["tokens"]))


def _tally(shape: Tree, counts: TreeCounts) -> Tally:
    at_least = counts.accepted[::-1].cumsum()[::-1]
    return Tally.of(
        int(at_least[0]),
        counts={
            "accepted": counts.accepted,
            "at_least": at_least[1:],
            "reached": _reached(shape, counts.exits.sum(axis=1)),
        },
        samples={"accepted": Moments.of_histogram(counts.accepted)},
    )


def _reached(shape: Tree, ended: Counts) -> Counts:
    """Calls through each node: those that ended there or below; `ended` has the root first."""
    through = ended.copy()
    for node in range(shape.nodes - 1, -1, -1):
        through[shape.parents[node] + 1] += through[node + 1]
    return through[1:]


# What theory says


@predicts("tree")
def tree_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Ranks from a given law."""
    yield from _calls(tree_of(parameters["paths"]), np.asarray(parameters["rank_pmf"], dtype=np.float64))


@predicts("raced-tree")
def raced_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
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
