"""The entropy of the rank, estimated from what is seen (R1, R2, R3): a trial is a group of positions.

Parameters are ``rule`` (``poisson``, ``race``, ``recursive``), ``target`` and ``draft``, pmfs ``[V]``, ``max_rank``,
and ``draws``, the positions of a group. Each group gives a sample of ``entropy``, nats, of the rank cut at max_rank,
and one of ``unseen``, approximately the largest bias of the estimate (:func:`seen_entropy`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy.special import digamma, exp1

from simulations.counts import Mean, Tally
from simulations.draws import Counts, Words
from simulations.experiments.tasks import simulator
from simulations.kernels.candidates import recursive_rejection
from simulations.kernels.races import dense_race, poisson_race
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.verification import PoissonRace, RaceVerification, RecursiveRejection, rank_entropy
from spectheory.verification.base import RankRule


def seen_entropy(counts: Counts) -> tuple[float, float]:
    r"""Estimated entropy of the law behind a histogram, nats, and approximately its largest bias.

    :math:`\hat H = \psi(n) - \frac1n \sum_i n_i \psi(n_i)` (``zhang2012``) lacks in the mean
    :math:`\sum_{v \ge n} \frac1v \sum_i p_i (1-p_i)^v`, at most :math:`M \log(1 + U/(nM))`: U letters and the mass M
    are yet unseen, and M is about the share of the letters seen once.
    """
    n = int(counts.sum())
    seen = counts[counts > 0]
    entropy = float(digamma(n) - (seen * digamma(seen)).sum() / n)
    once, letters = int((counts == 1).sum()), int((counts == 0).sum())
    return entropy, once / n * math.log1p(letters / once) if once else 0.0


def _raced(kernel: Callable[..., Counts]) -> Callable[..., Counts]:
    """The histogram of a race, its ranks beyond and those without a rank as one letter."""

    def histogram(p: Any, q: Any, ranks: int, draws: int, state: Words) -> Counts:
        counts = kernel(p, q, trials=draws, state=state, max_rank=ranks)
        return np.append(counts[1:-1], counts[0] + counts[-1])

    return histogram


def _rejected(p: Any, q: Any, ranks: int, draws: int, state: Words) -> Counts:
    return recursive_rejection(p, q, ranks, draws, state=state).sum(axis=1)


HISTOGRAMS: dict[str, Callable[..., Counts]] = {
    "poisson": _raced(poisson_race),
    "race": _raced(dense_race),
    "recursive": _rejected,
}
"""The rank histograms of the rules."""


@simulator("rank-entropy", version="2")
def rank_entropies(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A group of positions, whose ranks give one entropy (H)."""
    rule = HISTOGRAMS.get(parameters["rule"])
    if rule is None:
        raise SettingError(
            f"the rule is {parameters['rule']!r}", limit=f"there are {', '.join(HISTOGRAMS)}", remedy="name one"
        )
    given = [parameters[name] for name in ("target", "draft", "max_rank", "draws")]
    estimates = [seen_entropy(rule(*given, state)) for _ in range(trials)]
    return Tally.of(trials, samples={"entropy": [h for h, _ in estimates], "unseen": [low for _, low in estimates]})


# What theory says

RULES: dict[str, tuple[str, RankRule]] = {
    "poisson": ("R1", PoissonRace()),
    "race": ("R2", RaceVerification()),
    "recursive": ("R3", RecursiveRejection()),
}
ROUNDING = 1e-12
"""Of a sum of up to ten thousand terms; it is all that is left where the rank is certain."""


@predicts("rank-entropy")
def rank_entropy_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """H(R) from the exact law of the rank."""
    statement, rule = RULES[parameters["rule"]]
    law = np.asarray(rule.rank_pmf(parameters["target"], parameters["draft"], parameters["max_rank"]))
    exact = abs(float(rank_entropy(law)))
    low = exact - mean_shortfall(np.append(law, max(1 - law.sum(), 0.0)), parameters["draws"]) - ROUNDING
    value = Interval(low, exact, exact + ROUNDING, "bound")
    yield Predicted("H(R), as estimated", statement, Mean("entropy"), value)


def mean_shortfall(law: Any, draws: int) -> float:
    r"""At least what the estimate lacks in the mean: :math:`\sum_i p_i E_1(-(n - \frac12) \log(1-p_i))`.

    The terms :math:`(1-p)^v/v`, v = n, n+1, ..., are convex in v: each is at most the integral around it.

    Examples
    --------
    >>> mean_shortfall([0.5, 0.5], 1000) < 1e-300
    True
    """
    p = np.asarray(law, dtype=np.float64)
    p = np.minimum(p[p > 0], 1.0)
    with np.errstate(divide="ignore", under="ignore"):
        return float((p * exp1(-(draws - 0.5) * np.log1p(-p))).sum())
