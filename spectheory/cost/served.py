"""C3 from a server's own timings: seconds of a step at batch B, context L and k drafts, fitted, with stated errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import nnls
from scipy.special import stdtrit

from spectheory.checks import choice
from spectheory.cost.model import CostModel, Ends
from spectheory.distributions import Floats
from spectheory.drafting import Shape
from spectheory.errors import SettingError, argument
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


AFFINE, STAIRS, GRAPHS = "affine", "stairs", "stairs at graph sizes"
LAWS = (AFFINE, STAIRS, GRAPHS)
"""Laws of a step's time, the simplest first."""
GRAPH_SIZES = (1, 2, 4, *range(8, 256, 8), *range(256, 513, 16))
"""Tokens that vLLM captures CUDA graphs for unless told otherwise (vllm-project/vllm, vllm/config/vllm.py); a step is
padded to the next."""


@dataclass(frozen=True)
class _Law:
    """The columns of a fit: those of TERMS that are used, and heights of a staircase at `knots` of verified tokens."""

    terms: tuple[int, ...]
    knots: tuple[float, ...] = ()
    sizes: tuple[int, ...] = ()

    @classmethod
    def of(cls, name: str, runs: Sequence[StepTime], terms: Sequence[int], sizes: Sequence[int]) -> _Law:
        """The law for these runs: a staircase takes the place of what a step and its sequences take."""
        if name == AFFINE:
            return cls(tuple(terms))
        padded = tuple(sizes) if name == GRAPHS else ()
        knots = sorted({_padded(run.batch * (run.k + 1), padded) for run in runs})
        return cls(tuple(each for each in terms if each not in _IN_STAIRS), tuple(knots), padded)

    def rows(self, batch: Floats, context: Floats, k: Floats, accepted: Floats) -> Floats:
        """What each coefficient is multiplied by, a row for each step."""
        rows, tokens = _rows_of(batch, context, k, accepted), batch * (k + 1)
        unused = np.ones(len(TERMS), dtype=bool)
        unused[list(self.terms)] = False
        rows[:, unused] = 0.0
        return np.hstack([rows, self._stairs(tokens)]) if self.knots else rows

    def _stairs(self, tokens: Floats) -> Floats:
        """Ramps between knots, so that heights above 0 are a monotone law; past the last knot in proportion."""
        at, knots = np.array([_padded(each, self.sizes) for each in tokens])[:, None], np.array(self.knots)
        ramps = np.clip((at - knots[:-1]) / np.diff(knots), 0.0, 1.0)
        return np.asarray(np.hstack([np.ones_like(at), ramps]) * np.maximum(1.0, at / knots[-1]))


def _padded(tokens: float, sizes: Sequence[int]) -> float:
    """The graph that so many tokens run in; past the largest they run as they are."""
    return next((float(size) for size in sizes if size >= tokens), float(tokens))


@dataclass(frozen=True)
class ServedFit:
    r"""Seconds of a step as a function of batch, context and k, fitted to a server's runs (C3, estimate).

    The *affine* law is

    .. math:: t = a + bB + cBL + [k > 0]\,(s + gB) + k\,(d + eB + fBL) + h A_k B

    The first three terms are the plain step. A call outputs :math:`A_k` accepted tokens more, so that more prompts of
    other requests are read during a step: h; and g where plain requests of one length end together. Both are fitted
    where k varies and the runs determine them. What a draft adds is its drafting and its
    verification together: the time of calls does not tell them apart. No coefficient is below 0. Residuals are
    relative, t'/t - 1.

    *Stairs* replace a + bB + keB by a law S(m) of the tokens that a step verifies, m = B(k + 1), that never falls:
    isotonic regression together with the other terms, linear between the m of the runs. *Stairs at graph sizes* pad m
    to the next CUDA graph first. `law` is the one of the smallest error of runs left out, `tried` has the error of each
    (root of the mean square, relative, over runs that every law predicts).

    `coefficients` follow :data:`TERMS`, then come the rises of the staircase at `knots`; those of terms that the runs
    do not vary are 0. `directions` are independent errors of the coefficients, one standard deviation each. `error` is
    the standard deviation of the residuals, `freedom` the runs less the terms, `left_out` for each run the relative
    error of the fit to all other runs; NaN where these do not determine the terms, or m is beyond theirs.
    """

    runs: tuple[StepTime, ...]
    coefficients: tuple[float, ...]
    directions: tuple[tuple[float, ...], ...] = field(repr=False)
    error: float
    freedom: int
    left_out: tuple[float, ...] = field(repr=False)
    columns: _Law = field(repr=False)
    law: str = AFFINE
    tried: Mapping[str, float] = field(default_factory=dict)

    @property
    def stairs(self) -> tuple[tuple[float, float], ...]:
        """Tokens of a step at which the staircase begins and rises, with its seconds from there on; none if affine."""
        heights = np.array(self.coefficients[len(TERMS) :])
        known = zip(self.columns.knots, heights, heights.cumsum(), strict=True)
        return tuple((knot, float(top)) for i, (knot, rise, top) in enumerate(known) if rise or not i)

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
        sizes, contexts, ks = (np.array([float(each)]) for each in (batch, context, k))
        row = self.columns.rows(sizes, contexts, ks, _accepted_at(self.runs, ks))[0]
        best = self._bounded(row @ np.array(self.coefficients))
        half = self.reach * math.sqrt(sum(float(row @ np.array(each)) ** 2 for each in self.directions))
        return Interval(min(self._bounded(best - half), best), best, best + half, "statistical")

    def verifying(self, batch: float, context: float, ks: Floats) -> Floats:
        """Seconds of steps that verify so many drafts of a sequence in the mean; at 0 they are made all the same."""
        sizes, contexts = np.full(len(ks), float(batch)), np.full(len(ks), float(context))
        rows = self.columns.rows(sizes, contexts, ks, _accepted_at(self.runs, ks))
        rows[:, 3], rows[:, 7] = 1.0, batch
        return np.maximum(rows @ np.array(self.coefficients), self._bounded(0.0))

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
                    f"{argument(name)} is {value:g}",
                    limit=f"runs cover {least:g} to {most:g}",
                    remedy="choose one of these, or add runs there",
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


