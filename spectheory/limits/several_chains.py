r"""k i.i.d. chains of drafts: the most that any verification of one call can accept (§12).

Of the output's first i tokens x, with :math:`P_i = p(x_1..x_i)` and :math:`Q_i = q(x_1..x_i)`, one of the k chains
begins with x with probability

.. math:: D_i = 1 - (1 - Q_i)^k .

So P(tau >= i, output x) is at most min(P_i, D_i), and

.. math:: E[\tau] \le \sum_i \alpha^*_k(p^{(i)}, q^{(i)}) \le \sum_i E_{x \sim p} \min(1, D_i / P_i)

with :math:`\alpha^*_k` the optimum of R4 for the laws of i tokens as pmfs. Both are upper bounds on the accepted drafts
of *one* call, of any lossless verification; with one chain both are the one-call bound (§7). They need not be reached.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from spectheory.distributions import Floats, as_numpy, fit_together
from spectheory.errors import PmfError
from spectheory.limits.inputs import pmfs_by_depth
from spectheory.verification.base import at_least_one
from spectheory.verification.optimal import optimal_acceptance

MOST_PATHS = 1 << 20
"""Most entries of the law of i tokens."""
_TINY = -600.0
"""Below this log Q the square of Q is no double: D = kQ to the last digit."""


def log_drawn(log_draft: Floats, chains: int) -> Floats:
    """Log D: that one of k chains begins with a run whose log-probability is log Q, ``[...]`` (exact).

    Examples
    --------
    >>> float(np.exp(log_drawn(np.log(0.5), 2)).round(12)), float(log_drawn(np.float64(-2000.0), 4).round(6))
    (0.75, -1998.613706)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        common = np.log(-np.expm1(chains * np.log1p(-np.exp(log_draft))))
    return np.where(log_draft < _TINY, log_draft + math.log(chains), common)


def several_chain_terms(log_target: Floats, log_draft: Floats, chains: int) -> Floats:
    r"""Terms of the bound on one call with k i.i.d. chains, ``[..., depth]`` to the same (§12/chains).

    .. math:: \min(1, D_i / P_i), \qquad D_i = 1 - (1 - Q_i)^k

    `log_target` and `log_draft` are the log-probabilities of the tokens that follow each start of target-sampled text:
    two numbers per token. The mean over the text of the terms' sum is an upper bound on the accepted drafts of any
    lossless verification of `chains` chains of so many drafts in one call. It is no bound over several calls.

    Raises
    ------
    SettingError
        If `chains` is not a whole number above 0.

    Examples
    --------
    >>> several_chain_terms(np.log([0.5, 0.5]), np.log([0.25, 1.0]), 2)
    array([0.875, 1.   ])
    """
    chains = at_least_one("chains", chains)
    p, q = (_log_probabilities(name, logs) for name, logs in (("log_target", log_target), ("log_draft", log_draft)))
    fit_together("log_target and log_draft", p, q)
    log_reach, reached = log_drawn(np.cumsum(q, axis=-1), chains), np.cumsum(p, axis=-1)
    impossible = log_reach == -np.inf  # where the draft cannot reach, the term is 0, whatever the target does
    return np.exp(np.minimum(0.0, np.where(impossible, -np.inf, log_reach - np.where(impossible, 0.0, reached))))


def _log_probabilities(name: str, values: Any) -> Floats:
    """Log-probabilities ``[..., depth]``, checked."""
    logs = as_numpy(values, name)
    if not logs.ndim or not (logs <= 0).all():
        raise PmfError(
            f"{name} of shape {logs.shape} has an entry above 0 or NaN, or no axis",
            limit="needs log-probabilities [..., depth]",
            remedy="pass natural logarithms",
        )
    return logs


def several_chains_bound(target: Sequence[Any], draft: Sequence[Any], chains: int) -> float:
    r"""Upper bound on E[tau] of a call with k i.i.d. chains: the sum over depths of R4 for laws of runs (§12/chains).

    `target` and `draft` hold the conditional pmfs of each depth, ``[V]``, ``[V, V]``, ``[V, V, V]``, ...: the last axis
    is the next token, the axes before are the tokens before. The laws of i tokens have V^i entries. This is at most the
    form of two numbers per token, :func:`several_chain_terms`.

    Raises
    ------
    ShapeError
        If a depth's pmfs are not ``[V] * depth``.
    SettingError
        If the depths differ, or the laws are too large.

    Examples
    --------
    >>> p, q = np.array([1 / 3, 2 / 3]), np.array([2 / 3, 1 / 3])
    >>> round(several_chains_bound([p], [q], 1), 6), round(several_chains_bound([p], [q], 2), 6)
    (0.666667, 0.888889)
    """
    chains = at_least_one("chains", chains)
    by_target, by_draft, total = np.ones(1), np.ones(1), 0.0
    for given in pmfs_by_depth(target, draft, MOST_PATHS):
        tokens = given[0].shape[-1]
        by_target, by_draft = (
            (law[:, None] * each.reshape(-1, tokens)).ravel()
            for law, each in zip((by_target, by_draft), given, strict=True)
        )
        total += float(optimal_acceptance(by_target, by_draft, chains))
    return total
