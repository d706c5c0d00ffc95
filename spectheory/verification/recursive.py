"""R3: recursive rejection, with i.i.d. candidates (miao2024specinfer) or distinct ones (chen2024sequoia)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import generator, instance, whole
from spectheory.distributions import Array, ratio, validate_pair
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.verification.base import (
    MOST_WORK,
    Accepted,
    Columns,
    Floats,
    RankRule,
    _batch_mean,
    _repeats,
    at_least_one,
    at_token,
    endless_entropy,
    exact_mean,
    recorded_ranks,
    too_long,
)
from spectheory.verification.rank_entropy import rank_entropy, recursive_rank_entropies
from spectheory.verification.token import TokenVerification

# R3 without replacement: the rank law of distinct candidates, by enumeration of what is rejected and by trials.
#
# After a rejection the target's residual depends on *all* tokens rejected so far and on their order, as each one left
# its own draft behind; so the sum runs over ordered tuples, and sets would not do.


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


def _check_size(tokens: int, max_rank: int) -> None:
    """Refuse an enumeration that is too long."""
    if most_ranks(tokens, max_rank) < max_rank:
        raise SettingError(
            f"{tokens} tokens and rank {max_rank} have {tokens}^{max_rank - 1} orders of rejection",
            limit=f"V^(max_rank-1) must be at most {MOST_WORK // tokens} here",
            remedy="use rank_pmf_estimate",
        )


def _distinct_ranks(p: Array, q: Array, max_rank: int, xp: Any) -> Iterator[Array]:
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
    left, mass = _residual(p, q, xp)
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
        following = _shortened(xp.take(q, order, axis=0), kept, xp)
        heavier = xp.take(xp.reshape(rejected, (-1,)), at)
        _visit(law, xp.take(left, order, axis=0), following, kept, heavier, rank + 1, xp)


def _residual(p: Array, q: Array, xp: Any) -> tuple[Array, Array]:
    """The residual norm (p - q)+ ``[..., V]`` and its mass TV ``[..., 1]``; zeros where nothing is left."""
    left = xp.maximum(p - q, xp.zeros_like(p[..., :1]))
    mass = xp.sum(left, axis=-1, keepdims=True)
    return left / xp.where(mass > 0, mass, xp.ones_like(mass)), mass


def _shortened(q: Array, kept: Array, xp: Any) -> Array:
    """The draft without its rejected tokens, normalised; uniform over the others when nothing is left of it."""
    q = xp.where(kept, q, xp.zeros_like(q))
    flat = xp.astype(kept, q.dtype)
    q = xp.where(xp.any(q > 0, axis=-1, keepdims=True), q, flat)
    total = xp.sum(q, axis=-1, keepdims=True)
    return q / xp.where(total > 0, total, xp.ones_like(total))


def _estimated_ranks(
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
        p, mass = _residual(p, q, xp)
        weight = weight * mass[..., 0]
        # In (0, 1], so that the first entry that reaches it has a mass of its own.
        height = xp.asarray(1 - rng.random((trials, *leading, 1)), dtype=p.dtype, device=p.device)
        token = xp.sum(xp.astype(rejected < height * rejected[..., -1:], xp.int64), axis=-1, keepdims=True)
        kept = kept & (xp.arange(size, device=p.device) != token)
        q = _shortened(q, kept, xp)
    return xp.stack(shares, axis=-1)


# The rule


_BATCHES = 20
"""Independent estimates, whose spread gives the interval of their mean."""


@dataclass(frozen=True)
class RecursiveRejection(RankRule):
    r"""Judge the candidates one after another, each by token verification against what the last left over (R3, exact).

    Candidate m is accepted with probability :math:`\min(1, p^m_x/q^m_x)`; after a rejection :math:`p^{m+1} =
    \mathrm{norm}(p^m - q^m)_+`. With `replacement` candidates are i.i.d. (:math:`q^m = q`, ``miao2024specinfer``).
    Without it they are distinct (``chen2024sequoia``): a rejected token is taken out of q, and when nothing is left of
    q candidates are uniform over the tokens not yet rejected. The output law is p either way.

    With i.i.d. candidates and without normalising, after m rejections :math:`(p - s_{m+1} q)_+` is left, of mass
    :math:`G_m = P(R > m)`, with :math:`s_1 = 0`, :math:`G_0 = 1`, :math:`s_{m+1} = s_m + G_{m-1}`. So a rank costs
    O(V), and R is almost surely finite if the draft lacks no token of the target. Distinct candidates are no i.i.d.
    rule: they may accept more than R4, and H(R) may fall below KL.

    Examples
    --------
    >>> RecursiveRejection().rank_pmf([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 3).round(6)
    array([0.7  , 0.06 , 0.048])
    >>> RecursiveRejection(replacement=False).rank_pmf([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 3).round(6)
    array([0.7 , 0.12, 0.18])
    """

    replacement: bool = True

    name: ClassVar[str] = "recursive"
    statement: ClassVar[str] = "R3"
    title: ClassVar[str] = "recursive, i.i.d."
    colour: ClassVar[str] = "indigo"
    needs: ClassVar[tuple[str, ...]] = ("log_target", "log_draft")
    consecutive: ClassVar[bool] = True
    recorded_in: ClassVar[str] = "rejection_rank"

    def __post_init__(self) -> None:
        instance("replacement", self.replacement, bool, remedy="True is i.i.d.")
        if not self.replacement:
            fields = {"name": "recursive-distinct", "title": "recursive, distinct", "colour": "sky"}
            more = {"drafts": "distinct", "recorded_in": "distinct_rank", "estimated": True}
            for name, value in {**fields, **more}.items():
                object.__setattr__(self, name, value)

    def acceptance_given(self, target: Any, draft: Any) -> Array:
        """Acceptance of the first candidate given the output: that of token verification, ``[..., V]`` (A1, exact)."""
        return TokenVerification().acceptance_given(target, draft)

    def rank_pmf(self, target: Any, draft: Any, max_rank: int) -> Array:
        """P(R = r), r = 1..max_rank, ``[..., max_rank]`` (R3, exact): O(V) a rank.

        Distinct candidates take O(V^max_rank); beyond :data:`spectheory.verification.base.MOST_WORK` they are refused
        (:meth:`rank_pmf_estimate` serves there).
        """
        p, q, xp = self._door(target, draft, max_rank)
        return xp.stack([xp.sum(share, axis=-1) for share in self._ranks(p, q, max_rank, xp)], axis=-1)

    def rank_pmf_given(self, target: Any, draft: Any, token: Any, max_rank: int) -> Array:
        """P(R = r | output `token`), r = 1..max_rank, ``[..., max_rank]`` (R3, exact); cost and errors as above."""
        p, q, xp = self._door(target, draft, max_rank)
        joint = xp.stack([at_token(share, token, xp) for share in self._ranks(p, q, max_rank, xp)], axis=-1)
        mass = at_token(p, token, xp)[..., None]
        return joint / xp.where(mass > 0, mass, xp.ones_like(mass))

    def expected_rank(self, target: Any, draft: Any) -> Array:
        r"""E[R] :math:`= \max_x p_x/q_x`, ``[...]``, with i.i.d. candidates (R3, exact).

        The sum of the :math:`G_m` is the limit of :math:`s_m`, and it is reached where nothing is left. Infinite where
        the draft lacks a token of the target.
        """
        if not self.replacement:
            raise SettingError(
                "candidates are distinct",
                limit="their mean rank has no closed form",
                remedy="sum r P(R = r), R is at most V",
            )
        p, q, xp = validate_pair(target, draft)
        return xp.max(ratio(p + 0 * q, q + 0 * p, xp), axis=-1)

    def rank_pmf_estimate(
        self, target: Any, draft: Any, max_rank: int, trials: int, *, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        r"""Unbiased estimate of P(R = r) with distinct candidates, and its standard error, both ``[..., max_rank]``
        (R3).

        Each trial draws the rejected tokens alone, :math:`x_m \sim \mathrm{norm}(q^m - p^m)_+`; rank r contributes
        :math:`\sum_x \min(p^r_x, q^r_x) \prod_{m<r} TV(p^m, q^m)`, so rank 1 has no error. Time and memory O(V) a trial
        and rank. For vocabularies too large to enumerate.

        Examples
        --------
        >>> rule, rng = RecursiveRejection(replacement=False), np.random.default_rng(1)
        >>> mean, error = rule.rank_pmf_estimate([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 2, 100, rng=rng)
        >>> mean.round(6), error.round(6)
        (array([0.7 , 0.12]), array([0., 0.]))
        """
        if self.replacement:
            raise SettingError(
                "candidates are i.i.d.", limit="estimates are for distinct ones", remedy="rank_pmf is exact"
            )
        max_rank = at_least_one("max_rank", max_rank)
        trials = whole("trials", trials, least=2, most=MOST_WORK, remedy="an error needs two trials")
        rng = generator(rng)
        p, q, xp = validate_pair(target, draft)
        return _estimated_ranks(p + 0 * q, q + 0 * p, max_rank, trials, rng, xp)

    def rank_law(self, columns: Columns, max_rank: int) -> NDArray[np.float64]:
        """P(R = r | text), ``[N, max_rank]``, as recorded; one rank needs the two log-probabilities alone (R3, exact).

        With distinct candidates ranks from 2 on are unbiased estimates, independent from position to position. Expected
        calls are affine in the law of each single position, since a path of calls passes it once (§7), so they are
        unbiased too.
        """
        if max_rank == 1:
            return TokenVerification().accepted_at(columns)[:, None]
        return recorded_ranks(columns, self.recorded_in, max_rank)

    def mean_acceptance(
        self, target: Floats, draft: Floats, k: int, rng: np.random.Generator | None = None
    ) -> Accepted:
        """Mean acceptance; of distinct candidates an estimate where the orders are too many, if `rng` is given (R8)."""
        pairs, tokens = target.shape
        if self.replacement or k == 1:
            return super().mean_acceptance(target, draft, k)
        if k >= tokens:  # the last of as many candidates as tokens is the output for sure
            return Accepted(Interval.exact(1.0))
        if not too_long(pairs * tokens**k):
            return super().mean_acceptance(target, draft, k)
        note = f"{pairs} x {tokens}^{k} orders of rejection left out; "
        if rng is None:
            return Accepted(None, "none", note + "rng or rank_pmf_estimate gives an estimate")
        trials = max(2, min(1000, _repeats(2 * _BATCHES * target.size * k)))
        batches = (self.rank_pmf_estimate(target, draft, k, trials, rng=rng)[0] for _ in range(_BATCHES))
        estimate = _batch_mean([float(np.mean(law.sum(axis=-1))) for law in batches])
        return Accepted(estimate, "estimate", note + "drawn at random, 95% interval")

    def mean_rank_entropy(self, target: Floats, draft: Floats) -> tuple[Interval | None, str]:
        """Mean H(R), nats: of endless i.i.d. candidates, or of all V distinct ones where they are few."""
        pairs, tokens = target.shape
        if self.replacement:
            return endless_entropy(lambda p, q: Interval.exact(recursive_rank_entropies(p, q)[1]), target, draft)
        if too_long(pairs * tokens ** min(tokens, 24)):  # beyond 24 tokens it is too long in any case
            return None, ""
        return exact_mean(rank_entropy(self.rank_pmf(target, draft, tokens))), ""

    def _door(self, target: Any, draft: Any, max_rank: int) -> tuple[Array, Array, Any]:
        max_rank = at_least_one("max_rank", max_rank)
        p, q, xp = validate_pair(target, draft)
        if not self.replacement:
            _check_size(p.shape[-1], max_rank)
        return p + 0 * q, q + 0 * p, xp

    def _ranks(self, p: Array, q: Array, max_rank: int, xp: Any) -> Iterator[Array]:
        """P(R = r, X = x), ``[..., V]``, for r = 1..max_rank."""
        if self.replacement:
            return islice(_iid_ranks(p, q, xp), max_rank)
        return _distinct_ranks(p, q, max_rank, xp)


def _iid_ranks(p: Array, q: Array, xp: Any) -> Iterator[Array]:
    r"""P(R = r, X = x) :math:`= \min((p_x - s_r q_x)_+, G_{r-1} q_x)`, ``[..., V]``, r = 1, 2, ...; small rests keep
    digits.
    """
    left, mass = p, xp.ones_like(p[..., :1])
    while True:
        taken = mass * q
        yield xp.minimum(left, taken)
        left = xp.where(left > taken, left - taken, xp.zeros_like(left))
        mass = xp.minimum(mass, xp.sum(left, axis=-1, keepdims=True))