def _accepted_at(runs: Sequence[StepTime], k: Floats) -> Floats:
    """Accepted tokens of calls of k drafts: the mean of the runs, on a line between those of other k."""
    ks = sorted({run.k for run in runs})
    return np.interp(k, ks, [np.mean([run.accepted for run in runs if run.k == each]) for each in ks])


def _rows_of(batch: Floats, context: Floats, k: Floats, accepted: Floats) -> Floats:
    """What each term is multiplied by, a row for each step."""
    cached, call = batch * context, np.where(k > 0, 1.0, 0.0)
    return np.stack(
        [np.ones_like(batch), batch, cached, call, k, k * batch, k * cached, call * batch, accepted * batch], axis=1
    )


_OF_CONTEXT = (2, 6)
_OF_CALLS = (3, 7, 8)
_OF_BATCH = (1, 5, 7)
_IN_STAIRS = (0, 1, 5)
_PREFILL = (8, 7)
_MOST_ERROR = 0.25
"""Residuals above it leave speed-ups unknown by a factor of more than 1.5 either way."""
_GAIN = 0.8
"""A staircase is chosen if its error of runs left out is below this share of the affine law's."""
_ALIKE = 1.05
"""Of staircases whose errors are within this factor the one at graph sizes is taken: it knows where stairs rise."""
_LEAST_LEFT_OUT = 6
"""Laws are compared on so many runs left out, or more."""


def fit_server(runs: Sequence[StepTime], *, law: str | None = None, sizes: Sequence[int] = GRAPH_SIZES) -> ServedFit:
    """Fit the time of a step by least squares of relative residuals, no coefficient below 0 (``scipy.optimize.nnls``).

    Terms of the context are fitted where it varies, and those of a call where k does. The runs must say more than
    there are terms: a ``SettingError`` names the runs that are missing. Without a `law` it is the one that predicts
    runs left out best; a staircase must have 0.8 of the affine law's error at most. `sizes` are those of CUDA graphs.

    Examples
    --------
    >>> from spectheory.cost.served import StepTime
    >>> runs = [StepTime(b, 100, k, 0.01 + 0.001 * b + 0.002 * k) for b in (1, 4, 16) for k in (0, 1, 4)]
    >>> fit = fit_server(runs)
    >>> round(fit.coefficients[0], 6), round(fit.coefficients[4], 6), fit.error < 1e-9, fit.freedom, fit.law
    (0.01, 0.002, True, 3, 'affine')
    """
    choice("law", law or AFFINE, LAWS, remedy="leave it out to have it chosen")
    _require(runs)
    terms = _determined(runs)
    fits: dict[str, ServedFit] = {}
    for name in LAWS if law is None else (law,):
        columns = _Law.of(name, runs, terms, sizes)
        if any(columns.knots == fit.columns.knots for fit in fits.values()):
            continue  # every step of the runs fills a graph
        if fit := _fitted(runs, columns, name, required=name in (law, AFFINE)):
            fits[name] = fit
    chosen, tried = _chosen(fits)
    fit = replace(fits[chosen], tried=tried)
    if (scatter := max(fit.error, 0.0 if fit.law == AFFINE else tried[fit.law])) > _MOST_ERROR:
        raise SettingError(
            f"the runs scatter by {scatter:.0%} about the fit",
            limit=f"at most {_MOST_ERROR:.0%}",
            remedy="time a quiet server, with longer outputs and more prompts",
        )
    return fit


