"""B8: draft trees of a drafter that ranks prefixes by a model of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import whole
from spectheory.distributions import Floats, as_numpy
from spectheory.errors import PmfError, ShapeError


@dataclass(frozen=True)
class ImperfectTree:
    """What a tree chosen by the draft predicts and loses, in predicted tokens per call without the bonus token.

    `value` is E[X] of the tree T_q of the P prefixes heaviest under the draft, `best` that of T_p, the heaviest under
    the target, `loss` their difference and `bound` its upper bound (B8). `claimed` is the probability of T_q under the
    draft: what the drafter itself expects.

    Examples
    --------
    >>> ImperfectTree(1.0, 1.5, 0.7, 1.2).loss
    0.5
    """

    value: float
    best: float
    bound: float
    claimed: float

    @property
    def loss(self) -> float:
        """Predicted tokens that the target's own tree has more."""
        return self.best - self.value


def imperfect_tree(target: Any, draft: Any, capacity: int) -> ImperfectTree:
    r"""The tree of P prefixes that a drafter with imperfect knowledge verifies, against the best one (B8; exact).

    .. math:: E[X] = \sum_{v\in T_q} p(v), \qquad
        \sum_{T_p} p - \sum_{T_q} p \le \sum_{T_p\setminus T_q} (p-q)_+ + \sum_{T_q\setminus T_p} (q-p)_+

    E[X] is exact for a drafter that does not see the target's sampling; the bound on the loss is an upper bound. It
    holds for any set of prefixes that contains both trees, and is 0 where the draft ranks prefixes by p. `target` and
    `draft` ``[N]`` are the probabilities p(v), q(v) of the *same* prefixes v under both models, each the product of its
    tokens' probabilities, parents before or after their children; `capacity` is P <= N. Of equal ones the first is
    taken.

    Examples
    --------
    >>> tree = imperfect_tree([0.6, 0.4, 0.36, 0.24], [0.3, 0.7, 0.09, 0.21], 1)
    >>> tree.value, round(tree.loss, 3), round(tree.bound, 3)
    (0.4, 0.2, 0.6)
    """
    p, q = _probabilities("target", target), _probabilities("draft", draft)
    if p.shape != q.shape:
        raise ShapeError(
            f"target has {len(p)} prefixes and draft {len(q)}",
            limit="both weigh the same prefixes",
            remedy="give each prefix both probabilities",
        )
    nodes = whole("capacity", capacity, most=len(p), remedy="give at least as many prefixes as nodes")
    best, chosen = (_heaviest(weights, nodes) for weights in (p, q))
    missed, mistaken = best & ~chosen, chosen & ~best
    bound = np.maximum(p - q, 0)[missed].sum() + np.maximum(q - p, 0)[mistaken].sum()
    return ImperfectTree(float(p[chosen].sum()), float(p[best].sum()), float(bound), float(q[chosen].sum()))


def _probabilities(name: str, values: Any) -> Floats:
    weights = as_numpy(values, name)
    if weights.ndim != 1 or len(weights) == 0:
        raise ShapeError(f"{name} has shape {weights.shape}", limit="[N], N >= 1", remedy="one probability per prefix")
    if not np.all((weights >= 0) & (weights <= 1)):
        raise PmfError(
            f"{name} has a path probability outside [0, 1]",
            limit="it is a product of probabilities",
            remedy="multiply along the path, without logs",
        )
    return weights


def _heaviest(weights: Floats, nodes: int) -> NDArray[np.bool_]:
    """Which prefixes ``[N]`` are among the heaviest."""
    chosen = np.zeros(len(weights), dtype=bool)
    chosen[np.argsort(-weights, kind="stable")[:nodes]] = True
    return chosen
