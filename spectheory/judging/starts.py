"""Calls whose starts are known: each is judged where it stands, which needs no expectation over starts (§13).

Given the text, the accepted tokens of a call follow the law at its start, whatever came before. So counted less
expected at the calls' own starts is a martingale, and the likelihood of all calls under a rule is a product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from spectheory.judging.comparison import CERTAIN, Comparison
from spectheory.judging.counting import Counting, starts_of
from spectheory.prediction.law import in_deviations, moves_of
from spectheory.trace.calls import CallLog

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TILTS = np.concatenate([-(2.0 ** np.arange(-8, 4)), 2.0 ** np.arange(-8, 4)])
"""Exponents of the alternatives that a sum is tested against: log-odds from 1/256 to 8, each up to a factor two."""


@dataclass(frozen=True)
class Calls:
    """Calls with known starts, ``[C]`` each.

    `rows` are their starts in the concatenated texts, `positions` in their own; `accepted` is what each accepted within
    its text and its drafts, `drafted` how many tokens it drafted, `judged` how many of these stand in the text, `left`
    the tokens of the text from the start on.
    """

    rows: Integers
    accepted: Integers
    drafted: Integers
    judged: Integers
    left: Integers
    positions: Integers

    @classmethod
    def of(cls, log: CallLog, counting: Counting) -> Calls | None:
        """The calls of a log; None where a request does not list them, or they do not make up its text.

        Requests that do are not judged alone: which ones they are may depend on what was accepted.
        """
        parts, first = [], 0
        for request in log.requests:
            tokens, starts = len(request.output), starts_of(request, counting)
            if starts is None:
                return None
            if len(starts):
                left = tokens - starts
                drafted = np.array(request.drafted or [counting.k] * len(starts), dtype=np.int64)
                # Without drafted lengths the last draft that fits may not have been made: it is left out.
                judged = np.minimum(drafted, left if request.drafted else left - 1)
                accepted = np.minimum(np.array(request.accepted, dtype=np.int64), judged)
                parts.append(np.stack([first + starts, accepted, drafted, judged, left, starts]))
            first += tokens
        return cls(*np.concatenate(parts, axis=1)) if parts else None

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
        p = tilted(hit.astype(np.int64), np.stack([1 - chance, chance], axis=1), np.ones(len(hit)))
        return Comparison(what, int(hit.sum()), mean, mean, deviation, p)

    def laws(self, survival: Floats) -> Floats:
        """P(accepted = j) of each call, j = 0..k, ``[C, k + 1]``."""
        inside = np.arange(1, survival.shape[1] + 1) <= self.judged[:, None]
        return moves_of(np.where(inside, survival[self.rows], 0.0))

    def means(self, survival: Floats) -> Floats:
        """Accepted tokens that are expected of each call."""
        laws = self.laws(survival)
        return np.asarray(laws @ np.arange(laws.shape[1]))

    def trend(self, survival: Floats) -> tuple[float, float]:
        """Score test of a trend of accepted tokens with the position in the text: p-value, and z (negative: decay).

        Each call weighs by its distance from the middle of its text.
        """
        laws, weights = self.laws(survival), self.positions / (self.positions + self.left) - 0.5
        counts = np.arange(laws.shape[1])
        means = laws @ counts
        variance = float(weights**2 @ (laws @ counts**2 - means**2))
        z = in_deviations(float(weights @ (self.accepted - means)), float(np.sqrt(max(variance, 0.0))), CERTAIN)
        return tilted(self.accepted, laws, 2 * weights), z

    def log_likelihood(self, survival: Floats) -> float:
        """Log-probability of all calls given their texts, under a rule."""
        chance = np.take_along_axis(self.laws(survival), self.accepted[:, None], axis=1)
        with np.errstate(divide="ignore"):
            return float(np.log(np.maximum(chance, 0.0)).sum())


def tilted(counts: Integers, laws: Floats, weights: Floats) -> float:
    r"""A p-value for a weighted sum of `counts` ``[C]``, each of a law ``[C, J]`` known given those before it.

    For every exponent t, :math:`\prod_c \exp(t w_c n_c) / E_c \exp(t w_c n)` has mean 1 if the laws are right, and so
    has the mean over the exponents :data:`TILTS`. By Markov's inequality 1 over it is a p-value, an upper bound at any
    size. A count that its law excludes gives 0. Weights are in [-1, 1].
    """
    if np.any(np.take_along_axis(laws, counts[:, None], axis=1) <= 0):
        return 0.0
    powers = np.multiply.outer(TILTS, np.multiply.outer(weights, np.arange(laws.shape[1])))
    with np.errstate(divide="ignore"):
        growth = logsumexp(powers + np.log(np.maximum(laws, 0.0)), axis=2).sum(axis=1)
    evidence = float(logsumexp(TILTS * (weights @ counts) - growth)) - np.log(len(TILTS))
    return float(min(1.0, np.exp(-evidence)))


def against_others(own: float, others: list[float]) -> float:
    """A p-value of a rule against others, from their log-likelihoods; an upper bound, at any size.

    The mean likelihood of all rules over the rule's own has mean at most 1 if the rule is right.
    """
    if own == -np.inf:
        return 0.0
    every = [own, *others]
    return float(min(1.0, np.exp(own - logsumexp(every) + np.log(len(every)))))
