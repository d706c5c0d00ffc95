"""R3 without replacement: the rank law of distinct candidates, by enumeration of what is rejected and by trials.

After a rejection the target's residual depends on *all* tokens rejected so far and on their order, as each one left
its own draft behind; so the sum runs over ordered tuples, and sets would not do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from spectheory.distributions import Array
from spectheory.errors import SettingError
from spectheory.verification.means import MOST_WORK

_BLOCK = 1 << 20
"""Entries of one array at a time."""


def most_ranks(tokens: int, max_rank: int) -> int:
    """The highest rank up to `max_rank` whose enumeration is not refused."""
    if tokens == 1:
        return max_rank
    rank = 1
    while rank < max_rank and tokens ** (rank + 1) <= MOST_WORK:
        rank += 1
    return rank


def check_size(tokens: int, max_rank: int) -> None:
    """Refuse an enumeration that is too long."""
    if most_ranks(tokens, max_rank) < max_rank:
        raise SettingError(
            f"{tokens} tokens and rank {max_rank} have {tokens}^{max_rank - 1} orders of rejection",
            limit=f"V^(max_rank-1) must be at most {MOST_WORK // tokens} here",
            remedy="use rank_pmf_estimate",
        )


def distinct_ranks(p: Array, q: Array, max_rank: int, xp: Any) -> Iterator[Array]:
    """P(R = r, X = x), ``[..., V]``, for r = 1..max_rank (exact)."""
    shape, size = p.shape, p.shape[-1]
    rows_p, rows_q = xp.reshape(p, (-1, size)), xp.reshape(q, (-1, size))
    laws: list[list[Array]] = []
    for row in range(rows_p.shape[0]):
        law = [xp.zeros_like(rows_p[row, :]) for _ in range(max_rank)]
        state = rows_p[row : row + 1, :], rows_q[row : row + 1, :]
        _visit(law, *state, xp.ones_like(state[0]) > 0, xp.ones_like(state[0][:, 0]), 0, xp)
        laws.append(law)
    for rank in range(max_rank):
        yield xp.reshape(xp.stack([law[rank] for law in laws]), shape) if laws else xp.zeros_like(p)


def _visit(law: list[Array], p: Array, q: Array, open_: Array, weight: Array, rank: int, xp: Any) -> None:
    """Add what the orders ``[n]`` give at this rank, then go on to every order one rejection longer."""
    law[rank] += xp.sum(weight[:, None] * xp.minimum(p, q), axis=0)
    if rank + 1 == len(law):
        return
    size = p.shape[1]
    left, mass = residual(p, q, xp)
    # (q-p)+ sums to the same TV, but not in floats: its own sum keeps the digits of a rare rejection.
    excess = xp.where((q > p) & (mass > 0), q - p, xp.zeros_like(p))
    whole = xp.sum(excess, axis=-1, keepdims=True)
    rejected = weight[:, None] * mass * excess / xp.where(whole > 0, whole, xp.ones_like(whole))
    (places,) = xp.nonzero(xp.reshape(rejected, (-1,)) > 0)
    step = max(1, _BLOCK // size)
    for start in range(0, places.shape[0], step):
        at = places[start : min(start + step, places.shape[0])]
        order, token = at // size, at % size
        kept = xp.take(open_, order, axis=0) & (xp.arange(size, device=p.device) != token[:, None])
        following = shortened(xp.take(q, order, axis=0), kept, xp)
        heavier = xp.take(xp.reshape(rejected, (-1,)), at)
        _visit(law, xp.take(left, order, axis=0), following, kept, heavier, rank + 1, xp)


def residual(p: Array, q: Array, xp: Any) -> tuple[Array, Array]:
    """The residual norm (p - q)+ ``[..., V]`` and its mass TV ``[..., 1]``; zeros where nothing is left."""
    left = xp.maximum(p - q, xp.zeros_like(p[..., :1]))
    mass = xp.sum(left, axis=-1, keepdims=True)
    return left / xp.where(mass > 0, mass, xp.ones_like(mass)), mass


def shortened(q: Array, kept: Array, xp: Any) -> Array:
    """The draft without its rejected tokens, normalised; uniform over the others when nothing is left of it."""
    q = xp.where(kept, q, xp.zeros_like(q))
    flat = xp.astype(kept, q.dtype)
    q = xp.where(xp.any(q > 0, axis=-1, keepdims=True), q, flat)
    total = xp.sum(q, axis=-1, keepdims=True)
    return q / xp.where(total > 0, total, xp.ones_like(total))


def estimated_ranks(
    p: Array, q: Array, max_rank: int, trials: int, rng: np.random.Generator, xp: Any
) -> tuple[Array, Array]:
    """Mean and standard error ``[..., max_rank]`` over trials that draw what is rejected (unbiased)."""
    block = max(1, _BLOCK // max(1, int(np.prod(p.shape))))
    done = [_trials(p, q, max_rank, min(block, trials - start), rng, xp) for start in range(0, trials, block)]
    shares = xp.concat(done, axis=0)
    return xp.mean(shares, axis=0), xp.std(shares, axis=0, correction=1) / trials**0.5


def _trials(p: Array, q: Array, max_rank: int, trials: int, rng: np.random.Generator, xp: Any) -> Array:
    """What each trial gives at each rank, ``[trials, ..., max_rank]``."""
    size, leading = p.shape[-1], tuple(p.shape[:-1])
    p, q = (xp.broadcast_to(pmf, (trials, *pmf.shape)) for pmf in (p, q))
    kept, weight, shares = p == p, xp.ones_like(p[..., 0]), []
    for rank in range(max_rank):
        shares.append(weight * xp.sum(xp.minimum(p, q), axis=-1))
        if rank + 1 == max_rank:
            break
        rejected = xp.cumulative_sum(xp.maximum(q - p, xp.zeros_like(p[..., :1])), axis=-1)
        p, mass = residual(p, q, xp)
        weight = weight * mass[..., 0]
        # In (0, 1], so that the first entry that reaches it has a mass of its own.
        height = xp.asarray(1 - rng.random((trials, *leading, 1)), dtype=p.dtype, device=p.device)
        token = xp.sum(xp.astype(rejected < height * rejected[..., -1:], xp.int64), axis=-1, keepdims=True)
        kept = kept & (xp.arange(size, device=p.device) != token)
        q = shortened(q, kept, xp)
    return xp.stack(shares, axis=-1)
