"""Calls whose starts are known: each is judged where it stands, which needs no expectation over starts (§13).

Given the text, the accepted tokens of a call follow the law at its start, whatever came before. So counted less
expected at the calls' own starts is a martingale, and the likelihood of all calls under a rule is a product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from spectheory.distributions import Floats
from spectheory.intervals import TILTS
from spectheory.judging.comparison import CERTAIN, Comparison
from spectheory.judging.counting import Counting, starts_of
from spectheory.prediction.law import in_deviations, moves_of
from spectheory.trace.calls import CallLog

Integers = NDArray[np.int64]

RARE = 1e-3
"""An outcome of smaller chance may be an engine's rounding: on its own it refutes nothing."""
ROUNDED = 1e-3
"""Largest share of calls whose length may be due to rounding. With logits off by 2^-5 nats (bfloat16), a draft that is
certain to be accepted is rejected where log q - log p is within 2^-5 of 0, at half that chance: of some 2e-4 of
positions if one in two has log q - log p within 1 of 0."""


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
    def of(cls, log: CallLog, counting: Counting, *, stopped: bool = False) -> Calls | None:
        """The calls of a log; None where a request does not list them, or they do not make up its text.

        Requests that do are not judged alone: which ones they are may depend on what was accepted. Where calls are
        `stopped` by the draft, how many tokens they drafted is part of what is expected, not given.
        """
        parts, first = [], 0
        for request in log.requests:
            tokens, starts = len(request.output), starts_of(request, counting)
            if starts is None:
                return None
            if len(starts):
                left = tokens - starts
                given = () if stopped else request.drafted
                drafted = np.array(given or [counting.k] * len(starts), dtype=np.int64)
                # The draft at a text's last token may not have been made, or is output but not counted as accepted.
                judged = np.minimum(drafted, left if given and counting.past_end else left - 1)
                accepted = np.minimum(np.array(request.accepted, dtype=np.int64), judged)
                parts.append(np.stack([first + starts, accepted, drafted, judged, left, starts]))
            first += tokens
        return cls(*np.concatenate(parts, axis=1)) if parts else None

    @property
    def verified(self) -> tuple[Integers, Integers, NDArray[np.bool_]]:
        """Tokens ``[M]`` that calls verified, in the order of the text: the row where the call starts, how many tokens
        after it the token stands, and whether the draft was accepted.

        Of each call these are its accepted drafts, and the one that was rejected if one was. An engine that changes the
        text still verifies position by position: a token has some law given the text before it, and was accepted with
        some probability given the token. In this order both are revealed one after the other, so sums of either are
        martingales, whatever the engine does later. The recursion over starts would be exact for right output only.
        """
        counts = self.accepted + (self.accepted < self.judged)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(self.rows, counts), within, within < np.repeat(self.accepted, counts)

    @property
    def bonus(self) -> Integers:
        """Rows of the tokens that follow calls whose drafts were all accepted."""
        return (self.rows + self.accepted)[(self.accepted == self.drafted) & (self.accepted < self.left)]

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
        p = tilted(hit.astype(np.int64), _coin(chance), np.ones(len(hit)))
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

    def likelihood(self, survival: Floats, others: Sequence[Floats]) -> float:
        """A p-value of a rule against others by the lengths of all calls; an upper bound, at any size.

        The mean likelihood of all rules over the rule's own has mean at most 1 if the rule is right.
        """
        of_rule, excluded = self.laws(survival), _rare(self.laws(survival))
        dropped = _at(excluded, self.accepted)
        if _certain(of_rule) and np.any(_at(of_rule, self.accepted) == 0):
            return 0.0
        with np.errstate(divide="ignore"):
            each = [np.log(np.maximum(_at(laws, self.accepted), 0.0)) for laws in (of_rule, *map(self.laws, others))]
        sums = np.array([logs[~dropped].sum() for logs in each])
        return _bounded(float(np.logaddexp.reduce(sums) - sums[0]) - np.log(len(sums)) - _slack(of_rule, excluded))

    def fit(self, survival: Floats) -> float:
        """Log-likelihood of the lengths of all calls, nats; a rare one counts as if it had the chance :data:`RARE`."""
        return float(np.log(np.maximum(_at(self.laws(survival), self.accepted), RARE)).sum())

    def rarities(self, survival: Floats) -> Comparison | None:
        """Calls whose length has a chance below :data:`RARE`, against those expected; None if nothing is random.

        An engine rounds other than the models that were read, and may do what its rule excludes by very little:
        up to a share :data:`ROUNDED` of calls is put down to rounding.
        """
        laws = self.laws(survival)
        if _certain(laws):
            return None
        excluded = _rare(laws)
        is_rare, chance = _at(excluded, self.accepted), (laws * excluded).sum(axis=1)
        low, high = float(chance.sum()), float(chance.sum() + ROUNDED * len(laws))
        allowed = np.minimum(chance + ROUNDED, 1.0)
        p = 1.0 if is_rare.sum() <= high else _tilted(is_rare.astype(np.int64), _coin(allowed), np.ones(len(laws)))
        return Comparison("calls of rare lengths", int(is_rare.sum()), low, high, float(np.sqrt(high)), p)


