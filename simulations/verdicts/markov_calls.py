"""Expected calls over texts that are sampled from a Markov target, from the path theorem (§7): exact, no text drawn.

Given the text calls are independent, and the law of one depends on the tokens up to where the next one starts. So the
calls left after n tokens depend on the last token alone, on the mean over texts: the recursion of §7 runs over states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectheory.drafting import Tree
from spectheory.errors import SettingError
from spectheory.verification import BlockVerification, GreedyMatch, PathRule, RankRule

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
OneMore = Callable[[Floats], Floats]


class MarkovCalls(NamedTuple):
    """Calls of a text."""

    expected: float
    variance: float


class Models(NamedTuple):
    """Pmfs of the next token in each state, ``[T, S, V]``, T = 1 for all positions; the next state, ``[S, V]``."""

    target: Floats
    draft: Floats
    following: NDArray[np.int64]

    def moved(self, weights: Floats) -> Any:
        """The operator ``[S, S]`` that takes values of the next state to this one, tokens weighted ``[S, V]``."""
        states, tokens = weights.shape
        rows = np.arange(0, states * tokens + 1, tokens)
        moves = sparse.csr_array((weights.ravel(), self.following.ravel(), rows), shape=(states, states))
        return moves if states > tokens else moves.toarray()


def markov_calls(
    rule: PathRule, target: Any, draft: Any, initial: Any, *, length: int, tree: Tree, following: Any = None
) -> MarkovCalls:
    """Mean and variance of the calls that a text of `length` tokens takes (§7, exact).

    - ``rule``: how calls verify; block verification takes chains alone. The text of greedy match is the target's greedy
      one.
    - ``target``, ``draft``, ``[V, V]`` or ``[T, V, V]``: transition pmfs, row x after token x; with `following`, ``[S,
      V]``, a row for each state.
    - ``initial``, ``[V]`` or ``[S]``: pmf of the token, or state, before the text.
    - ``tree``: what each call drafts; that the last calls draft less changes no call.
    - ``following``, ``[S, V]``: state after a token in a state, as of an n-gram; None: the token is the state.
    """
    models = _models(rule, target, draft, following)
    none = np.zeros((models.target.shape[1], 2))  # first and second moment
    mean, square = np.asarray(initial, dtype=np.float64) @ _ends(rule, models, target, length, tree, none, _one_more)
    return MarkovCalls(float(mean), float(square - mean**2))


def markov_call_law(rule: PathRule, target: Any, draft: Any, initial: Any, *, length: int, tree: Tree) -> Floats:
    """P(calls = t), t = 0..length, of a text (§7, exact); arguments as above."""
    models = _models(rule, target, draft, None)
    done = np.eye(1, length + 1).repeat(models.target.shape[1], axis=0)
    ends = _ends(rule, models, target, length, tree, done, lambda later: np.roll(later, 1, axis=1))
    return np.asarray(initial, dtype=np.float64) @ ends


def _models(rule: PathRule, target: Any, draft: Any, following: Any) -> Models:
    """The text's law and the draft, with an axis of positions."""
    p, q = np.asarray(target, dtype=np.float64), np.asarray(draft, dtype=np.float64)
    if isinstance(rule, GreedyMatch):
        p = (np.arange(p.shape[-1]) == np.argmax(p, axis=-1, keepdims=True)).astype(np.float64)
    shape = np.broadcast_shapes((1, *p.shape[-2:]), p.shape, q.shape)
    after = np.broadcast_to(np.arange(p.shape[-1]), p.shape[-2:]) if following is None else np.asarray(following)
    return Models(np.broadcast_to(p, shape), np.broadcast_to(q, shape), after)


def mean_acceptance(
    rule: PathRule, target: Any, draft: Any, initial: Any, *, length: int, following: Any = None
) -> float:
    """Acceptance rate of one draft, averaged over positions and texts (A1, A2, A4, exact): all that C1 knows."""
    models = _models(rule, target, draft, following)
    rates = np.broadcast_to(np.asarray(rule.acceptance(models.target, models.draft)), models.target.shape[:2])
    state, total = np.asarray(initial, dtype=np.float64), 0.0
    for n in range(length):
        step = min(n, len(rates) - 1)
        total += float(state @ rates[step])
        if n == 0 or len(rates) > 1:
            move = models.moved(models.target[step])
        state = state @ move
    return total / length


