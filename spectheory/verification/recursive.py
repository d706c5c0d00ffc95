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
from spectheory.verification.base import Accepted, Columns, Floats, RankRule, at_least_one, at_token, recorded_ranks
from spectheory.verification.distinct import check_size, distinct_ranks, estimated_ranks
from spectheory.verification.means import MOST_WORK, batch_mean, endless_entropy, exact_mean, repeats, too_long
from spectheory.verification.rank_entropy import rank_entropy
from spectheory.verification.recursive_entropy import recursive_rank_entropies
from spectheory.verification.token import TokenVerification

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
            own = {"name": "recursive-distinct", "title": "recursive, distinct", "colour": "sky", "drafts": "distinct"}
            for name, value in {**own, "recorded_in": "distinct_rank", "estimated": True}.items():
                object.__setattr__(self, name, value)

    def acceptance_given(self, target: Any, draft: Any) -> Array:
        """Acceptance of the first candidate given the output: that of token verification, ``[..., V]`` (A1, exact)."""
        return TokenVerification().acceptance_given(target, draft)

    def rank_pmf(self, target: Any, draft: Any, max_rank: int) -> Array:
        """P(R = r), r = 1..max_rank, ``[..., max_rank]`` (R3, exact): O(V) a rank.

        Distinct candidates take O(V^max_rank); beyond :data:`spectheory.verification.means.MOST_WORK` they are refused
        (:meth:`rank_pmf_estimate` serves there).
        """
        p, q, xp = self._door(target, draft, max_rank)
        return xp.stack([xp.sum(share, axis=-1) for share in self._ranks(p, q, max_rank, xp)], axis=-1)

    def rank_pmf_given(self, target: Any, draft: Any, token: Any, max_rank: int) -> Array:
        """P(R = r | output `token`), r = 1..max_rank, ``[..., max_rank]`` (R3, exact); cost and errors as above."""
        p, q, xp = self._door(target, draft, max_rank)
        joint = xp.stack([at_token(share, token, xp) for share in self._ranks(p, q, max_rank, xp)], axis=-1)
        own = at_token(p, token, xp)[..., None]
        return joint / xp.where(own > 0, own, xp.ones_like(own))

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
        return estimated_ranks(p + 0 * q, q + 0 * p, max_rank, trials, rng, xp)

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
        trials = max(2, min(1000, repeats(2 * _BATCHES * target.size * k)))
        batches = (self.rank_pmf_estimate(target, draft, k, trials, rng=rng)[0] for _ in range(_BATCHES))
        estimate = batch_mean([float(np.mean(law.sum(axis=-1))) for law in batches])
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
            check_size(p.shape[-1], max_rank)
        return p + 0 * q, q + 0 * p, xp

    def _ranks(self, p: Array, q: Array, max_rank: int, xp: Any) -> Iterator[Array]:
        """P(R = r, X = x), ``[..., V]``, for r = 1..max_rank."""
        if self.replacement:
            return islice(iid_ranks(p, q, xp), max_rank)
        return distinct_ranks(p, q, max_rank, xp)


def iid_ranks(p: Array, q: Array, xp: Any) -> Iterator[Array]:
    r"""P(R = r, X = x) :math:`= \min((p_x - s_r q_x)_+, G_{r-1} q_x)`, ``[..., V]``, r = 1, 2, ...; small rests keep
    digits.
    """
    left, mass = p, xp.ones_like(p[..., :1])
    while True:
        taken = mass * q
        yield xp.minimum(left, taken)
        left = xp.where(left > taken, left - taken, xp.zeros_like(left))
        mass = xp.minimum(mass, xp.sum(left, axis=-1, keepdims=True))
