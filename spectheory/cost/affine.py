"""C3: the time of a pass as an affine function, fitted to timings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from spectheory.checks import BEYOND, MOST_EXACT, amount, instance, whole
from spectheory.cost.model import PassCost
from spectheory.distributions import as_numpy
from spectheory.errors import SettingError
from spectheory.intervals import Interval


@dataclass(frozen=True)
class AffineTime:
    r"""Seconds of a pass on m tokens of each of B sequences after L tokens, :math:`a + b\,Bm + c\,BL` (C3, estimate).

    `fixed` is a (seconds of any pass), `per_token` b, `per_cached` c; `error` is the root mean square residual of a
    fit, seconds.

    Examples
    --------
    >>> round(AffineTime(0.01, 1e-4, 1e-6).seconds(5, batch=2, context=1000), 6)
    0.013
    """

    fixed: float
    per_token: float
    per_cached: float = 0.0
    error: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            object.__setattr__(self, name, amount(name, value, below=BEYOND, remedy="fit to timings in seconds"))
        if self.fixed + self.per_token <= 0:
            raise SettingError(f"{self}", limit="needs seconds >= 0, some > 0", remedy="fit to timings in seconds")

    @classmethod
    def fit(cls, tokens: ArrayLike, batch: ArrayLike, context: ArrayLike, seconds: ArrayLike) -> AffineTime:
        """Fit to timings by least squares in seconds, no coefficient below 0 (``scipy.optimize.nnls``).

        All are arrays ``[n]``: tokens per sequence in the pass, sequences, cached tokens per sequence, and seconds.
        Tokens and batch times context must vary independently, otherwise the three terms cannot be separated.

        Examples
        --------
        >>> fit = AffineTime.fit([1, 5, 1, 5], [1, 1, 4, 4], [100, 100, 100, 100], [1.2, 1.6, 1.8, 3.4])
        >>> round(fit.fixed, 6), round(fit.per_token, 6), round(fit.per_cached, 6), fit.error < 1e-9
        (1.0, 0.1, 0.001, True)
        """
        from scipy.optimize import nnls

        table = _columns(tokens, batch, context, seconds)
        m, b, length, t = table.T
        design = np.stack([np.ones_like(t), b * m, b * length], axis=1)
        scale = np.maximum(np.abs(design).max(axis=0), np.finfo(float).tiny)
        if np.linalg.matrix_rank(design / scale) < 3:
            raise SettingError(
                f"{len(t)} timings do not determine the three terms",
                limit="needs tokens and batch x context that vary independently",
                remedy="time passes of several lengths at several contexts or batches",
            )
        longest = t.max()
        solution, left_over = nnls(design / scale, t / longest)
        a, per_token, per_cached = (float(v) for v in solution / scale * longest)
        return cls(a, per_token, per_cached, float(left_over * longest / math.sqrt(len(t))))

    def seconds(self, tokens: float, batch: float = 1, context: float = 0) -> float:
        """Seconds of a pass on `tokens` tokens of each of `batch` sequences after `context` tokens."""
        tokens, batch, context = (
            amount(name, value, below=BEYOND, remedy="count tokens and sequences")
            for name, value in (("tokens", tokens), ("batch", batch), ("context", context))
        )
        return self.fixed + batch * (self.per_token * tokens + self.per_cached * context)


@dataclass(frozen=True)
class AffineCost(PassCost):
    """C3: the cost of a pair whose passes take affine times; without a draft, drafts are free.

    Examples
    --------
    >>> from spectheory.drafting import Chain
    >>> cost = AffineCost(AffineTime(0.009, 0.001), AffineTime(0.0009, 0.0001))
    >>> round(cost.call(Chain(2)).best, 6)
    0.014
    """

    target: AffineTime
    draft: AffineTime | None
    context: int = 0
    batch: int = 1

    def __post_init__(self) -> None:
        instance("target", self.target, AffineTime, remedy="AffineTime.fit makes one")
        if self.draft is not None:
            instance("draft", self.draft, AffineTime, remedy="None is free drafts")
        amount("context", self.context, below=BEYOND, remedy="count cached tokens")
        whole("batch", self.batch, most=MOST_EXACT, remedy="count sequences")

    def target_pass(self, tokens: int) -> Interval:
        """Seconds of the target on that many tokens of every sequence."""
        return Interval.exact(self.target.seconds(tokens, self.batch, self.context))

    def draft_pass(self, tokens: int) -> Interval:
        """Seconds of the draft on that many tokens of every sequence; 0 without a draft."""
        return Interval.exact(self.draft.seconds(tokens, self.batch, self.context) if self.draft else 0.0)


def _columns(*columns: ArrayLike) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The timings ``[n, 4]``, validated."""
    names = ("tokens", "batch", "context", "seconds")
    arrays = [as_numpy(column, name, SettingError) for name, column in zip(names, columns, strict=True)]
    if any(array.ndim != 1 or array.shape != arrays[0].shape for array in arrays) or not len(arrays[0]):
        raise SettingError(
            f"the columns have shapes {', '.join(str(array.shape) for array in arrays)}",
            limit="needs four lists of one length",
            remedy="give tokens, batch, context and seconds of every timing",
        )
    table = np.stack(arrays, axis=1)
    # The conditions are positive so that NaN fails them.
    good = np.isfinite(table) & (table >= np.array([1, 1, 0, 0])) & ((table > 0) | (np.arange(4) != 3))
    if not good.all():
        row = int(np.argmin(good.all(axis=1)))
        raise SettingError(
            f"timing {row} is {table[row].tolist()}",
            limit="needs tokens and batch >= 1, context >= 0, seconds > 0",
            remedy="drop it",
        )
    return table
