r"""Intervals over prompts: the jackknife with Student's t.

Every statistic here is a function of sums over prompts. It is evaluated once on all prompts and once without each of
them. With :math:`\theta_{-i}` the logarithm of the statistic without prompt i, its variance is estimated by

.. math:: v = \frac{n-1}{n} \sum_i (\theta_{-i} - \bar\theta)^2 ,

and the 95% interval is :math:`\theta \pm t_\nu \sqrt v`. Prompts that end early weigh less, so the degrees of freedom
are :math:`\nu = (\sum_i w_i)^2 / \sum_i w_i^2 - 1`, with :math:`w_i` what prompt i adds to the denominator
(Kish's effective number of prompts, less one). ``benchmarks/interval_coverage.py`` measures how often they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from spectheory.distributions import Floats
from spectheory.intervals import CONFIDENCE, Interval
from spectheory.trace import TextInfo
from spectheory.trace.sample import spread

FEW = 8
"""With fewer prompts the intervals are rough."""
HALVES = 2
"""Parts of the prompts, each with B6's threshold of the other."""
PARTS = 4
"""Parts of the prompts, each scored by the tree of the others, found on three quarters of the texts."""
NO_LIMITS = (-np.inf, np.inf)


def left_out(per_prompt: NDArray[Any]) -> Floats:
    """The sum over all prompts, then the sum without each of them, ``[1 + prompts]``."""
    total = float(np.sum(per_prompt))
    return np.concatenate([[total], total - per_prompt])


def reach(freedom: float) -> float:
    """Half the width of a 95% interval in standard deviations: Student's t with so many degrees of freedom."""
    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def deviation(low: float, high: float) -> float:
    """Standard deviation of the logarithm of a positive value, read from the ends of its 95% interval."""
    return float(np.log(high / low) / (2 * reach(np.inf)))


def interval(
    values: Floats,
    weights: Floats,
    *,
    limits: tuple[float, float] = NO_LIMITS,
    logarithmic: bool = True,
    other_variance: float = 0.0,
) -> Interval:
    """The 95% interval over prompts of a statistic (see the module); an ``estimate`` if fewer than two prompts count.

    `values` and `weights` ``[1 + prompts]`` are the statistic and the sum that says how much each prompt counts, on all
    prompts, then without each of them. The interval is cut at `limits`, which are certain of the true value. The error
    is on the scale of the logarithm if `logarithmic` and all values are positive; `other_variance` is that of an
    independent error on that scale, such as that of latencies (degrees of freedom follow Satterthwaite).
    """
    best, prompts = float(values[0]), int((weights[0] - weights[1:] > 0).sum())
    if prompts < 2:
        return Interval.estimate(best)
    logarithmic = logarithmic and bool(np.all(values > 0))
    centre, variance, freedom = _jackknife(np.log(values) if logarithmic else values, weights)
    if other_variance > 0:
        with np.errstate(divide="ignore"):
            freedom *= float(np.square(1 + np.divide(other_variance, variance)))
    half = reach(freedom) * float(np.sqrt(variance + other_variance))
    with np.errstate(over="ignore"):
        low, high = (float(np.exp(end)) if logarithmic else float(end) for end in (centre - half, centre + half))
    return Interval(min(max(low, limits[0]), best), best, max(min(high, limits[1]), best), "statistical")


def _jackknife(values: Floats, weights: Floats) -> tuple[float, float, float]:
    """The statistic on all prompts, its variance, and the degrees of freedom; two prompts or more count."""
    of_prompt = weights[0] - weights[1:]
    without = values[1:][of_prompt > 0]
    variance = (len(without) - 1) / len(without) * float(np.sum((without - without.mean()) ** 2))
    return float(values[0]), variance, max(float(of_prompt.sum() ** 2 / np.sum(of_prompt**2)) - 1, 1.0)


def _relative_spread(above: Floats, below: Floats) -> tuple[float, float]:
    """Variance and degrees of freedom of the logarithm of a ratio of two sums over prompts, each ``[1 + prompts]``."""
    _, variance, freedom = _jackknife(np.log(above / below), below)
    return variance, freedom


def ratio(above: Floats, below: Floats, *, limits: tuple[float, float] = NO_LIMITS) -> Interval:
    """Ratio of two sums over prompts, each ``[1 + prompts]``, with its 95% interval (statistical)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return interval(above / below, below, limits=limits)


class Prompts:
    """The prompts of a trace. Texts of one prompt are dependent, so a prompt is left out as a whole.

    `count` is the number of prompts, `of_text` ``[texts]`` the number of each text's prompt.
    """

    def __init__(self, texts: Sequence[TextInfo]) -> None:
        names, self.of_text = np.unique([text.prompt or text.id for text in texts], return_inverse=True)
        self.count = len(names)
        self._lengths = [text.tokens for text in texts]

    def sum(self, per_text: NDArray[Any]) -> Floats:
        """Sums ``[1 + prompts]`` of a value of each text."""
        return left_out(np.bincount(self.of_text, per_text, self.count))

    def sum_rows(self, per_row: NDArray[Any]) -> Floats:
        """Sums ``[1 + prompts]`` of a value at each position of the concatenated texts."""
        return left_out(np.bincount(np.repeat(self.of_text, self._lengths), per_row, self.count))

    def folds(self, most: int) -> NDArray[np.int64]:
        """The part of each text, 0, 1, ..., at most so many: prompts in turn, whole."""
        return self.of_text % min(most, self.count)

    @property
    def chosen_on(self) -> int | None:
        """Tokens of the smaller sample that thresholds or trees are chosen on; None if both are all the texts."""
        lengths = np.array(self._lengths, dtype=np.int64)
        samples = [spread(lengths, self.folds(most)) for most in (HALVES, PARTS)]
        fewest = min(int(lengths[chosen].sum()) for chosen in samples)
        return fewest if fewest < lengths.sum() else None


def few_prompts(prompts: int) -> list[str]:
    """What a reader must know of intervals over so few prompts; nothing if there are enough."""
    if prompts == 1:
        return ["One prompt gives no 95% interval: the numbers are estimates of unknown error."]
    return [f"Only {prompts} prompts: the 95% intervals are rough. Measure {FEW} or more."] if prompts < FEW else []
