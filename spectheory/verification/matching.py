"""A4: rules that engines really use and that are often mistaken for token verification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Array, validate_pair
from spectheory.verification.base import Columns, PositionRule, single_candidate


@dataclass(frozen=True)
class IndependentMatch(PositionRule):
    r"""Draft and output are sampled independently and accepted if equal: acceptance :math:`\sum_x p_x q_x` (A4).

    Examples
    --------
    >>> round(float(IndependentMatch().acceptance([1/3, 2/3], [2/3, 1/3])), 6)
    0.444444
    """

    name: ClassVar[str] = "independent"
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


def _first_choice(pmf: Array, xp: Any) -> Array:
    """Mask ``[..., V]`` of the most probable token, the lowest index first."""
    return xp.arange(pmf.shape[-1], device=pmf.device) == xp.argmax(pmf, axis=-1, keepdims=True)
