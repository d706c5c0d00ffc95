"""S1 to S3: what a shape gives when ranks are i.i.d. along the text, and the tree that gives most."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from spectheory.checks import instance, whole
from spectheory.distributions import Array, as_floats, as_numpy, sum_tolerance
from spectheory.drafting.tree import Shape, Tree, a_shape, at_least_one
from spectheory.errors import PmfError, SettingError
from spectheory.kernels.tree import heaviest_nodes


def validate_rank_pmf(rank_pmf: Any) -> Array:
    """Check the law of a rank, P(R = 1), P(R = 2), ..., ``[..., A]``; what is missing to 1 is P(R > A)."""
    law = as_floats(rank_pmf, "the rank pmf")
    xp = array_namespace(law)
    if law.ndim == 0 or law.shape[-1] == 0:
        raise PmfError("the rank pmf has no entries", limit="needs A >= 1 ranks", remedy="pass P(R = 1), P(R = 2), ...")
    if not bool(xp.all(law >= 0)):
        raise PmfError(
            f"the rank pmf has an entry {float(xp.min(law)):g}",
            limit="probabilities are >= 0",
            remedy="pass P(R = 1), P(R = 2), ...",
        )
    total = xp.sum(law, axis=-1)
    if bool(xp.any(total > 1 + sum_tolerance(law.dtype, xp))):
        raise PmfError(
            f"the rank pmf sums to {float(xp.max(total)):.10g}", limit="at most 1", remedy="normalise it first"
        )
    return law


def node_weights(shape: Shape, rank_pmf: Any) -> Array:
    r"""Probability that each node is accepted, ``[..., nodes]``: the marginal gain of the node (S1, exact).

    .. math:: \pi(v) = \prod_{j \le \text{depth}(v)} P(R = r_j(v))

    in the order of ``shape.tree()``; assumes ranks i.i.d. along the text.

    Examples
    --------
    >>> from spectheory.drafting import Tree
    >>> node_weights(Tree.from_paths([(1,), (2,), (1, 1)]), [0.5, 0.25])
    array([0.5 , 0.25, 0.25])
    """
    tree = a_shape(shape).tree()
    levels, xp = _levels(tree, rank_pmf)
    order = np.argsort(np.concatenate([nodes for nodes, _ in tree.levels]))
    weights = xp.concat(levels, axis=-1)
    return xp.take(weights, xp.asarray(order, device=weights.device), axis=-1)


def survival(shape: Shape, rank_pmf: Any) -> Array:
    """P(tau >= i) of the accepted drafts, i = 1..depth, ``[..., depth]``: the weights of depth i (S1, exact).

    Arguments and errors as in :func:`node_weights`.

    Examples
    --------
    >>> from spectheory.drafting import KAry
    >>> survival(KAry((2, 1)), [0.5, 0.25])
    array([0.75 , 0.375])
    """
    levels, xp = _levels(a_shape(shape).tree(), rank_pmf)
    return xp.stack([xp.sum(level, axis=-1) for level in levels], axis=-1)


def expected_tokens(shape: Shape, rank_pmf: Any) -> Array:
    r"""Expected tokens per call of a shape, ``[..., A]`` to ``[...]`` (S1, exact; ``kobus2025``).

    .. math:: E[\text{tokens}] = 1 + \sum_{v} \pi(v)

    The recovered or bonus token counts: it is the root's 1. Assumes ranks i.i.d. along the text with one law whatever
    the shape (the laws of k-SEQ and of Gumbel lists depend on k and do not serve).

    Examples
    --------
    >>> from spectheory.drafting import Batch, Chain
    >>> float(expected_tokens(Chain(2), [0.5, 0.25])), float(expected_tokens(Batch(2), [0.5, 0.25]))
    (1.75, 1.75)
    """
    within = survival(shape, rank_pmf)
    return 1 + array_namespace(within).sum(within, axis=-1)


def _levels(tree: Tree, rank_pmf: Any) -> tuple[list[Array], Any]:
    """Weights of the nodes of each depth, ``[..., nodes there]``, and their namespace."""
    law = validate_rank_pmf(rank_pmf)
    xp = array_namespace(law)
    if tree.max_rank > law.shape[-1]:
        raise SettingError(
            f"the shape has rank {tree.max_rank}",
            limit=f"the rank pmf stops at {law.shape[-1]}",
            remedy="give more ranks of the law or a narrower shape",
        )
    levels: list[Array] = []
    for nodes, parents in tree.levels:
        weights = xp.take(law, xp.asarray(tree.ranks[nodes].astype(np.int64) - 1, device=law.device), axis=-1)
        if levels:
            weights = weights * xp.take(levels[-1], xp.asarray(parents, device=law.device), axis=-1)
        levels.append(weights)
    return levels, xp


def exit_law(shape: Shape, rank_pmf: Any) -> Array:
    r"""Law of the leaf at which a call leaves the tree, ``[..., (nodes + 1) * (A + 1)]`` (S3, exact; ``tunstall1967``).

    The call reads ranks down the tree until one leads out of it: entry ``(v + 1) * (A + 1) + r - 1`` is the
    probability that it leaves node v (the root is -1) by rank r; the last letter is R > A. Reading is lossless, so

    .. math:: E[\text{tokens}] \cdot H(R) = H(\text{exit leaf}),

    with H(R) the entropy of the same A + 1 letters. There are :math:`(k+1)A + 1` leaves: hence T1.

    Arguments and errors as in :func:`node_weights`.

    Examples
    --------
    >>> from spectheory import entropy
    >>> from spectheory.drafting import Chain
    >>> law, shape = [0.5, 0.25, 0.25], Chain(2)
    >>> round(float(expected_tokens(shape, law) * entropy(law)), 9), round(float(entropy(exit_law(shape, law))), 9)
    (1.819511349, 1.819511349)
    """
    law = validate_rank_pmf(rank_pmf)
    xp = array_namespace(law)
    tree = a_shape(shape).tree()
    rest = 1 - xp.sum(law, axis=-1, keepdims=True)
    letters = xp.concat([law, xp.where(rest > 0, rest, xp.zeros_like(rest))], axis=-1)
    weights = node_weights(shape, law)
    inside = xp.concat([xp.ones_like(weights[..., :1]), weights], axis=-1)
    leaves = inside[..., :, None] * letters[..., None, :]
    inner = np.zeros((tree.nodes + 1, letters.shape[-1]), dtype=np.bool_)
    inner[tree.parents + 1, tree.ranks - 1] = True
    left = xp.where(xp.asarray(inner, device=law.device), xp.zeros_like(leaves), leaves)
    return xp.reshape(left, (*left.shape[:-2], inner.size))


Floats = NDArray[np.float64]
Path = tuple[int, ...]
MOST_CONSECUTIVE = 4096
"""Nodes of a tree by dynamic programme, whose time and memory grow with their square."""


def _best_consecutive_tree(law: Floats, budget: int, max_depth: int) -> Tree:
    r"""The tree with the most expected tokens among those whose siblings have ranks 1..m (S2, exact).

    Dynamic programme: with V_d(n) the most weight of n nodes below and including a root of weight 1 that may be d
    deep, and W_d(r, n) the most of n nodes below it whose ranks start at r,

    .. math:: V_d(n) = 1 + W_d(1, n - 1), \qquad
        W_d(r, n) = \max_{1\le j\le n} \pi_r V_{d-1}(j) + W_d(r + 1, n - j), \qquad W_d(r, 0) = 0.

    Examples
    --------
    >>> _best_consecutive_tree(np.array([0.1, 0.8]), 3, 3).paths
    [(1,), (2,), (2, 1)]
    """
    law = law[:budget]
    unlimited = max_depth >= budget
    tables = [_table(law, budget, None)] if unlimited else []
    above = np.ones(1)
    for _ in range(0 if unlimited else max_depth):
        tables.append(_table(law, budget, above))
        most = tables[-1][0][0]
        above = 1 + most[np.isfinite(most)]
    paths: list[Path] = []
    waiting: list[tuple[Path, int]] = [((), int(np.flatnonzero(np.isfinite(tables[-1][0][0]))[-1]))]
    while waiting:
        path, below = waiting.pop()
        sizes = _sizes(tables[0 if unlimited else max_depth - 1 - len(path)][1], below)
        while sizes and not law[len(sizes) - 1]:  # a rank that never occurs is drafted for the sake of later ones only
            sizes.pop()
        children = [(*path, rank) for rank in range(1, len(sizes) + 1)]
        paths += children
        waiting += [
            (child, size - 1)
            for child, size in zip(children, sizes, strict=True)
            if size > 1 and law[child[-1] - 1] > 0
        ]
    return Tree.from_paths(paths or [(1,)])


def _sizes(first: NDArray[np.int64], below: int) -> list[int]:
    """Nodes of the subtree of each child, of a node with so many below it."""
    sizes: list[int] = []
    while below:
        sizes.append(int(first[len(sizes), below]))
        below -= sizes[-1]
    return sizes


def _table(law: Floats, budget: int, above: Floats | None) -> tuple[Floats, NDArray[np.int64]]:
    """W_d(r, n) ``[A + 1, budget + 1]`` and the size of the first subtree there, from `above` = V_{d-1} (None: no
    limit).
    """
    values = np.zeros((len(law) + 1, budget + 1))
    values[:, 1:] = -np.inf
    first = np.zeros((len(law), budget + 1), dtype=np.int64)
    for n in range(1, budget + 1):
        subtree = (1 + values[0, :n]) if above is None else above[:n]
        for r in range(len(law) - 1, -1, -1):
            options = law[r] * subtree + values[r + 1, n - 1 :: -1][: len(subtree)]
            j = int(np.argmax(options))
            values[r, n], first[r, n] = options[j], j + 1
    return values, first


def optimal_tree(
    rank_pmf: Any,
    budget: int,
    max_depth: int | None = None,
    *,
    max_width: int | None = None,
    consecutive: bool = False,
) -> Tree:
    r"""The draft tree of `budget` nodes with the most expected tokens per call (S2, exact; ``kobus2025``).

    The heaviest nodes, weight :math:`\pi(v) = \prod_j P(R = r_j(v))`: a child is never heavier than its parent, so they
    form a tree, which is Tunstall's (``tunstall1967``). Ranks need not be in order of probability: races and top-k
    drafts may leave out a rank. `max_depth` (draft passes per call) and `max_width` (tokens of one draft pass) keep the
    heaviest nodes of each depth, which is a tree too. The tree has fewer nodes only if no further node has positive
    weight within the limits. What `rank_pmf` ``[A]`` misses to 1 is never drafted.

    `consecutive` says that the children of a node must have ranks 1..m, as recursive rejection tries them in order. It
    matters only where P(R = r) grows with r (without replacement); then a dynamic programme, quadratic in the budget,
    finds the tree, and `max_width` is refused. Otherwise the heaviest node comes first (of equal ones the shallowest),
    so that the first k nodes are the optimal tree of k nodes.

    Examples
    --------
    >>> optimal_tree([0.6, 0.3], 4).paths
    [(1,), (1, 1), (2,), (1, 1, 1)]
    >>> optimal_tree([0.6, 0.3], 4, max_depth=2).paths
    [(1,), (1, 1), (2,), (2, 1)]
    >>> optimal_tree([0.001, 0.999], 1).paths
    [(2,)]
    """
    law = as_numpy(validate_rank_pmf(rank_pmf))
    _validate(law)
    budget = at_least_one("budget", budget)
    depth = budget if max_depth is None else min(at_least_one("max depth", max_depth), budget)
    width = budget if max_width is None else at_least_one("max width", max_width)
    instance("consecutive", consecutive, bool, remedy="False is the default")
    if consecutive and (law[1:] > law[:-1]).any():
        if max_width is not None:
            raise SettingError(
                f"max width is {max_width}",
                limit="the width cannot be limited where later ranks are more probable",
                remedy="leave it out",
            )
        whole("budget", budget, most=MOST_CONSECUTIVE, remedy="use 1 or more")
        return _best_consecutive_tree(law, budget, depth)
    order = np.argsort(-law, kind="stable")
    order = order[law[order] > 0]
    parents, places = heaviest_nodes(law[order], budget, depth, width)
    return Tree.trusted(parents, (order + 1).astype(np.int32)[places])


def _validate(law: NDArray[np.float64]) -> None:
    if law.ndim != 1:
        raise PmfError(f"the rank pmf has shape {law.shape}", limit="one law", remedy="average it over positions")
    if not law.max() > 0:
        raise PmfError("no rank has positive probability", limit="needs one", remedy="there is nothing to draft")
