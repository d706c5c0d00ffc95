"""TopLogProbs: what a server tells of one pmf, and the ranges of what it leaves out (§9)."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import instance, instances, real, several, whole
from spectheory.distributions import as_integers, as_numpy, validate_pmf
from spectheory.errors import PmfError, SettingError, ShapeError
from spectheory.intervals import Interval, weakest

# The door of truncated knowledge: lists of log-probabilities checked, masses made to fit (§9)


Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

MASS_TOLERANCE = 1e-5
"""How far masses may miss what is possible: servers compute in single precision, where logits of size 30 carry 2e-6."""

LOWEST = math.log(sys.float_info.min)
"""Log of the smallest float with all its digits, -708 nats; below it a probability and zero would be confused."""

EPS = float(np.finfo(np.float64).eps)


def _column(tokens: Any, log_probs: Any, vocabulary: int, error: float, name: str) -> tuple[Ids, Floats]:
    """Return both as one-dimensional arrays of one length, entries checked; `error` is that of a log-probability."""
    logs = np.atleast_1d(as_numpy(log_probs, "the log-probabilities")).copy()
    ids = np.atleast_1d(as_integers(tokens, name))
    if ids.ndim != 1 or ids.shape != logs.shape:
        raise ShapeError(
            f"{name} has shape {ids.shape} and their log-probabilities {logs.shape}",
            limit="needs one log-probability per token",
            remedy="pass two lists of one length",
        )
    outside = ids[(ids < 0) | (ids >= vocabulary)] if len(ids) else ids
    if len(outside):
        raise SettingError(
            f"{name} has token {outside[0]}", limit=f"must be 0 to {vocabulary - 1}", remedy="check the tokenizer"
        )
    bad = ~((logs <= MASS_TOLERANCE + error) & ((logs >= LOWEST) | (logs == -math.inf)))
    if bad.any():
        raise PmfError(
            f"token {ids[bad][0]} has log-probability {logs[bad][0]:g}",
            limit=f"must be -inf or {LOWEST:.0f} to 0",
            remedy="leave out a token whose value is a stand-in such as -9999",
        )
    return ids, np.minimum(logs, 0.0)


def _check_distinct(ids: Ids) -> None:
    """Refuse a token that comes twice."""
    values, counts = np.unique(ids, return_counts=True)
    if len(values) < len(ids):
        raise PmfError(
            f"token {values[counts > 1][0]} comes {counts.max()} times",
            limit="each token comes once",
            remedy="leave an extra token out if it is among the top ones",
        )


def _fit(p: Floats, cap: float, vocabulary: int, error: float) -> tuple[Floats, float, float, float]:
    r"""Probabilities, cap, unseen mass and miss, after the scaling that makes the masses possible.

    A log-probability rounded by `error` scales its probability by a factor within :math:`e^{\pm\text{error}}`: the
    known mass of a pmf is then at most :math:`e^\text{error}`, and :math:`1 - e^{-\text{error}}` too little at most.
    """
    hidden = vocabulary - len(p)
    unseen = math.fsum([1.0, *(-p)])  # rounded once, so relatively exact however small
    room = hidden * cap
    above = MASS_TOLERANCE + math.expm1(error)
    if unseen < -above:
        raise PmfError(
            f"the known tokens have mass {1 - unseen:.10g}",
            limit=f"at most 1 within {above:g}",
            remedy="give natural logarithms of one pmf, and by how much they are rounded as error",
        )
    if unseen > room * math.exp(error) + MASS_TOLERANCE - math.expm1(-error):
        raise PmfError(
            f"the {hidden} unseen tokens have mass {unseen:.6g}",
            limit=f"at most {room:.6g}, as none exceeds the smallest of the top ones, {cap:.6g}",
            remedy="check the vocabulary size, and that the list holds the most probable tokens",
        )
    if 0 <= unseen <= room:
        return p, cap, unseen, 0.0
    left = room if unseen > 0 else 0.0
    total = 1 - unseen + left
    return p / total, cap / total, left / total, abs(1 - total)


# Lists of log-probabilities


ROUNDING_ULPS = 16
"""Rounding slack in units of 2.2e-16 per term summed: a term passes through fewer operations than this."""


@dataclass(frozen=True, eq=False)
class TopLogProbs:
    r"""The m largest log-probabilities of one pmf, and perhaps those of a few tokens more (§9).

    `tokens` ``[m]`` are the most probable ones in any order, `log_probs` ``[m]`` theirs in nats with the sampling
    settings in use. Every token that is not known has at most the m-th largest probability, the `cap`; together they
    have the `unseen` mass :math:`1 - \sum_{known} p`. A separately returned token (an extra one, such as the sampled
    one) joins the `known` ones but does not lower the cap. The unseen mass is known up to rounding only: a sum of one
    does not say that all other tokens are impossible, -inf in the list does.

    `error` is by how much the server may have rounded a log-probability, in nats, at most 1e-2; it widens every
    interval (1e-6 is right for a softmax in single precision). Masses that miss what is possible by at most
    :data:`MASS_TOLERANCE`, and what `error` explains, are scaled to fit, and `miss` tells by how much. `slack` is how
    far the completions may be from those of the unrounded data, in total variation. Lists that no pmf agrees with are a
    ``PmfError``.

    Examples
    --------
    >>> import numpy as np
    >>> top = TopLogProbs([7, 2], np.log([0.5, 0.25]), vocabulary=10)
    >>> top.cap, top.unseen, top.range(2), top.range(0)
    (0.25, 0.25, (0.25, 0.25), (0.0, 0.25))
    """

    tokens: Any
    log_probs: Any
    vocabulary: int
    extra_tokens: Any = ()
    extra_log_probs: Any = ()
    error: float = 0.0
    known: Ids = field(init=False, repr=False)
    probabilities: Floats = field(init=False, repr=False)
    cap: float = field(init=False, repr=False)
    unseen: float = field(init=False, repr=False)
    miss: float = field(init=False, repr=False)
    slack: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        error = real(
            "error", self.error, lambda e: 0 <= e <= 1e-2, limit="must be 0 to 0.01 nats", remedy="1e-6 suits floats"
        )
        vocabulary = whole("vocabulary", self.vocabulary, most=2**53, remedy="give the number of tokens")
        tokens, log_probs = _column(self.tokens, self.log_probs, vocabulary, error, "tokens")
        extra, extra_logs = _column(self.extra_tokens, self.extra_log_probs, vocabulary, error, "extra_tokens")
        if not len(tokens):
            raise ShapeError("there are no log-probabilities", limit="needs at least 1", remedy="ask the server for 1")
        ids, logs = np.concatenate([tokens, extra]), np.concatenate([log_probs, extra_logs])
        _check_distinct(ids)
        lowest = float(log_probs.min())
        if len(extra) and extra_logs.max() > lowest + MASS_TOLERANCE + 2 * error:
            raise PmfError(
                f"an extra token has log-probability {extra_logs.max():g}",
                limit=f"must not exceed the smallest of the top ones, {lowest:g}",
                remedy="list it among the top ones",
            )
        p, cap, unseen, miss = _fit(np.exp(logs), math.exp(lowest), vocabulary, error)
        order = np.argsort(ids)
        ranked = np.lexsort((tokens, -log_probs))
        slack = ROUNDING_ULPS * EPS * (len(ids) + 3) + 2 * (miss + error)
        self._set(tokens=tokens[ranked], log_probs=log_probs[ranked], extra_tokens=extra, extra_log_probs=extra_logs)
        self._set(known=ids[order], probabilities=p[order], cap=cap, unseen=unseen, miss=miss, slack=slack)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    @classmethod
    def from_pmf(cls, pmf: Any, m: int, extra: Any = ()) -> TopLogProbs:
        """What a server that returns m log-probabilities, and those of `extra` tokens, would tell of a pmf ``[V]``.

        Examples
        --------
        >>> TopLogProbs.from_pmf([0.25, 0.5, 0.125, 0.0625, 0.0625], 2, extra=[3]).known
        array([0, 1, 3])
        """
        p = as_numpy(validate_pmf(pmf))
        if p.ndim != 1:
            raise ShapeError(f"pmf has shape {p.shape}", limit="[V]", remedy="call it for each pmf")
        m = whole("m", m, most=len(p), remedy="ask for one token")
        with np.errstate(divide="ignore"):
            logs = np.log(p)
        top = np.argsort(-p, kind="stable")[:m]
        tokens = [
            whole("an extra token", token, least=0, most=len(p) - 1, remedy="check the tokenizer")
            for token in several("extra", extra, remedy="[3] is one")
        ]
        more = np.array([token for token in tokens if token not in top], dtype=np.int64)
        return cls(top, logs[top], len(p), more, logs[more])

    @property
    def hidden(self) -> int:
        """Number of tokens that are not known."""
        return self.vocabulary - len(self.known)

    def range(self, token: int) -> tuple[float, float]:
        """Smallest and largest probability that a token can have (certified; equal where it is known).

        Examples
        --------
        >>> import math
        >>> TopLogProbs([0], [math.log(0.25)], 5).range(3)
        (0.0, 0.25)
        """
        token = whole("token", token, least=0, most=self.vocabulary - 1, remedy="check the tokenizer")
        at = int(np.searchsorted(self.known, token))
        if at < len(self.known) and self.known[at] == token:
            return float(self.probabilities[at]), float(self.probabilities[at])
        return self.least_unseen, min(self.cap, self.unseen_range[1])

    @property
    def complete(self) -> bool:
        """Whether no unseen token is possible."""
        return self.hidden == 0 or self.cap == 0

    @property
    def unseen_range(self) -> tuple[float, float]:
        """The unseen mass with its rounding."""
        if self.complete:
            return 0.0, 0.0
        room = max(self.unseen, self.hidden * self.cap)
        return max(0.0, self.unseen - self.slack), min(self.unseen + self.slack, room)

    @property
    def least_unseen(self) -> float:
        """Smallest probability an unseen token can have: the others together hold no more than their caps."""
        least = self.unseen_range[0] - (self.hidden - 1) * self.cap
        return least if least > sys.float_info.min else 0.0


def a_top(name: str, top: TopLogProbs) -> TopLogProbs:
    """Check that an argument is what a server tells of one pmf."""
    return instance(
        name, top, TopLogProbs, remedy="spectheory.truncated.TopLogProbs(tokens, log_probs, vocabulary) makes one"
    )


# Ends rounded outward: a certified interval stays certain in floating point


def rounding_slack(*tops: TopLogProbs) -> float:
    """How far two pmfs may be from the unrounded ones, as a sum of total variation distances."""
    return sum(a_top("an argument", top).slack for top in tops)


def settled(value: float, scale: float, *tops: TopLogProbs, relative: bool = False) -> Interval:
    """A value that rests on known tokens alone: exact, unless the server's rounding has been stated."""
    if not any(top.error for top in tops):
        return Interval.exact(value)
    return outward(value, value, scale * rounding_slack(*tops), relative=relative)