def _rare(laws: Floats) -> NDArray[np.bool_]:
    """Outcomes that may be an engine's rounding: those of chance below :data:`RARE`; none if nothing is random."""
    return np.zeros(laws.shape, bool) if _certain(laws) else laws < RARE


def _certain(laws: Floats) -> bool:
    """Whether every count is known."""
    return bool(np.all((laws == 0) | (laws == 1)))


def tilted(counts: Integers, laws: Floats, weights: Floats) -> float:
    r"""A p-value for a weighted sum of `counts` ``[C]``, each of a law ``[C, J]`` known given those before it.

    For every exponent t, :math:`\prod_c \exp(t w_c n_c) / E_c \exp(t w_c n)` has mean 1 if the laws are right, and so
    has the mean over the exponents :data:`TILTS`. By Markov's inequality 1 over it is a p-value, an upper bound at any
    size. Weights are in [-1, 1]. A count of chance below :data:`RARE` is left out (:meth:`Calls.rarities` counts them),
    which raises the mean by 1 + its chance at most. Where nothing is random, a count that differs gives 0.
    """
    if _certain(laws):
        return float(np.all(_at(laws, counts) == 1))
    excluded = _rare(laws)
    kept = ~_at(excluded, counts)
    return _tilted(counts[kept], laws[kept], weights[kept], _slack(laws, excluded))


def _tilted(counts: Integers, laws: Floats, weights: Floats, slack: float = 0.0) -> float:
    growth = _growth(laws, np.multiply.outer(TILTS, weights)).sum(axis=1)
    return _bounded(float(np.logaddexp.reduce(TILTS * (weights @ counts) - growth)) - np.log(len(TILTS)) - slack)


def _growth(laws: Floats, powers: Floats) -> Floats:
    """Log E exp(t n) of each law at powers t ``[..., C]``; many coins are quick."""
    if laws.shape[1] == 2:
        return np.log1p(np.expm1(powers) * laws[:, 1])
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(laws, 0.0))
    return np.asarray(logsumexp(powers[..., None] * np.arange(laws.shape[1]) + logs, axis=-1))


def _bounded(evidence: float) -> float:
    """The p-value of a log evidence."""
    return float(np.exp(-max(evidence, 0.0)))


def _slack(laws: Floats, excluded: NDArray[np.bool_]) -> float:
    """Logarithm of the factor by which left out outcomes raise the mean of an evidence."""
    return float(np.log1p((laws * excluded).sum(axis=1)).sum())


def _coin(chance: Floats) -> Floats:
    return np.stack([1 - chance, chance], axis=1)


def _at(values: NDArray[Any], counts: Integers) -> NDArray[Any]:
    """The entries of ``[C, J]`` at counts ``[C]``."""
    return np.take_along_axis(values, counts[:, None], axis=1)[:, 0]
