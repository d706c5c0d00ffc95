"""Block verification (sun2024block): the drafts of a call are judged together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Array
from spectheory.verification.base import Columns, PathRule, at_least_one, checked_columns
from spectheory.verification.by_start import along_calls, log_ratio
from spectheory.verification.token import TokenVerification


@dataclass(frozen=True)
class BlockVerification(PathRule):
    r"""Accept the longest prefix the joint likelihood ratio allows (``sun2024block``).

    At a single position it is token verification. Along a text it accepts at least as much at every depth, and
    given the text no lossless rule accepts more if the text after the call is a fresh sample of the target (§7). Over
    a whole decoding no such rule on chains drawn from the same draft model needs fewer expected calls (B7, optimal):
    a call with the masses :math:`s_i(x)` loses :math:`\sum_i\sum_x(\mu_i - s_i)(x)D(wx) \ge 0`.

    Examples
    --------
    >>> import numpy as np
    >>> columns = {"log_target": np.log([0.5, 0.5]), "log_draft": np.log([0.25, 1.0])}
    >>> BlockVerification().path_survival(columns, 2)[0]
    array([0.5, 0.5])
    >>> TokenVerification().path_survival(columns, 2)[0]
    array([0.5, 0.5])
    """

    name: ClassVar[str] = "block"
    served: ClassVar[bool] = True
    statement: ClassVar[str] = "A1"
    colour: ClassVar[str] = "orange"
    needs: ClassVar[tuple[str, ...]] = ("log_target", "log_draft")

    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Array:
        """Acceptance at a single position: that of token verification, 1 - TV (A1, exact)."""
        return TokenVerification().acceptance(target, draft, k)

    def acceptance_given(self, target: Any, draft: Any) -> Array:
        """Acceptance at a single position given the output: that of token verification (A1, exact)."""
        return TokenVerification().acceptance_given(target, draft)

    def path_survival(self, columns: Columns, k: int) -> NDArray[np.float64]:
        r"""Survival ``[N, k]``: :math:`\min(1, \min_{j\le i}\prod_{l\le j}\rho_{n+l})` (§7, exact).

        The running minimum of the cumulative likelihood ratio; the look-alike :math:`\min(1, \prod\rho)` is no
        survival function. Of drafts by start the ratio is :math:`\rho_{n,l}` (§10, exact).
        """
        checked_columns(columns, *self.needs)
        k = at_least_one("k", k)
        with np.errstate(invalid="ignore"):
            cumulative = np.cumsum(along_calls(columns, k, log_ratio, fill=0.0), axis=1)
        return np.exp(np.minimum(0.0, np.minimum.accumulate(cumulative, axis=1)))
