r"""The best use of a step's time for a whole batch (§15): which drafts of which requests to verify.

With :math:`s_{r,i}` the probability that request r accepts its first i drafts, and t(m) the time of a step that
verifies m tokens, the most tokens per second of a step are

.. math:: \max_k \frac{\sum_r \bigl(1 + \sum_{i \le k_r} s_{r,i}\bigr)}{t\bigl(R + \sum_r k_r\bigr)} .

For a given sum of k the largest s are best. They are prefixes, as s falls along a request. So the best choice is a
threshold: the drafts with :math:`s \ge \lambda`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectheory.distributions import Floats, as_numpy
from spectheory.errors import SettingError
from spectheory.prediction.law import moves_of


@dataclass(frozen=True)
class StepBudget:
    """How many drafts of each request a step verifies, ``[R]``, and what that gives.

    `threshold` is the least survival that is verified, infinite where no draft is. `tokens` are expected of the step,
    accepted drafts and one more token of each request; `rate` is tokens over the step's time.
    """

    lengths: NDArray[np.int64]
    threshold: float
    tokens: float
    rate: float


def best_budget(survival: ArrayLike, times: ArrayLike) -> StepBudget:
    """The drafts to verify for the most tokens per second of one step (§15/budget, exact).

    `survival` ``[R, K]`` is P(request r accepts its first i drafts), falling along i; `times` ``[R K + 1]`` are the
    step's times by the drafts verified in all, > 0, in any unit. They may have stairs. Among equal choices the
    shortest step is taken. It is the best of all choices made before the drafts are drawn (theorem §15/budget).

    Examples
    --------
    Verifying is free up to two drafts; then each costs a tenth of the step.

    >>> choice = best_budget([[0.9, 0.8], [0.3, 0.05]], [1.0, 1.0, 1.0, 1.1, 1.2])
    >>> choice.lengths.tolist(), choice.threshold, round(choice.rate, 9)
    ([2, 0], 0.8, 3.7)
    """
    values, seconds = as_numpy(survival, "survival", SettingError), as_numpy(times, "times", SettingError)
    if values.ndim != 2 or seconds.shape != (values.size + 1,):
        raise SettingError(
            f"survival has shape {values.shape} and times {seconds.shape}",
            limit="needs [R, K] and [R K + 1]",
            remedy="give the time of a step for each number of drafts, from 0 on",
        )
    # The conditions are positive so that NaN fails them.
    if not (np.all(values >= 0) and np.all(values <= 1) and np.all(np.diff(values, axis=1) <= 0)):
        raise SettingError(
            "survival rises, or is no probability",
            limit="a draft is accepted only after those before it",
            remedy="give P(accepted >= 1), P(accepted >= 2), ... of each request",
        )
    if not np.all((seconds > 0) & np.isfinite(seconds)):
        raise SettingError("a step's time is not above 0", limit="times are finite and > 0", remedy="give seconds")
    order = np.argsort(-values, axis=None, kind="stable")  # equal ones stay in order, so prefixes stay prefixes
    tokens = len(values) + np.concatenate([[0.0], np.cumsum(values.ravel()[order])])
    drafts = int(np.argmax(tokens / seconds))
    lengths = np.bincount(order[:drafts] // max(values.shape[1], 1), minlength=len(values))
    threshold = float(values.ravel()[order[drafts - 1]]) if drafts else np.inf
    return StepBudget(lengths, threshold, float(tokens[drafts]), float(tokens[drafts] / seconds[drafts]))


def call_laws(survival: Floats, drafts: NDArray[np.int64], lengths: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """The laws of drafts and of tokens of a call in the long run, ``[K + 1]`` and ``[K + 2]`` (§15/step, exact).

    `survival` ``[N, K]`` is P(tau >= i) of a call from each position, `drafts` ``[N]`` what it verifies, of texts of
    these `lengths`, one after the other without end. The first token of each is that of its prompt's pass. Tokens past
    the end of a text are none.

    Examples
    --------
    >>> laws = call_laws(np.full((4, 1), 0.5), np.ones(4, np.int64), np.array([4]))
    >>> [(law.round(3) + 0.0).tolist() for law in laws]
    [[0.0, 1.0], [0.0, 0.667, 0.333]]
    """
    from spectheory.kernels.path_calls import budget_calls

    depth, texts = survival.shape[1], len(lengths)
    calls, sums, tokens = np.zeros(texts), np.zeros((5, texts, depth)), np.zeros(depth + 2)
    unlimited = np.full(len(survival), depth)
    budget_calls(
        np.ascontiguousarray(survival), np.zeros((0, depth)), drafts, unlimited, lengths, 1, calls, sums, tokens
    )
    return moves_of(sums[0].sum(axis=0) / calls.sum()), tokens / calls.sum()


def sum_law(law: Floats, count: int) -> Floats:
    """The law of the sum of so many independent numbers of one law ``[n]``, ``[count (n - 1) + 1]`` (exact).

    Examples
    --------
    >>> sum_law(np.array([0.5, 0.5]), 2).tolist()
    [0.25, 0.5, 0.25]
    """
    size = count * (len(law) - 1) + 1
    transform = np.fft.rfft(law, size)
    return np.maximum(np.fft.irfft(transform**count, size), 0.0)


def least_edges(times: Floats) -> NDArray[np.int64]:
    """The corners of the largest convex function below `times` ``[n]``, from the first to the last."""
    corners: list[int] = []
    for at, time in enumerate(times.tolist()):
        while len(corners) > 1:
            first, last = corners[-2:]
            if (times[last] - times[first]) * (at - first) < (time - times[first]) * (last - first):
                break
            corners.pop()
        corners.append(at)
    return np.array(corners)