def outward(
    low: float, high: float, slack: float, *, relative: bool = False, floor: float = 0.0, ceiling: float = math.inf
) -> Interval:
    """The interval [low, high] widened by `slack` (times 1 + the end, if relative), cut to the possible range."""
    low -= 0.0 if math.isinf(low) else slack * (1 + relative * abs(low))
    high += 0.0 if math.isinf(high) else slack * (1 + relative * abs(high))
    low, high = min(max(low, floor), ceiling), max(min(high, ceiling), floor)
    return Interval(low, low if math.isinf(high) else (low + high) / 2, high, "bound")


def mean_interval(intervals: Iterable[Interval]) -> Interval:
    """Mean over positions: the mean of the low ends to the mean of the high ends, the kind the weakest of all.

    Means of entropy and second log-moment over the contexts of a text are the mu and mu2 of the branching bounds
    (B2'), which fall in mu and rise in mu2: put mu's low end and mu2's high end there.

    Examples
    --------
    >>> mean_interval([Interval(0.0, 0.5, 1.0, "bound"), Interval.exact(0.5)])
    Interval(low=0.25, best=0.5, high=0.75, kind='bound')
    """
    every = instances("intervals", intervals, Interval, remedy="pass one per position")
    if not every:
        raise ShapeError("there are no intervals", limit="needs at least 1", remedy="pass one per position")
    low, best, high = (math.fsum(getattr(i, end) for i in every) / len(every) for end in ("low", "best", "high"))
    return Interval(low, best, high, weakest(*(i.kind for i in every)))