# Rules that decide position by position


def rank_laws(rule: PathRule, target: Any, draft: Any, most: int) -> Floats:
    """P(R = r | output y), r = 1..most, for every row: ``[..., V]`` to ``[most, ..., V]``, 0 where p_y = 0."""
    p, q = np.asarray(target, dtype=np.float64), np.asarray(draft, dtype=np.float64)
    if most == 1:
        laws = np.asarray(rule.acceptance_given(p, q))[None]
    elif isinstance(rule, RankRule):
        given = rule.rank_pmf_given(p[..., None, :], q[..., None, :], np.arange(p.shape[-1]), most)
        laws = np.moveaxis(np.asarray(given), -1, 0)
    else:
        raise SettingError(f"a rank is {most}", limit=f"{rule.name} has one candidate", remedy="draft a chain")
    return np.where(p > 0, laws, 0.0)


def _ends(
    rule: PathRule, models: Models, target: Any, length: int, tree: Tree, ends: Floats, one_more: OneMore
) -> Floats:
    """What is known of the calls of a text from each state, ``[S, m]``: `ends` of none, `one_more` of one call more.

    With v the node that a call has reached, X the calls after it and D those from its end on:
    X_v(n) = sum over children of P(R = r | y) X_vr(n + 1), plus, where the rank is none of theirs, D(n + 1).
    """
    if isinstance(rule, BlockVerification):
        return _block_ends(models, length, tree, ends, one_more)
    laws = rank_laws(rule, target, models.draft, tree.max_rank)
    steps = len(models.target)
    nodes = [(), *tree.paths]
    place = {path: i for i, path in enumerate(nodes)}
    kin = {rank: [v for v in nodes[1:] if v[-1] == rank] for rank in range(1, tree.max_rank + 1)}
    states = models.target.shape[1]
    inside = np.repeat(ends[None], len(nodes), axis=0)
    for n in range(length - 1, -1, -1):
        if n == length - 1 or steps > 1:
            text = models.target[min(n, steps - 1)]
            plain = models.moved(text)
            accepted = {rank: models.moved(text * laws[rank - 1, min(n, steps - 1)]) for rank in kin if kin[rank]}
        now = np.repeat((plain @ ends)[None], len(nodes), axis=0)
        for rank, move in accepted.items():
            gains = np.concatenate([inside[place[v]] - ends for v in kin[rank]], axis=1)
            moved = (move @ gains).reshape(states, -1, ends.shape[1])
            for i, v in enumerate(kin[rank]):
                now[place[v[:-1]]] += moved[:, i]
        inside, ends = now, one_more(now[0])
    return ends


def _one_more(later: Floats) -> Floats:
    """Moments of 1 + X from those of X, ``[S, 2]``."""
    return np.stack([1 + later[:, 0], 1 + 2 * later[:, 0] + later[:, 1]], axis=1)


# Block verification


def _block_ends(models: Models, length: int, tree: Tree, done: Floats, one_more: OneMore) -> Floats:
    """The same for block verification of a chain: D(n) = 1 + sum over depths i of P(tau = i) D(n + i + 1)."""
    if tree.max_rank > 1:
        raise SettingError(f"a rank is {tree.max_rank}", limit="block has one candidate", remedy="draft a chain")
    k, ends = tree.depth, np.repeat(done[None], length + tree.depth + 1, axis=0)
    for n in range(length - 1, -1, -1):
        if n == length - 1 or len(models.target) > 1:
            moves = block_moves(*models, n, k if len(models.target) == 1 else min(k, length - n - 1))
        ends[n] = one_more(sum((move @ ends[n + i + 1] for i, move in enumerate(moves)), np.zeros(done.shape)))
    return ends[0]


# One call of block verification: how often it ends at each depth, and in which state

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
