"""A2: the exponential race of kobus2025 (the Gumbel-max coupling)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Array, validate_pair
from spectheory.divergences import hockey_stick_at_ratios
from spectheory.verification.base import Columns, PositionRule, single_candidate


@dataclass(frozen=True)
class RaceVerification(PositionRule):
    r"""Draft and output are the winners of one race: :math:`\arg\min E_y/q_y` and :math:`\arg\min E_y/p_y` (A2).

    The output does not depend on the draft (drafter invariance). Acceptance is

    .. math:: \alpha = \sum_x \Big(\sum_y \max(p_y/p_x, q_y/q_x)\Big)^{-1} = \sum_x \frac{p_x}{1 + g(p_x/q_x)},

    exact, by one sort: O(V log V).

    Examples
    --------
    >>> round(float(RaceVerification().acceptance([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])), 6)
    0.630769
    """

    name: ClassVar[str] = "race"
    needs: ClassVar[tuple[str, ...]] = ("race_g",)

    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Array:
        """Acceptance rate of the race, ``[..., V]`` to ``[...]`` (A2, exact; ``kobus2025``).

        Raises
        ------
        SettingError
            If k is not 1.
        PmfError, ShapeError
            If the arrays are not pmfs, or do not fit.
        """
        single_candidate(self, k)
        p, q, xp = validate_pair(target, draft)
        return xp.sum(p / (1 + hockey_stick_at_ratios(p, q, xp)), axis=-1)

    def acceptance_given(self, target: Any, draft: Any) -> Array:
        """Acceptance given the output, a(x) = 1/(1 + g(p_x/q_x)), ``[..., V]`` (A2, exact).

        1 by convention where the target has no mass and the draft has: an output that does not occur.
        """
        p, q, xp = validate_pair(target, draft)
        given = 1 / (1 + hockey_stick_at_ratios(p, q, xp))
        return xp.where(q > 0, given, xp.zeros_like(given))

    def accepted_at(self, columns: Columns) -> NDArray[np.float64]:
        """1/(1 + g) at each position; the same law whether the noise is fresh per call or kept across calls."""
        return np.where(columns["race_g"] == math.inf, 0.0, 1 / (1 + columns["race_g"]))
