"""A4, R7: rules that engines really use and that are often mistaken for token verification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Array, validate_pair
from spectheory.divergences import entropy
from spectheory.intervals import Interval
from spectheory.verification.base import (
    Columns,
    Drafts,
    Floats,
    Output,
    PositionRule,
    RankRule,
    at_least_one,
    at_token,
    exact_mean,
    single_candidate,
)


@dataclass(frozen=True)
class IndependentMatch(PositionRule):
    r"""Draft and output are sampled independently and accepted if equal: acceptance :math:`\sum_x p_x q_x` (A4).

    Examples
    --------
    >>> round(float(IndependentMatch().acceptance([1/3, 2/3], [2/3, 1/3])), 6)
    0.444444
    """

    name: ClassVar[str] = "independent"
    statement: ClassVar[str] = "A4"
    colour: ClassVar[str] = "black"
    needs: ClassVar[tuple[str, ...]] = ("log_draft",)

    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Array:
        """Probability of a match, the sum of p q over the tokens (A4, exact)."""
        single_candidate(self, k)
        p, q, xp = validate_pair(target, draft)
        return xp.sum(p * q, axis=-1)

    def acceptance_given(self, target: Any, draft: Any) -> Array:
        """Acceptance given the output, a(x) = q_x, ``[..., V]`` (A4, exact)."""
        p, q, _ = validate_pair(target, draft)
        return q + 0 * p

    def accepted_at(self, columns: Columns) -> NDArray[np.float64]:
        """Draft probability of the text's token."""
        return np.exp(columns["log_draft"])


@dataclass(frozen=True)
class ArgmaxDraft(PositionRule):
    """The draft's most probable token against a sampled output: acceptance p(argmax q) (A4; ties: lowest index).

    Examples
    --------
    >>> round(float(ArgmaxDraft().acceptance([1/3, 2/3], [2/3, 1/3])), 6)
    0.333333
    """

    name: ClassVar[str] = "argmax"
    served: ClassVar[bool] = True
    statement: ClassVar[str] = "A4"
    colour: ClassVar[str] = "yellow"
    drafts: ClassVar[Drafts] = "chosen"
    needs: ClassVar[tuple[str, ...]] = ("draft_rank",)

    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Array:
        """Target probability of the draft's first choice (A4, exact)."""
        single_candidate(self, k)
        p, q, xp = validate_pair(target, draft)
        return xp.sum(xp.where(_first_choice(q, xp), p, 0 * p), axis=-1)

    def acceptance_given(self, target: Any, draft: Any) -> Array:
        """Acceptance given the output: 1 at the draft's first choice, else 0, ``[..., V]`` (A4, exact)."""
        p, q, xp = validate_pair(target, draft)
        return xp.astype(_first_choice(q, xp), p.dtype) + 0 * p

    def accepted_at(self, columns: Columns) -> NDArray[np.float64]:
        """1 where the text's token is the draft's first choice."""
        return (columns["draft_rank"] == 1).astype(np.float64)


@dataclass(frozen=True)
class GreedyMatch(PositionRule):
    """Greedy draft against greedy target: accepted where the first choices agree (A4; ties: lowest index).

    Examples
    --------
    >>> float(GreedyMatch().acceptance([1/3, 2/3], [2/3, 1/3]))
    0.0
    """

    name: ClassVar[str] = "greedy"
    served: ClassVar[bool] = True
    statement: ClassVar[str] = "A4"
    colour: ClassVar[str] = "indigo"
    drafts: ClassVar[Drafts] = "chosen"
    output: ClassVar[Output] = "first choice"
    needs: ClassVar[tuple[str, ...]] = ("greedy_agreement",)

    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Array:
        """1 where the first choices agree, else 0 (A4, exact)."""
        single_candidate(self, k)
        p, q, xp = validate_pair(target, draft)
        return xp.sum(xp.astype(_first_choice(p, xp) & _first_choice(q, xp), p.dtype), axis=-1)

    def acceptance_given(self, target: Any, draft: Any) -> Array:
        """Acceptance given the output: the same for every output, ``[..., V]`` (A4, exact)."""
        p, q, _ = validate_pair(target, draft)
        return self.acceptance(p, q)[..., None] + 0 * p

    def accepted_at(self, columns: Columns) -> NDArray[np.float64]:
        """1 where the first choices agree; meant for greedily decoded text."""
        return columns["greedy_agreement"].astype(np.float64)


