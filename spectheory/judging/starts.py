"""Calls whose starts are known: each is judged where it stands, which needs no expectation over starts (§13).

Given the text, the accepted tokens of a call follow the law at its start, whatever came before. So counted less
expected at the calls' own starts is a martingale, and the likelihood of all calls under a rule is a product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from spectheory.judging.comparison import Comparison
from spectheory.judging.counting import Counting, starts_of
from spectheory.prediction.law import moves_of
from spectheory.trace.calls import CallLog

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TILTS = np.concatenate([-(2.0 ** np.arange(-8, 4)), 2.0 ** np.arange(-8, 4)])
"""Exponents of the alternatives that a sum is tested against: log-odds from 1/256 to 8, each up to a factor two."""


@dataclass(frozen=True)
class Calls:
    """Calls with known starts, ``[C]`` each.

    `rows` are their starts in the concatenated texts, `accepted` what each accepted within its text and its drafts,
    `judged` how many of its drafts stand in the text, `left` the tokens of the text from the start on. `unfit` names
    the requests whose calls do not make up their texts.
    """

    rows: Integers
    accepted: Integers
    judged: Integers
    left: Integers
    positions: Integers
    unfit: tuple[str, ...] = ()

    @classmethod
    def of(cls, log: CallLog, counting: Counting) -> Calls | None:
        """The calls of a log; None where no request lists them."""
        parts, unfit, first = [], [], 0
        for request in log.requests:
            tokens, starts = len(request.output), starts_of(request, counting.prefill)
            if starts is not None:
                left = tokens - starts
                drafted = np.array(request.drafted or [counting.k] * len(starts), dtype=np.int64)
                # Without drafted lengths the last draft that fits may not have been made: it is left out.
                judged = np.minimum(drafted, left if request.drafted else left - 1)
                accepted = np.minimum(np.array(request.accepted, dtype=np.int64), judged)
                parts.append(np.stack([first + starts, accepted, judged, left, starts]))
            elif request.accepted:
                unfit.append(request.id)
            first += tokens
        if not parts:
            return None
        return cls(*np.concatenate(parts, axis=1), unfit=tuple(unfit))

    def comparisons(self, survival: Floats) -> tuple[Comparison, ...]:
        """Calls that accept at least i = 1..k tokens, counted against expected at the calls' own starts."""
        return tuple(
            self.compared(survival, i, self.judged >= i, f"at known starts, {i}")
            for i in range(1, survival.shape[1] + 1)
            if np.any(self.judged >= i)
        )

    def compared(self, survival: Floats, depth: int, among: NDArray[np.bool_], what: str) -> Comparison:
        """The same at one depth, among some calls chosen without regard to what they accept."""
        chance, hit = survival[self.rows[among], depth - 1], self.accepted[among] >= depth
        mean = float(chance.sum())
        deviation = float(np.sqrt((chance * (1 - chance)).sum()))
        return Comparison(what, int(hit.sum()), mean, mean, deviation, tilted(hit, chance))

    def log_likelihood(self, survival: Floats) -> float:
        """Log-probability of all calls given their texts, under a rule."""
        at = survival[self.rows]
        moves, every = moves_of(at), np.arange(len(self.rows))
        # A call that accepts all drafts in the text reached at least that depth.
        reached = np.concatenate([np.ones((len(at), 1)), at], axis=1)[every, self.accepted]
        chance = np.where(self.accepted == self.judged, reached, moves[every, self.accepted])
        with np.errstate(divide="ignore"):
            return float(np.log(np.maximum(chance, 0.0)).sum())


def tilted(hit: NDArray[np.bool_], chance: Floats) -> float:
    r"""A p-value for a sum of events whose chances are known one after another; an upper bound, at any size.

    For every exponent t, :math:`\prod \exp(t\,[hit]) / (1 + c\,(e^t - 1))` has mean 1 if the chances are right, and so
    has the mean over the exponents :data:`TILTS`. By Markov's inequality 1 over it is a p-value.
    """
    if np.any(hit & (chance <= 0)) or np.any(~hit & (chance >= 1)):
        return 0.0
    growth = np.log1p(np.multiply.outer(np.expm1(TILTS), chance)).sum(axis=1)
    evidence = float(logsumexp(TILTS * hit.sum() - growth)) - np.log(len(TILTS))
    return float(min(1.0, np.exp(-evidence)))


def against_others(own: float, others: list[float]) -> float:
    """A p-value of a rule against others, from their log-likelihoods; an upper bound, at any size.

    The mean likelihood of all rules over the rule's own has mean at most 1 if the rule is right.
    """
    if own == -np.inf:
        return 0.0
    every = [own, *others]
    return float(min(1.0, np.exp(own - logsumexp(every) + np.log(len(every)))))
