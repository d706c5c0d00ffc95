"""A1: token verification, the rule of leviathan2023 and chen2023."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Array, validate_pair
from spectheory.verification.base import Columns, PositionRule, single_candidate


@dataclass(frozen=True)
class TokenVerification(PositionRule):
    r"""Accept the drafted token x with probability :math:`\min(1, p_x/q_x)`, else recover from (p - q)+ (A1).

    Acceptance is :math:`\sum_x \min(p_x, q_x) = 1 - TV`, exact, the most any rule with one candidate drawn
    from the draft's pmf can reach.

    Examples
    --------
    >>> round(float(TokenVerification().acceptance([1/3, 2/3], [2/3, 1/3])), 6)
    0.666667
    """

    name: ClassVar[str] = "token"
    served: ClassVar[bool] = True
    statement: ClassVar[str] = "A1"
    colour: ClassVar[str] = "blue"
    needs: ClassVar[tuple[str, ...]] = ("log_target", "log_draft")

    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Array:
        r"""Acceptance rate :math:`\sum_x \min(p_x, q_x)`, ``[..., V]`` to ``[...]`` (A1, exact; ``leviathan2023``)."""
        single_candidate(self, k)
        p, q, xp = validate_pair(target, draft)
        return xp.sum(xp.minimum(p, q), axis=-1)

    def acceptance_given(self, target: Any, draft: Any) -> Array:
        r"""Acceptance given the output, :math:`a(x) = \min(1, q_x/p_x)`, ``[..., V]`` (A1, exact).

        Zero where :math:`q_x = 0`; 1 by convention where :math:`p_x = 0 < q_x`, an output that does not occur.
        """
        p, q, xp = validate_pair(target, draft)
        safe = xp.where(p > 0, p, xp.ones_like(p))
        with np.errstate(over="ignore"):  # beyond the floats is above 1, and cut
            return xp.where(p > q, q / safe, xp.astype(q > 0, q.dtype))

    def accepted_at(self, columns: Columns) -> NDArray[np.float64]:
        """min(1, rho) at each position, from the two log-probabilities alone."""
        return np.exp(np.minimum(0.0, columns["log_draft"] - columns["log_target"]))
