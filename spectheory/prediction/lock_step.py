r"""Batches whose texts are decoded together, call by call (§12): rounds until the slowest text has ended.

In lock-step the texts of a batch begin together. Each round makes one call of every text that has not ended, and an
ended text leaves. Given the texts their calls are independent, with the laws of §7. With :math:`F_b(t)` the probability
that text b needs at most t calls, a batch needs the largest of their numbers of calls:

.. math:: E[\max_b C_b] = \sum_{t\ge0} \Big(1 - \prod_b F_b(t)\Big).

Continuous batching fills the place of an ended text at once: a step then outputs :math:`B \sum N / \sum C` tokens, with
B the texts decoded together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from spectheory.checks import whole
from spectheory.distributions import Floats
from spectheory.drafting import Chain
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.prediction.law import law_of_count, moves_of
from spectheory.prediction.over_prompts import Prompts, interval, left_out
from spectheory.prediction.paths import tokens_left
from spectheory.prediction.shape_calls import survival_of
from spectheory.trace import Trace
from spectheory.verification import PathRule

PROMPTS_PER_TEXT = 8
"""Prompts for each text of a batch from which on an interval over prompts is given."""


def unfinished(survival: Floats, lengths: NDArray[np.int64]) -> Floats:
    """P(a text needs more than t calls), t = 0, 1, ..., ``[rounds, texts]``, given the texts (§12, exact).

    `survival` ``[N, depth]`` as in :mod:`spectheory.prediction.paths`. Plain decoding is a depth of no drafts.

    Examples
    --------
    One draft, accepted half of the time; two tokens need one call or two.

    >>> unfinished(np.array([[0.5], [0.5]]), np.array([2]))
    array([[1. ],
           [0.5]])
    """
    depth = survival.shape[1]
    inside = np.where(tokens_left(lengths)[:, None] > np.arange(1, depth + 1), survival, 0.0)
    laws = law_of_count(moves_of(inside), np.ones(depth + 1, bool), lengths)
    # Summed from the end, so that small probabilities keep their digits.
    return np.ascontiguousarray(np.cumsum(laws[:, :0:-1], axis=1)[:, ::-1].T)


def plainly_unfinished(lengths: NDArray[np.int64]) -> Floats:
    """The same of plain decoding, where a text of N tokens needs N calls: 0 or 1, ``[rounds, texts]`` (exact).

    Examples
    --------
    >>> plainly_unfinished(np.array([2, 1]))
    array([[1., 1.],
           [1., 0.]])
    """
    return np.asarray(np.arange(max(lengths))[:, None] < lengths, dtype=np.float64)


def rounds_of_batch(unfinished: Floats) -> Floats:
    r"""Expected rounds in which m texts of a batch are still decoded, m = 0..B, ``[B + 1]`` (§12-lock-step, exact).

    `unfinished` ``[rounds, B]`` is that of the texts of the batch. From m = 1 on these sum to :math:`E[\max_b C_b]`,
    and m times them to :math:`\sum_b E[C_b]`; so a batch takes :math:`\sum_m \text{rounds}_m\, t(m)` if a round of m
    texts takes t(m).

    Examples
    --------
    Two texts that each end after one or two calls, with equal probability: 1.75 rounds, not 1.5.

    >>> rounds = rounds_of_batch(np.array([[1.0, 1.0], [0.5, 0.5]]))
    >>> rounds.tolist(), float(rounds[1:].sum())
    ([0.25, 0.5, 1.25], 1.75)
    """
    live = np.zeros((len(unfinished), unfinished.shape[1] + 1))
    live[:, 0] = 1.0
    for more in unfinished.T:
        live[:, 1:] = live[:, 1:] * (1 - more)[:, None] + live[:, :-1] * more[:, None]
        live[:, 0] *= 1 - more
    return np.asarray(live.sum(axis=0))


def rounds_of_draws(unfinished: Floats, batch: int) -> Floats:
    r"""The same of a batch that is drawn from these texts, each of its texts by itself: with replacement (§12, exact).

    The texts of such a batch have independent calls with the mean law :math:`\bar F`, so
    :math:`E[\max] = \sum_t (1 - \bar F(t)^B)`, and the number of live texts is binomial. Batches of different texts
    need no fewer rounds on average (:func:`slowest_of_distinct`): for these it is a lower bound.

    Examples
    --------
    >>> rounds_of_draws(np.array([[1.0, 1.0], [0.5, 0.5]]), 2).round(6).tolist()
    [0.25, 0.5, 1.25]
    """
    whole("batch", batch, remedy="count the texts decoded together")
    share = unfinished.mean(axis=1)[:, None]
    live = np.arange(batch + 1)
    ways = gammaln(batch + 1) - gammaln(live + 1) - gammaln(batch - live + 1)
    with np.errstate(divide="ignore"):
        law = np.exp(ways + xlogy(live, share) + xlogy(batch - live, np.maximum(1 - share, 0.0)))
    return np.asarray(law.sum(axis=0))


def slowest_of_distinct(unfinished: Floats, batch: int) -> float:
    r"""E[max] of a batch of B different texts, drawn without replacement (§12, exact for these texts).

    .. math:: \sum_t \Big(1 - \binom{n}{B}^{-1} \sum_{|S| = B} \prod_{b \in S} F_b(t)\Big)

    If the n texts are independent draws this is an unbiased estimate of what a batch of B new ones needs.

    Raises
    ------
    SettingError
        If there are fewer texts than the batch has.

    Examples
    --------
    >>> slowest_of_distinct(np.array([[1.0, 1.0], [1.0, 0.0]]), 2), slowest_of_distinct(np.ones((3, 5)), 4)
    (2.0, 3.0)
    """
    whole("batch", batch, remedy="count the texts decoded together")
    texts = unfinished.shape[1]
    if batch > texts:
        raise SettingError(
            f"batches of {batch} different texts are asked for",
            limit=f"there are {texts}",
            remedy="draw with replacement, or measure more prompts",
        )
    means = np.zeros((batch + 1, len(unfinished)))  # over sets of j of the texts so far, the mean product of F
    means[0] = 1.0
    for seen, more in enumerate(unfinished.T, start=1):
        sizes = np.arange(1, min(seen, batch) + 1)[:, None]
        means[1 : len(sizes) + 1] = (
            means[1 : len(sizes) + 1] * (seen - sizes) + (1 - more) * means[: len(sizes)] * sizes
        ) / seen
    return float(np.sum(1 - means[batch]))


def slowest(trace: Trace, rule: PathRule, k: int, batch: int) -> Interval:
    r"""Rounds of a lock-step batch of B texts drawn from a trace, with the 95% interval over prompts (§12).

    Exact for batches drawn with replacement from the trace's texts: :math:`\sum_t (1 - \bar F(t)^B)`. The interval
    says how it varies over prompts (jackknife). It needs :data:`PROMPTS_PER_TEXT` prompts for each text of a batch:
    with fewer the slowest texts are too few (nominal 95% intervals held in 75% to 87% of simulated traces, above it in
    90% to 93%), and the value is an ``estimate``. Divided by the mean calls of a text it is what waiting costs.

    Examples
    --------
    >>> from spectheory.verification import TokenVerification
    >>> texts = [([-1.0] * n, [-1.5] * n) for n in (40, 60, 50)]
    >>> trace = Trace.from_log_probabilities(texts)
    >>> [round(slowest(trace, TokenVerification(), 4, batch).best, 2) for batch in (1, 8, 64)]
    [21.9, 28.44, 32.28]
    """
    whole("batch", batch, remedy="count the texts decoded together")
    rule.require(trace.columns)
    left = unfinished(survival_of(rule, Chain(k), trace.columns)[0], trace.lengths)
    prompts = Prompts(trace.texts)
    mean = 1 - _without_each(left, prompts)
    values, texts = np.sum(1 - mean**batch, axis=0), left_out(np.bincount(prompts.of_text, minlength=prompts.count))
    if PROMPTS_PER_TEXT * batch > prompts.count:
        return Interval.estimate(float(values[0]))
    return interval(values, texts)


def _without_each(unfinished: Floats, prompts: Prompts) -> Floats:
    """The mean over texts, then without the texts of each prompt, ``[rounds, 1 + prompts]``."""
    of_prompt = np.eye(prompts.count)[prompts.of_text]
    sums, texts = unfinished @ of_prompt, of_prompt.sum(axis=0)
    totals = np.concatenate([sums.sum(axis=1, keepdims=True), sums.sum(axis=1, keepdims=True) - sums], axis=1)
    counts = np.concatenate([[texts.sum()], texts.sum() - texts])
    return totals / np.maximum(counts, 1)
