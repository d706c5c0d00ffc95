"""Y5-Y6 as a rule: token verification that accepts more than it may, and pays with bias; an ensemble's verification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import real
from spectheory.distributions import validate_pair
from spectheory.verification.base import Columns
from spectheory.verification.by_start import along_calls
from spectheory.verification.lossy import LossyRule, _Masses


@dataclass(frozen=True)
class BiasedVerification(LossyRule):
    r"""Accept a draft with probability :math:`b = (1-t)\min(1, p/q) + t`, recover as token verification does (Y5, Y6).

    The output law of a position is the mixture :math:`\tilde p = (1-t)p + tq`, so the rule is token verification for
    that target: it rejects with probability (1-t) TV and is t TV away from the target, a point of the Pareto front of
    Y6 (``yin2024``). Along a text every verified position pays; the bonus token is the target's. `share` is t, in
    [0, 1]: 0 is token verification, 1 outputs the draft. It is what transformers does with
    ``assistant_ensemble_weight`` w = 1 - t where it samples, and is written ``ensemble:w``.

    Examples
    --------
    >>> rule = BiasedVerification(0.5)
    >>> round(float(rule.acceptance([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])), 6)
    0.85
    >>> rule.name, rule.output_law([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]).round(3).tolist()
    ('ensemble:0.5', [0.35, 0.3, 0.35])
    """

    share: float

    name: ClassVar[str] = "ensemble"
    statement: ClassVar[str] = "Y6"
    beside: ClassVar[str] = "token"
    leaves: ClassVar[bool] = True
    at_zero: ClassVar[str] = "at temperature 0 transformers compares first choices of a mixture of both softmaxes"
    needs: ClassVar[tuple[str, ...]] = ("log_target", "log_draft", "total_variation")

    @classmethod
    def names(cls) -> list[str]:
        """The weight of the target."""
        return ["weight"]

    @classmethod
    def read(cls, settings: str) -> Self:
        """The rule of a weight w of the target, in [0, 1]: share 1 - w."""
        (written,) = cls.numbers(settings)
        weight = real("the weight", written, lambda w: 0 <= w <= 1, limit="must be in [0, 1]", remedy="1 is lossless")
        return cls(1 - weight)

    @property
    def settings(self) -> Mapping[str, float]:
        """The weight of the target."""
        return {"weight": 1 - self.share}

    def __post_init__(self) -> None:
        real("bias share", self.share, lambda t: 0 <= t <= 1, limit="must be in [0, 1]", remedy="0 is lossless")
        super().__post_init__()

    def masses(self, target: Any, draft: Any) -> _Masses:
        """min(q, (1-t)p + tq), (1-t)(p - q)+ and p, ``[..., V]`` (Y6, exact)."""
        p, q, xp = validate_pair(target, draft)
        p, q = p + 0 * q, q + 0 * p
        accepted = xp.minimum(q, (1 - self.share) * p + self.share * q)
        return _Masses(accepted, (1 - self.share) * xp.maximum(p - q, 0 * p), p)

    def masses_at(self, columns: Columns) -> _Masses:
        """The same of a text's tokens, ``[N]``."""
        p, q = (np.exp(np.asarray(columns[name], dtype=np.float64)) for name in ("log_target", "log_draft"))
        mixture = (1 - self.share) * p + self.share * q
        return _Masses(np.minimum(q, mixture), (1 - self.share) * np.maximum(p - q, 0.0), p)

    def changed(self, columns: Columns) -> NDArray[np.float64]:
        """T TV at each position, ``[N]`` (Y6, exact)."""
        return self.share * np.asarray(columns["total_variation"], dtype=np.float64)

    def nats(self, columns: Columns) -> NDArray[np.float64]:
        r"""An estimate ``[N]`` of KL(p' || p) along a text of the target, :math:`w\log w - w + 1`, w = p'/p, nats.

        Unbiased where supp q lies in supp p; elsewhere KL is infinite.
        """
        with np.errstate(over="ignore"):  # beyond the floats: infinite
            ratio = 1 + self.share * np.expm1(_log_ratio(columns))
        logs = np.log(ratio, out=np.zeros_like(ratio), where=ratio > 0)
        return np.asarray(np.maximum(ratio * logs - ratio + 1, 0.0))

    def accepted_at(self, columns: Columns) -> NDArray[np.float64]:
        r"""a(x) at each verified position of a text that *this rule* output, a sample of the mixture (exact).

        :math:`1/\max(1, (1-t)/\rho + t)`, :math:`\rho = q/p`: 0 where q = 0; 1 where p = 0 < q (by convention
        at share 0, which has no such output).
        """
        log_ratio = _log_ratio(columns)
        drafted = log_ratio > -np.inf
        with np.errstate(divide="ignore", over="ignore"):  # log 0 at share 1; beyond the floats, the inverse of 0
            inverse = np.exp(np.log1p(-self.share) - np.where(drafted, log_ratio, 0.0)) + self.share
        return np.where(drafted, 1 / np.maximum(1.0, inverse), 0.0)

    def weighted_survival(self, columns: Columns, k: int) -> NDArray[np.float64]:
        r"""Survival ``[N, k]`` of a call that starts at each position of a text the *target* output: a lower estimate.

        .. math:: t^i + (1-t)\sum_{l\le i} t^{i-l} w_1 \cdots w_{l-1} \min(1, \rho_l),\quad
            w = \min((1-t) + t\rho, \rho),\quad \rho = q/p,

        with l the last draft accepted with min(1, p/q) and not by the share t. Its mean over continuations of the
        target is P(tau >= i) of the biased rule but for calls that accept a draft the target cannot output and later
        one with min(1, p/q). So it is unbiased where supp q lies in supp p, at i = 1, and at shares 0 and 1. At one
        text it may exceed 1.
        """
        before, kept = self._log_windows(columns, k)
        with np.errstate(over="ignore"):  # a weight beyond the floats is infinite
            survival = np.exp(before + kept)
        for i in range(1, k):
            survival[:, i] += self.share * survival[:, i - 1]
        return survival + self.share ** np.arange(1, k + 1)

    def weighted_survival_above(self, columns: Columns, k: int) -> NDArray[np.float64]:
        r"""Survival ``[N, k]`` as :meth:`weighted_survival`, from the other side: an upper estimate.

        .. math:: 1 - (1-t)\sum_{l\le i} w_1 \cdots w_{l-1} (1 - \rho_l)_+

        Unbiased where the lower one is. At one text it may be negative.
        """
        before, kept = self._log_windows(columns, k)
        with np.errstate(divide="ignore", over="ignore"):  # log 0 where no draft is rejected
            rejected = np.exp(before + np.log(-np.expm1(kept)))
        return 1 - np.cumsum(rejected, axis=1)

    def _log_windows(self, columns: Columns, k: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        r"""Logs ``[N, k]`` of :math:`(1-t) w_1 \cdots w_{l-1}` and of :math:`\min(1, \rho_l)`."""
        log_ratio = along_calls(columns, k, _log_ratio, fill=-np.inf)
        with np.errstate(divide="ignore"):  # log 0 at shares 0 and 1
            log_share, log_rest = np.log(self.share), np.log1p(-self.share)
        weight = np.minimum(np.logaddexp(log_rest, log_share + log_ratio), log_ratio)
        before = np.roll(weight, 1, axis=1)
        before[:, 0] = log_rest
        return np.cumsum(before, axis=1), np.minimum(log_ratio, 0.0)


def _log_ratio(columns: Columns) -> NDArray[np.float64]:
    """log(q/p) ``[N]``: -inf where q = 0, inf where p = 0 < q."""
    log_draft = np.asarray(columns["log_draft"], dtype=np.float64)
    nothing = np.full_like(log_draft, -np.inf)
    return np.subtract(log_draft, columns["log_target"], out=nothing, where=log_draft > -np.inf)