def _chosen(fits: Mapping[str, ServedFit]) -> tuple[str, dict[str, float]]:
    """The law of the smallest error of runs left out, and the errors on the runs that all laws predict."""
    off = {name: np.array(fit.left_out) for name, fit in fits.items()}
    common = np.all([~np.isnan(each) for each in off.values()], axis=0)
    tried = {name: float(np.sqrt(np.mean(each[common] ** 2))) for name, each in off.items() if common.any()}
    first = next(iter(fits))
    if common.sum() < _LEAST_LEFT_OUT:
        return first, tried
    least = min(tried.values())
    best = next(name for name in reversed(LAWS) if tried.get(name, math.inf) <= _ALIKE * least)
    return (best if tried[best] < _GAIN * tried[first] else first), tried


def _determined(runs: Sequence[StepTime]) -> list[int]:
    """Terms of the affine law that the runs determine; those of other requests' prompts are left out first."""
    used, relative = _used(runs), _relative(runs, _Law(tuple(range(len(TERMS)))))
    for term in _PREFILL:
        if term in used and (len(runs) <= len(used) or _rank(relative[:, used]) < len(used)):
            used.remove(term)  # a law without it may be known
    _require_determined(runs, relative[:, used], used)
    return used


def _relative(runs: Sequence[StepTime], law: _Law) -> Floats:
    """The columns over the seconds of each run."""
    steps = np.array([[run.batch, run.context, run.k, run.seconds] for run in runs], dtype=np.float64)
    accepted = _accepted_at(runs, steps[:, 2])
    return np.asarray(law.rows(steps[:, 0], steps[:, 1], steps[:, 2], accepted) / steps[:, 3:])


def _fitted(runs: Sequence[StepTime], law: _Law, name: str, *, required: bool) -> ServedFit | None:
    """The fit of one law; None where a staircase has as many rises as runs, unless it is required."""
    relative = _relative(runs, law)
    solution = _solved(relative)
    free = solution > 0
    freedom = len(runs) - (int(free.sum()) if law.knots else len(law.terms))
    if freedom < 1 and not required:
        return None
    if freedom < 1:
        raise SettingError(f"{len(runs)} runs have a step each", limit="stairs need more runs", remedy="add runs")
    error = math.sqrt(float(np.sum((relative @ solution - 1) ** 2)) / freedom)
    scale = relative[:, free].max(axis=0)
    values, vectors = np.linalg.eigh(np.linalg.pinv((relative[:, free] / scale).T @ (relative[:, free] / scale)))
    directions = np.zeros((len(values), len(solution)))
    directions[:, free] = (error * np.sqrt(np.maximum(values, 0.0)) * vectors / scale[:, None]).T
    return ServedFit(
        tuple(runs),
        tuple(solution.tolist()),
        tuple(map(tuple, directions.tolist())),
        error,
        freedom,
        tuple(_left_out(runs, relative, law, name, i) for i in range(len(runs))),
        law,
        name,
    )


def _rank(relative: Floats) -> int:
    return int(np.linalg.matrix_rank(relative / np.maximum(relative.max(axis=0), np.finfo(float).tiny)))


def _solved(relative: Floats) -> Floats:
    """Coefficients of the columns; 0 where a column is 0."""
    scale = np.maximum(relative.max(axis=0), np.finfo(float).tiny)
    return np.asarray(nnls(relative / scale, np.ones(len(relative)))[0] / scale)


def _left_out(runs: Sequence[StepTime], relative: Floats, law: _Law, name: str, left: int) -> float:
    """The relative error at one run of the fit to all others."""
    if law.knots:  # the others have knots of their own
        law = _Law.of(name, [each for i, each in enumerate(runs) if i != left], law.terms, law.sizes)
        if not law.knots[0] <= _padded(runs[left].batch * (runs[left].k + 1), law.sizes) <= law.knots[-1]:
            return math.nan
        relative = _relative(runs, law)
    others = np.delete(relative, left, axis=0)
    if not law.knots and _rank(others[:, law.terms]) < len(law.terms):
        return math.nan
    return float(relative[left] @ _solved(others) - 1)


def _used(runs: Sequence[StepTime]) -> list[int]:
    """Terms that the runs vary."""
    contexts = [run.context for run in runs]
    varies = max(contexts) > (1 + SAME) * min(contexts)
    batches = len({run.batch for run in runs}) > 1
    several = len({run.k for run in runs if run.k}) > 1
    accepts = any(run.accepted for run in runs)
    kept = [i for i in range(len(TERMS)) if (varies or i not in _OF_CONTEXT) and (several or i not in _OF_CALLS)]
    kept = [i for i in kept if batches or i not in _OF_BATCH]
    return [i for i in kept if (accepts and batches) or i != _PREFILL[0]]


def _require(runs: Sequence[StepTime]) -> None:
    """Both kinds of runs, each at two batches, unless all are at one."""
    alone = len({run.batch for run in runs}) == 1
    for drafts, name in ((False, "without speculation"), (True, "with speculation")):
        batches = sorted({run.batch for run in runs if bool(run.k) is drafts})
        if len(batches) < (1 if alone else 2):
            there = f"there are some at {batches[0]:g} alone" if batches else "there are none"
            raise SettingError(
                f"runs {name} are missing ({there})",
                limit="each kind is needed" + ("" if alone else " at two batches"),
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