@dataclass(frozen=True)
class TopKMatch(RankRule):
    """The draft's k most probable tokens against a sampled output, as Medusa and EAGLE heads draft them (R7).

    R is the place of the output in the draft's descending order (ties: lowest index first), so P(R <= k) is the mass
    the target has on the draft's top k. A greedy target is the same with its one-hot pmf. Candidates are distinct and
    not drawn from q: the rule may accept more than R4. R names the output, so H(R) = H(p), which may be below KL.

    Examples
    --------
    >>> TopKMatch().rank_pmf([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 2)
    array([0.2, 0.3])
    """

    name: ClassVar[str] = "topk"
    statement: ClassVar[str] = "R7"
    title: ClassVar[str] = "top-k"
    colour: ClassVar[str] = "brown"
    drafts: ClassVar[Drafts] = "chosen"
    needs: ClassVar[tuple[str, ...]] = ("draft_rank",)
    recorded_in: ClassVar[str] = "draft_rank"

    def acceptance_given(self, target: Any, draft: Any) -> Array:
        """Acceptance of one draft given the output: 1 at the draft's first choice, else 0, ``[..., V]`` (R7, exact)."""
        return ArgmaxDraft().acceptance_given(target, draft)

    def rank_pmf(self, target: Any, draft: Any, max_rank: int) -> Array:
        """P(R = r), r = 1..max_rank: the target in the draft's order, ``[..., max_rank]``, 0 past V (R7, exact)."""
        max_rank = at_least_one("max_rank", max_rank)
        p, q, xp = validate_pair(target, draft)
        order = xp.argsort(-(q + 0 * p), axis=-1, stable=True)
        law = xp.take_along_axis(p + 0 * q, order, axis=-1)[..., : min(max_rank, p.shape[-1])]
        past = xp.zeros((*law.shape[:-1], max_rank - law.shape[-1]), dtype=law.dtype, device=law.device)
        return xp.concat([law, past], axis=-1)

    def rank_pmf_given(self, target: Any, draft: Any, token: Any, max_rank: int) -> Array:
        """P(R = r | output `token`), r = 1..max_rank: 1 at its place, ``[..., max_rank]`` (R7, exact)."""
        max_rank = at_least_one("max_rank", max_rank)
        p, q, xp = validate_pair(target, draft)
        place = xp.argsort(xp.argsort(-(q + 0 * p), axis=-1, stable=True), axis=-1)
        ranks = xp.arange(max_rank, device=p.device)
        return xp.astype(at_token(place, token, xp)[..., None] == ranks, p.dtype)

    def rank_law(self, columns: Columns, max_rank: int) -> NDArray[np.float64]:
        """1 at the recorded place of the text's token, ``[N, max_rank]`` (R7, exact)."""
        max_rank = at_least_one("max_rank", max_rank)
        return (columns["draft_rank"][:, None] == np.arange(1, max_rank + 1)).astype(np.float64)

    def mean_rank_entropy(self, target: Floats, draft: Floats) -> tuple[Interval | None, str]:
        """Mean H(p), nats: R names the output."""
        return exact_mean(entropy(target)), ""


def _first_choice(pmf: Array, xp: Any) -> Array:
    """Mask ``[..., V]`` of the most probable token, the lowest index first."""
    return xp.arange(pmf.shape[-1], device=pmf.device) == xp.argmax(pmf, axis=-1, keepdims=True)
