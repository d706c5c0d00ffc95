"""Y5-Y6 as a rule: token verification that accepts more than it may, and pays with bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Array, validate_pair
from spectheory.errors import SettingError
from spectheory.verification.base import Columns, PositionRule, single_candidate, windows


@dataclass(frozen=True)
class BiasedVerification(PositionRule):
    r"""Accept a draft with probability :math:`b = (1-t)\min(1, p/q) + t`, recover as token verification does (Y5, Y6).

    The output law of a position is the mixture :math:`\tilde p = (1-t)p + tq`, so the rule is token verification for
    that target: it rejects with probability (1-t) TV and is t TV away from the target, a point of the Pareto front of
    Y6 (``yin2024``). Along a text every position pays; prefixes then follow the mixture.

    Parameters
    ----------
    share : float
        The over-acceptance t, in [0, 1]: 0 is token verification, 1 outputs the draft.

    Raises
    ------
    SettingError
        If the share is out of range.

    Examples
    --------
    >>> rule = BiasedVerification(0.5)
    >>> round(float(rule.acceptance([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])), 6)
    0.85
    """

    share: float

    name: ClassVar[str] = "biased"
    needs: ClassVar[tuple[str, ...]] = ("log_target", "log_draft")

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise SettingError(f"bias share is {self.share:g}", limit="must be in [0, 1]", remedy="0 is lossless")

    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Array:
        """Probability 1 - (1-t) TV that the draft is accepted, ``[..., V]`` to ``[...]`` (Y6, exact)."""
        single_candidate(self, k)
        p, q, xp = validate_pair(target, draft)
        return self.share + (1 - self.share) * xp.sum(xp.minimum(p, q), axis=-1)

    def acceptance_given(self, target: Any, draft: Any) -> Array:
        """Acceptance given that the rule output x, a(x) = min(1, q/((1-t)p + tq)), ``[..., V]`` (exact)."""
        p, q, xp = validate_pair(target, draft)
        mixture = (1 - self.share) * p + self.share * q
        safe = xp.where(mixture > 0, mixture, xp.ones_like(mixture))
        with np.errstate(over="ignore"):  # a quotient beyond the floats is cut to 1
            accepted = xp.minimum(q / safe, xp.ones_like(mixture))
        return xp.where(mixture > 0, accepted, xp.zeros_like(mixture))

    def accepted_at(self, columns: Columns) -> NDArray[np.float64]:
        """a(x) at each position of a text that *this rule* output, a sample of the mixture."""
        ratio = np.exp(columns["log_draft"] - columns["log_target"])
        return np.minimum(1.0, ratio / ((1 - self.share) + self.share * ratio))

    def weighted_survival(self, columns: Columns, k: int) -> NDArray[np.float64]:
        r"""Survival ``[N, k]`` of a call that starts at each position of a text the *target* output.

        :math:`\prod_{l\le i} \min((1-t) + t\rho_{n+l}, \rho_{n+l})`: the likelihood ratio of mixture and target times
        a(x), so that its mean over continuations drawn from the target is P(tau >= i) of the biased rule, exactly. At
        one text it is no probability and may exceed 1.
        """
        ratio = np.exp(columns["log_draft"] - columns["log_target"])
        weighted = np.minimum((1 - self.share) + self.share * ratio, ratio)
        return np.multiply.accumulate(windows(weighted, k, fill=0.0), axis=1)
