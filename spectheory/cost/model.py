"""Cost models: the time of a target step and of a call, for every shape of drafts (C1, C2).

The time of a pass may be an affine function, fitted to timings (C3).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from spectheory.checks import BEYOND, MOST_EXACT, amount, instance, whole
from spectheory.cost.iid import checked_ratio
from spectheory.distributions import as_numpy
from spectheory.drafting import Shape
from spectheory.drafting.tree import a_shape
from spectheory.errors import SettingError
from spectheory.intervals import Interval, weakest

T = TypeVar("T")
_ENDS = ("low", "best", "high")
Ends = tuple["CostModel", "CostModel"]
"""A cost model at the two ends of one independent error: with one time, or all of them, at an end of a 95% interval."""


class CostModel(ABC):
    """Times of a target step and of a call, in one unit."""

    @abstractmethod
    def target_step(self) -> Interval:
        """Time of one plain decoding step."""

    @abstractmethod
    def call(self, shape: Shape, full_share: float = 0.0) -> Interval:
        """Time of one call: drafting `shape` and verifying it.

        `full_share` is the share of calls that follow a full acceptance: the draft's first pass then is on two tokens.
        With trees, it is the share that follow the acceptance of a node without children, which the draft has not read
        yet. Of a head it is the number of accepted tokens (:func:`reads_besides`).
        """

    @property
    def reads_accepted(self) -> bool:
        """Whether the first draft pass of a call reads all tokens since the last call, as a head does (§10).

        A draft model has read its own drafts: one token, or two after a full acceptance, is all it reads.
        """
        return False

    def errors(self) -> Iterator[Ends]:
        """The independent errors of the times: this model at either end of each error, one after the other."""
        return iter(())

    def when_disturbed(self) -> Sequence[CostModel]:
        """The model with the times of each part of its timing alone, where other processes disturbed it; else none."""
        return ()

    def speedup(self, tokens_per_call: Interval, shape: Shape, full_share: float = 0.0) -> Interval:
        r"""Tokens per second relative to plain decoding, without the prompt's own pass on both sides (C2).

        .. math:: \text{tokens per call} \cdot \frac{t_\text{target}(1)}{t_\text{draft}(\text{shape}) +
            t_\text{target}(\text{nodes} + 1)}

        Exact for these times and for the mean call. The range multiplies the ranges of tokens per call and of
        times: an outer range, given the share of full acceptances and of lengths. :func:`~spectheory.predict` combines
        the errors instead, which gives 95% intervals.
        """
        instance("tokens per call", tokens_per_call, Interval, remedy="spectheory.Interval.exact(2.5) is one")
        step, call = self.target_step(), self.call(shape, full_share)
        per_call = Interval(
            step.low / call.high, step.best / call.best, step.high / call.low, weakest(step.kind, call.kind)
        )
        return tokens_per_call * per_call


def reads_besides(cost: CostModel, accepted: T, full: T) -> T:
    """What the first draft pass of a call reads besides one token, as :meth:`CostModel.call` takes it.

    Of a call, of several together, or on average: a head reads all that were `accepted`, a draft model one more token
    where the acceptance was `full`.

    Examples
    --------
    >>> reads_besides(ConstantRatio(0.1), 2.5, 0.25)
    0.25
    """
    return accepted if cost.reads_accepted else full


class PassCost(CostModel):
    """A cost model with the time of one pass of each model on m tokens (C2).

    A call makes the draft passes of its shape, then one target pass on its drafts and one more token.
    """

    @abstractmethod
    def target_pass(self, tokens: int) -> Interval:
        """Time of a target pass on that many tokens."""

    @abstractmethod
    def draft_pass(self, tokens: int) -> Interval:
        """Time of a draft pass on that many tokens; 0 where drafts are free."""

    def target_step(self) -> Interval:
        """Time of the target on one token."""
        return self.target_pass(1)

    def verification(self, shape: Shape) -> Interval:
        """Mean time of the target's pass of a call: on nodes + 1 tokens unless drafts vary in length."""
        parts = [(share, self.target_pass(tokens)) for tokens, share in shape.verified.items()]
        low, best, high = sorted(sum(share * getattr(one, end) for share, one in parts) for end in _ENDS)
        return Interval(low, best, high, weakest(*(one.kind for _, one in parts)))

    def call(self, shape: Shape, full_share: float = 0.0) -> Interval:
        """Time of the draft passes and of the target's pass."""
        verify = self.verification(a_shape(shape))
        drafts = self.draft_passes(shape.passes, check_share(full_share))
        low, best, high = (getattr(verify, end) + getattr(drafts, end) for end in _ENDS)
        return Interval(low, best, high, weakest(verify.kind, drafts.kind))

    def draft_passes(self, passes: Sequence[int], more: float = 0.0) -> Interval:
        """Time of draft passes on so many tokens, the first on `more` besides, on average (:func:`reads_besides`)."""
        if not passes:
            return Interval.exact(0.0)
        drafts = [(count, self.draft_pass(tokens)) for tokens, count in Counter(passes).items()]
        first, fewer = [], int(more)
        for extra, share in ((fewer, fewer + 1 - more), (fewer + 1, more - fewer)):
            if extra == 1 or (extra and share):
                first.append((share, *self.first_passes(passes[0], extra)))
        ends = []
        for end in _ENDS:
            # A longer pass that was measured as faster counts as equally fast.
            extra = sum(share * max(getattr(longer, end) - getattr(usual, end), 0.0) for share, usual, longer in first)
            ends.append(sum(count * getattr(draft, end) for count, draft in drafts) + extra)
        low, best, high = sorted(ends)  # in order except for rounding
        times = [*(draft for _, draft in drafts), *(longer for *_, longer in first)]
        return Interval(low, best, high, weakest(*(one.kind for one in times)))

    def first_passes(self, tokens: int, extra: int) -> tuple[Interval, Interval]:
        """Times of a call's first draft pass, on that many tokens and on `extra` besides."""
        return self.draft_pass(tokens), self.draft_pass(tokens + extra)


def a_cost(cost: CostModel) -> CostModel:
    """Check that an argument is a cost model."""
    return instance("cost", cost, CostModel, remedy="spectheory.cost.ConstantRatio(0.1) is one")


def check_share(full_share: float) -> float:
    """A share of calls, or with a head the number of tokens that it reads besides one."""
    return amount("full_share", full_share, below=MOST_EXACT, remedy="0 if unknown")


@dataclass(frozen=True)
class ConstantRatio(CostModel):
    """C1: a draft pass costs c target steps, and verifying costs one, for every number of tokens.

    Examples
    --------
    >>> from spectheory.drafting import Batch, Chain
    >>> ConstantRatio(0.1).speedup(Interval.exact(2.8), Chain(4))
    Interval(low=2.0, best=2.0, high=2.0, kind='exact')
    >>> ConstantRatio(0.1).call(Batch(4)).best
    1.1
    """

    c: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "c", checked_ratio(self.c))

    def target_step(self) -> Interval:
        """One: the unit of time."""
        return Interval.exact(1.0)

    def call(self, shape: Shape, full_share: float = 0.0) -> Interval:
        """1 + draft passes · c."""
        check_share(full_share)
        return Interval.exact(1 + len(a_shape(shape).passes) * self.c)


FREE_DRAFTS = ConstantRatio(0.0)
"""Drafts that cost nothing, such as prompt lookup. The speed-up is then the number of tokens per call."""


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
        instance("target", self.target, AffineTime, remedy="spectheory.cost.AffineTime.fit makes one")
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
