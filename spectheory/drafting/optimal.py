"""S2: the draft tree with the most expected tokens, for ranks i.i.d. along the text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import instance, whole
from spectheory.distributions import as_numpy
from spectheory.drafting.consecutive import MOST_CONSECUTIVE, best_consecutive_tree
from spectheory.drafting.tree import Tree, at_least_one
from spectheory.drafting.weights import validate_rank_pmf
from spectheory.errors import PmfError, SettingError
from spectheory.kernels.tree import heaviest_nodes


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
        return best_consecutive_tree(law, budget, depth)
    order = np.argsort(-law, kind="stable")
    order = order[law[order] > 0]
    parents, places = heaviest_nodes(law[order], budget, depth, width)
    return Tree.trusted(parents, (order + 1).astype(np.int32)[places])


def _validate(law: NDArray[np.float64]) -> None:
    if law.ndim != 1:
        raise PmfError(f"the rank pmf has shape {law.shape}", limit="one law", remedy="average it over positions")
    if not law.max() > 0:
        raise PmfError("no rank has positive probability", limit="needs one", remedy="there is nothing to draft")
