"""How a verification rule stands against an engine's counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Floats
from spectheory.drafting import Shape, StoppingRule
from spectheory.judging.comparison import CallLaw, Comparison, compare_calls
from spectheory.judging.counting import Counted, Counting
from spectheory.judging.divergence import coarser, rounding_bound
from spectheory.judging.expected import ExpectedCounts
from spectheory.judging.starts import Calls
from spectheory.prediction.shape_calls import survival_of
from spectheory.trace import LAYERS, Trace
from spectheory.verification import PathRule
from spectheory.verification.base import Columns
from spectheory.verification.by_start import missing, read_as
from spectheory.verification.matching import ArgmaxDraft

FALSE_ALARMS = 1e-3
"""The rule that an engine runs is refuted at most this often, over all comparisons of it together.

Of several rules one runs at most, so their number needs no correction.
"""


@dataclass(frozen=True)
class Standing:
    """A rule against the counts.

    - `same`: other rules that accept the same on these texts, as token verification and recursive rejection do.
    - `calls`, `positions`: totals against expectation over whole texts; `starts`: at the calls' own known starts.
    - `likelihood`: p-value of the lengths of all calls against the other rules; None where starts are unknown.
    - `rare`: calls of lengths that have nearly no chance under the rule; `fit`: log-likelihood of all, in nats.
    - `texts`: requests whose calls differ, where nothing is random given the texts.
    - `served`: whether a serving engine is known to run it, or one of `same`.
    """

    rule: str
    same: tuple[str, ...]
    calls: Comparison
    positions: tuple[Comparison, ...] = ()
    starts: tuple[Comparison, ...] = ()
    likelihood: float | None = None
    rare: Comparison | None = None
    fit: float | None = None
    texts: tuple[str, ...] = ()
    served: bool = False

    @property
    def every(self) -> tuple[Comparison, ...]:
        """All comparisons."""
        return (self.calls, *self.positions, *self.starts, *([self.rare] if self.rare else []))

    @property
    def p(self) -> float:
        """The smallest p-value times their number (Bonferroni)."""
        values = [one.p for one in self.every] + ([] if self.likelihood is None else [self.likelihood])
        return min(1.0, len(values) * min(values))

    @property
    def refuted(self) -> bool:
        """Whether the counts refute the rule."""
        return self.p < FALSE_ALARMS

    @property
    def closeness(self) -> tuple[float, float, float]:
        """By which one of several that are not refuted is the best fit: the likelihood of listed calls, then p."""
        return self.fit or 0.0, self.p, -abs(self.calls.z)

    @property
    def worst(self) -> Comparison:
        """The comparison that speaks most against it."""
        return min(self.every, key=lambda one: (one.p, -abs(one.z)))


@dataclass(frozen=True)
class Bench:
    """What every rule is held against: texts, counts, the way of counting, and the calls whose starts are known."""

    lengths: NDArray[np.int64]
    names: tuple[str, ...]
    each: tuple[int | None, ...]
    totals: Counted
    counting: Counting
    calls: Calls | None
    shape: Shape
    greedy: bool = False
    dtype: str = ""

    @property
    def stop(self) -> StoppingRule | None:
        """The rule that ends its chains, if one does."""
        return self.shape.stop

    def survival(self, rule: PathRule, trace: Trace) -> Floats:
        """P(tau >= i) at every position (§7, §11); at temperature 0 the tokens of a chain are its first choices."""
        return self._survival(rule, trace.columns)

    def _survival(self, rule: PathRule, columns: Columns) -> Floats:
        chosen = self.greedy and rule.uses_draft and self.shape.is_chain
        survival, _ = survival_of(ArgmaxDraft() if chosen else rule, self.shape, columns)
        return np.asarray(survival, dtype=np.float64)

    def undecided(self, rule: PathRule, trace: Trace) -> tuple[Floats, Floats] | None:
        """P(tau >= i) of a draft of first choices with near-ties rejected, and accepted; None where there are none.

        Where calls are listed each near-tie that one met is as it was found, in both: its outcome is right either way.
        """
        first_choices = self.shape.is_chain and self.greedy and rule.uses_draft
        if not first_choices and not isinstance(rule, ArgmaxDraft):
            return None
        ties = _near_ties(trace, self.dtype)
        if not ties.any():
            return None
        columns, name = trace.columns, read_as(trace.columns, "draft_rank")
        seen = _as_seen(columns[name], ties, self.calls)
        ranks = (seen, seen) if self.calls is not None else (np.where(ties, 2, seen), np.where(ties, 1, seen))
        return tuple(self._survival(rule, {**columns, name: rank}) for rank in ranks)  # type: ignore[return-value]

    def standing(
        self,
        rule: str,
        survival: Floats,
        others: Sequence[Floats] = (),
        same: tuple[str, ...] = (),
        undecided: tuple[Floats, Floats] | None = None,
        more: Sequence[Floats] = (),
    ) -> Standing:
        """How a rule of this survival stands, beside others; with `more` readings of an estimated law by its calls."""
        if more:
            return Standing(rule, same, compare_calls(self.totals.calls, self._laws([survival, *more])))
        if undecided is not None and self.calls is not None:
            survival, undecided = undecided[0], None
        expected = ExpectedCounts(survival, self.lengths, self.counting, undecided)
        calls, *positions = expected.comparisons(self.totals)
        if self.calls is None:
            return Standing(rule, same, calls, tuple(positions), texts=self._differing(expected))
        return Standing(
            rule,
            same,
            calls,
            tuple(positions),
            self.calls.comparisons(survival),
            self.calls.likelihood(survival, others) if others else None,
            self.calls.rarities(survival),
            self.calls.fit(survival),
            texts=self._differing(expected),
        )

    def _laws(self, readings: Sequence[Floats]) -> list[CallLaw]:
        """The calls of each text by several readings."""
        read = [ExpectedCounts(survival, self.lengths, self.counting).decoded for survival in readings]
        texts = zip(*(np.split(survival, np.cumsum(lengths)[:-1]) for survival, lengths in read), strict=True)
        return [CallLaw.of(text) for text in texts if len(text[0])]

    def _differing(self, expected: ExpectedCounts) -> tuple[str, ...]:
        """Requests whose calls are not those that are certain."""
        if expected.undecided is not None:
            return ()
        sums = expected.low
        certain = sums.variance[:, 0] < 1e-6
        return tuple(
            name
            for name, calls, mean, sure in zip(self.names, self.each, sums.expected[:, 0], certain, strict=True)
            if sure and calls is not None and abs(calls - self.counting.prompt_counted - mean) > 0.5
        )


_NEEDED = ("draft_rank", "draft_gap", "draft_margin", "draft_scale")
"""Columns that near-ties are read from; without them there are none."""


def _near_ties(trace: Trace, dtype: str) -> NDArray[np.bool_]:
    """Positions ``[N]`` whose token may or may not be the draft's first choice in a precision (an estimate); ``[N, K]``
    by start and depth of a head.

    It is the first choice by less than rounding explains
    (:func:`~spectheory.judging.divergence.rounding_bound`), or falls short of it by less.
    """
    if missing(trace.columns, _NEEDED):
        return np.zeros(len(trace), bool)
    rank, gap, margin, scale = (trace.columns[read_as(trace.columns, name)] for name in _NEEDED)
    bound = rounding_bound(1.0, coarser(trace, dtype), trace.provenance.get(LAYERS)) * np.asarray(scale, np.float64)
    return np.asarray(np.where(rank == 1, margin, gap) <= bound)


def _as_seen(rank: NDArray[np.int64], ties: NDArray[np.bool_], calls: Calls | None) -> NDArray[np.int64]:
    """Ranks in the draft with near-ties as listed calls found them: accepted ones 1, rejected ones 2."""
    if calls is None:
        return rank
    outcome = np.zeros(rank.shape, dtype=np.int64)
    starts, within, accepted = calls.verified
    outcome[(starts, within) if rank.ndim == 2 else starts + within] = np.where(accepted, 1, 2)
    return np.where(ties & (outcome > 0), outcome, rank)
