"""S1 and S3: what a shape gives when ranks are i.i.d. along the text."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from spectheory.distributions import Array, as_floats, sum_tolerance
from spectheory.drafting.tree import Shape, Tree, a_shape
from spectheory.errors import PmfError, SettingError


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
        own = xp.take(law, xp.asarray(tree.ranks[nodes].astype(np.int64) - 1, device=law.device), axis=-1)
        levels.append(own * xp.take(levels[-1], xp.asarray(parents, device=law.device), axis=-1) if levels else own)
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
