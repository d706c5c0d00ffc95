"""C3 from a server's own timings: seconds of a step at batch B, context L and k drafts, fitted, with stated errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import nnls
from scipy.special import stdtrit

from spectheory.cost.model import CostModel, Ends
from spectheory.distributions import Floats
from spectheory.drafting import Shape
from spectheory.errors import SettingError
from spectheory.intervals import CONFIDENCE, Interval

TERMS = (
    "a step",
    "a sequence",
    "a cached token",
    "a call with drafts",
    "a draft",
    "a draft of a sequence",
    "a cached token, per draft",
    "a call of a sequence",
    "an accepted token of a sequence",
)
"""What each coefficient is the seconds of."""
_LEAST_SHARE = 0.01
"""At the end of an error no time falls below this share of the shortest measured one: logarithms need times > 0."""
SAME = 0.02
"""Contexts closer than this are one: a context is a mean over requests."""


@dataclass(frozen=True)
class StepTime:
    """Mean `seconds` of a step for all of `batch` sequences together, each with `context` cached tokens.

    A step of k = 0 is plain decoding; with k > 0 it is a whole call, drafting and verification, which outputs
    `accepted` tokens more than a plain step, the mean over calls; 0 where they are not known.
    """

    batch: int
    context: float
    k: int
    seconds: float
    accepted: float = 0.0

    def __post_init__(self) -> None:
        # The conditions are positive so that NaN fails them.
        if not (self.batch >= 1 and self.context >= 0 and 0 <= self.accepted <= self.k and 0 < self.seconds < math.inf):
            raise SettingError(
                f"{self}",
                limit="needs batch >= 1, context >= 0, 0 <= accepted <= k, seconds > 0",
                remedy="drop this run",
            )


@dataclass(frozen=True)
class ServedFit:
    r"""Seconds of a step as a function of batch, context and k, fitted to a server's runs (C3, estimate).

    .. math:: t = a + bB + cBL + [k > 0]\,(s + gB) + k\,(d + eB + fBL) + h A_k B

    The first three terms are the plain step. A call outputs :math:`A_k` accepted tokens more, so that more prompts of
    other requests are read during a step: h; and g where plain requests of one length end together. Both are fitted
    where k varies and the runs determine them. What a draft adds is its drafting and its
    verification together: the time of calls does not tell them apart. No coefficient is below 0. Residuals are
    relative, t'/t - 1.

    `coefficients` follow :data:`TERMS`; those of terms that the runs do not vary are 0. `directions` are independent
    errors of the coefficients, one standard deviation each. `error` is the standard deviation of the residuals,
    `freedom` the runs less the terms, `left_out` for each run the relative error of the fit to all other runs; NaN
    where these do not determine the terms.
    """

    runs: tuple[StepTime, ...]
    coefficients: tuple[float, ...]
    directions: tuple[tuple[float, ...], ...] = field(repr=False)
    error: float
    freedom: int
    left_out: tuple[float, ...] = field(repr=False)

    @property
    def ks(self) -> tuple[int, ...]:
        """Lengths of chains that the fit knows: up to the longest that was run; one alone if one alone was run."""
        ran = sorted({run.k for run in self.runs if run.k})
        return tuple(range(1, ran[-1] + 1)) if len(ran) > 1 else tuple(ran)

    @property
    def contexts(self) -> tuple[float, float]:
        """Shortest and longest context of the runs."""
        of_runs = [run.context for run in self.runs]
        return min(of_runs), max(of_runs)

    @property
    def batches(self) -> tuple[int, int]:
        """Smallest and largest batch that ran both with and without drafts."""
        sides = [[run.batch for run in self.runs if bool(run.k) is drafts] for drafts in (False, True)]
        return max(map(min, sides)), min(map(max, sides))

    def seconds(self, batch: float, context: float, k: int = 0) -> Interval:
        """Seconds of a step, with the 95% interval that follows from the residuals (statistical)."""
        row = _row_of(batch, context, k, _accepted_at(self.runs, k))
        best = self._bounded(row @ np.array(self.coefficients))
        half = self.reach * math.sqrt(sum(float(row @ np.array(each)) ** 2 for each in self.directions))
        return Interval(min(self._bounded(best - half), best), best, best + half, "statistical")

    def undrafted(self, batch: float, context: float) -> float:
        """Seconds of a step for which drafts are made and none is verified: a call less its drafts."""
        row = _row_of(batch, context, 0)
        row[3], row[7] = 1.0, batch
        return self._bounded(row @ np.array(self.coefficients))

    @property
    def reach(self) -> float:
        """Half a 95% interval in standard deviations (Student's t)."""
        return float(stdtrit(self.freedom, (1 + CONFIDENCE) / 2))

    def moved(self, direction: Sequence[float], deviations: float) -> ServedFit:
        """The fit with its coefficients so many standard deviations away in one direction."""
        moved = np.array(self.coefficients) + deviations * np.array(direction)
        return replace(self, coefficients=tuple(moved.tolist()))

    def _bounded(self, seconds: float) -> float:
        return max(float(seconds), _LEAST_SHARE * min(run.seconds for run in self.runs))


@dataclass(frozen=True)
class ServedCost(CostModel):
    """The cost of chains on a server that was timed, at one batch and context (C3, C4; estimate).

    Examples
    --------
    A step of 10 ms and 1 ms for each sequence; each draft adds 2 ms and 1 ms for each sequence.

    >>> from spectheory.drafting import Chain
    >>> from spectheory.cost.served import fit_server
    >>> runs = [
    ...     StepTime(b, 100, k, 0.01 + 0.001 * b + k * (0.002 + 0.001 * b)) for b in (1, 4, 16) for k in (0, 1, 4)
    ... ]
    >>> cost = ServedCost(fit_server(runs), batch=8, context=100)
    >>> round(cost.target_step().best, 6), round(cost.call(Chain(2)).best, 6)
    (0.018, 0.038)
    """

    fit: ServedFit
    batch: int
    context: float

    def __post_init__(self) -> None:
        for name, value, (least, most) in (
            ("batch", self.batch, self.fit.batches),
            ("context", self.context, self.fit.contexts),
        ):
            if not least * (1 - SAME) <= value <= most * (1 + SAME):
                raise SettingError(
                    f"{name} is {value:g}", limit=f"runs cover {least:g} to {most:g}", remedy="add runs there"
                )

    def target_step(self) -> Interval:
        """Seconds of a plain step."""
        return self.fit.seconds(self.batch, self.context)

    def call(self, shape: Shape, full_share: float = 0.0) -> Interval:
        """Seconds of a call of a chain; what the draft's first pass takes after full acceptances is in the mean."""
        if not shape.is_chain or not shape.passes or shape.nodes not in self.fit.ks:
            known = f"1..{self.fit.ks[-1]}" if len(self.fit.ks) > 1 else f"k = {self.fit.ks[0]} alone"
            raise SettingError(
                f"the server was not timed with {shape}", limit=f"known are drafted chains, {known}", remedy="add runs"
            )
        return self.fit.seconds(self.batch, self.context, shape.nodes)

    def errors(self) -> Iterator[Ends]:
        """The independent errors of the fit, each at both ends of its 95% interval."""
        for each in self.fit.directions:
            low, high = (replace(self, fit=self.fit.moved(each, side * self.fit.reach)) for side in (-1, 1))
            yield low, high


def _accepted_at(runs: Sequence[StepTime], k: int) -> float:
    """Accepted tokens of a call of k drafts: the mean of the runs, on a line between those of other k."""
    ks = sorted({run.k for run in runs})
    return float(np.interp(k, ks, [np.mean([run.accepted for run in runs if run.k == each]) for each in ks]))


def _row_of(batch: float, context: float, k: int, accepted: float = 0.0) -> Floats:
    """What each term is multiplied by."""
    cached = batch * context
    return np.array(
        [1.0, batch, cached, float(k > 0), k, k * batch, k * cached, float(k > 0) * batch, accepted * batch]
    )


_OF_CONTEXT = (2, 6)
_OF_CALLS = (3, 7, 8)
_PREFILL = (8, 7)
_MOST_ERROR = 0.25
"""Residuals above it leave speed-ups unknown by a factor of more than 1.5 either way."""


def fit_server(runs: Sequence[StepTime]) -> ServedFit:
    """Fit the time of a step by least squares of relative residuals, no coefficient below 0 (``scipy.optimize.nnls``).

    Terms of the context are fitted where it varies, and those of a call where k does. The runs must say more than
    there are terms: a ``SettingError`` names the runs that are missing.

    Examples
    --------
    >>> from spectheory.cost.served import StepTime
    >>> runs = [StepTime(b, 100, k, 0.01 + 0.001 * b + 0.002 * k) for b in (1, 4, 16) for k in (0, 1, 4)]
    >>> fit = fit_server(runs)
    >>> round(fit.coefficients[0], 6), round(fit.coefficients[4], 6), fit.error < 1e-9, fit.freedom
    (0.01, 0.002, True, 3)
    """
    _require(runs)
    design = np.array([_row_of(run.batch, run.context, run.k, _accepted_at(runs, run.k)) for run in runs])
    seconds = np.array([run.seconds for run in runs])
    used = _used(runs)
    relative = design[:, used] / seconds[:, None]
    for term in _PREFILL:
        if term in used and (len(runs) <= len(used) or _rank(relative) < len(used)):  # a law without it may be known
            used.remove(term)
            relative = design[:, used] / seconds[:, None]
    _require_determined(runs, relative, used)
    solution = _solved(relative)
    free = solution > 0
    freedom = len(runs) - len(used)
    error = math.sqrt(float(np.sum((relative @ solution - 1) ** 2)) / freedom)
    if error > _MOST_ERROR:
        raise SettingError(
            f"the runs scatter by {error:.0%} about the fit",
            limit=f"at most {_MOST_ERROR:.0%}",
            remedy="time a quiet server, with longer outputs and more prompts",
        )
    scale = relative[:, free].max(axis=0)
    values, vectors = np.linalg.eigh(np.linalg.inv((relative[:, free] / scale).T @ (relative[:, free] / scale)))
    directions = np.zeros((len(values), len(TERMS)))
    directions[:, np.array(used)[free]] = (error * np.sqrt(np.maximum(values, 0.0)) * vectors / scale[:, None]).T
    coefficients = np.zeros(len(TERMS))
    coefficients[used] = solution
    return ServedFit(
        tuple(runs),
        tuple(coefficients.tolist()),
        tuple(map(tuple, directions.tolist())),
        error,
        freedom,
        tuple(_left_out(relative, i) for i in range(len(runs))),
    )


def _rank(relative: Floats) -> int:
    return int(np.linalg.matrix_rank(relative / relative.max(axis=0)))


def _solved(relative: Floats) -> Floats:
    scale = np.maximum(relative.max(axis=0), np.finfo(float).tiny)
    return np.asarray(nnls(relative / scale, np.ones(len(relative)))[0] / scale)


def _left_out(relative: Floats, run: int) -> float:
    """The relative error at one run of the fit to all others."""
    others = np.delete(relative, run, axis=0)
    if np.linalg.matrix_rank(others / np.maximum(others.max(axis=0), np.finfo(float).tiny)) < relative.shape[1]:
        return math.nan
    return float(relative[run] @ _solved(others) - 1)


def _used(runs: Sequence[StepTime]) -> list[int]:
    """Terms that the runs vary."""
    contexts = [run.context for run in runs]
    varies = max(contexts) > (1 + SAME) * min(contexts)
    several = len({run.k for run in runs if run.k}) > 1
    accepts = any(run.accepted for run in runs)
    kept = [i for i in range(len(TERMS)) if (varies or i not in _OF_CONTEXT) and (several or i not in _OF_CALLS)]
    return [i for i in kept if accepts or i != _PREFILL[0]]


def _require(runs: Sequence[StepTime]) -> None:
    """Both kinds of runs, each at two batches."""
    for drafts, name in ((False, "without speculation"), (True, "with speculation")):
        batches = sorted({run.batch for run in runs if bool(run.k) is drafts})
        if len(batches) < 2:
            there = f"there are some at {batches[0]:g} alone" if batches else "there are none"
            raise SettingError(
                f"runs {name} are missing ({there})",
                limit="each kind is needed at two batches",
                remedy=f"run {name} at another concurrency" if batches else f"add runs {name}",
            )


def _require_determined(runs: Sequence[StepTime], relative: Floats, used: Sequence[int]) -> None:
    """More runs than terms, and terms that vary by themselves."""
    if len(runs) <= len(used):
        raise SettingError(
            f"{len(runs)} runs are given for {len(used)} terms",
            limit="errors are estimated from more runs than terms",
            remedy="add runs at other concurrencies",
        )
    if _rank(relative) < len(used):
        raise SettingError(
            "the runs do not determine the times of " + ", ".join(TERMS[i] for i in used),
            limit="batch, context and k must vary independently, with and without speculation",
            remedy="run every k at two concurrencies and two contexts",
        )
