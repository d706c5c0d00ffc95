"""One call of block verification on the mean over texts: how often it ends at each depth, and in which state (§7)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectheory.errors import SettingError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_BRANCHES = 1 << 26
"""Branches that are followed at a time; more would take minutes and gigabytes."""


def block_moves(target: Floats, draft: Floats, following: Ints, n: int, k: int) -> list[Floats]:
    r"""P(tau = i, state at the end of the call), ``[S, S]`` for i = 0..k, of a call from position n on (exact).

    Survival is the running minimum :math:`m_i = \min(1, \min_{j\le i} c_j)` of the cumulative ratio
    :math:`c_i = \prod_{l\le i}\rho_l`. A branch carries its survival mass u, the probability of its tokens times m, and
    :math:`w = m/c \le 1`; a token y takes them to :math:`p_y u \min(1, \rho_y/w)` and :math:`\min(1, w/\rho_y)`.
    Branches with w = 1 and one state have one future and are added up; the others are as many as paths.

    - ``target``, ``draft``, ``[T, S, V]``: pmf of the next token in each state; T = 1 serves every position.
    - ``following``, ``[S, V]``: the state after a token in a state.
    - ``n``, ``k``: position of the first draft, number of drafts.
    """
    states = target.shape[1]
    start = state = np.arange(states)
    u, w = np.ones(states), np.ones(states)
    moves: list[Floats] = []
    for depth in range(k + 1):
        if len(u) * target.shape[2] > MOST_BRANCHES:
            raise SettingError(
                f"{len(u):,} paths branch at depth {depth}",
                limit=f"{MOST_BRANCHES:,} branches at a time",
                remedy="use fewer tokens or drafts",
            )
        step = min(n + depth, len(target) - 1)
        p, q, to = target[step, state], draft[step, state], following[state]
        alive = np.minimum(u[:, None] * p, u[:, None] * q / w[:, None]) if depth < k else np.zeros_like(p)
        cell = (start * states)[:, None] + to
        ended = _added(cell, u[:, None] * p - alive, states)
        moves.append(ended.reshape(states, states))
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = np.where(alive > 0, np.minimum(1.0, w[:, None] * p / q), 0.0)
        start, state, u, w = _merged(cell[alive > 0], alive[alive > 0], weight[alive > 0], states)
    return moves


def _merged(cell: Ints, u: Floats, w: Floats, states: int) -> tuple[Ints, Ints, Floats, Floats]:
    """Starts, states, masses and ratios of the branches, those with w = 1 added up by start and state."""
    whole = w == 1.0
    together = _added(cell[whole], u[whole], states)
    kept = np.flatnonzero(together)
    cells = np.concatenate([kept, cell[~whole]])
    mass = np.concatenate([together[kept], u[~whole]])
    return cells // states, cells % states, mass, np.concatenate([np.ones(len(kept)), w[~whole]])


def _added(cell: Ints, mass: Floats, states: int) -> Floats:
    """Mass by start and state, ``[S S]``."""
    return np.asarray(np.bincount(cell.ravel(), mass.ravel(), minlength=states * states), dtype=np.float64)
