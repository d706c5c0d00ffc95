"""Sums over prompts and over prompts drawn again: whatever is worked out from them has an interval."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectheory.errors import SettingError
from spectheory.intervals import CONFIDENCE, Interval

Floats = NDArray[np.float64]


class Resampled:
    """Prompts drawn with replacement; all sums use the same draws, so that what prompts share cancels in ratios.

    Parameters
    ----------
    prompts : int
        How many there are.
    resamples, seed : int
        Draws and their seed.

    Raises
    ------
    SettingError
        If there are no draws.
    """

    def __init__(self, prompts: int, resamples: int = 1000, seed: int = 0) -> None:
        if resamples < 1:
            raise SettingError(f"resamples is {resamples}", limit="must be >= 1", remedy="1000 is a good number")
        drawn = np.random.default_rng(seed).multinomial(prompts, np.full(prompts, 1 / prompts), size=resamples)
        self.weights = np.concatenate([np.ones((1, prompts)), drawn])

    def sum(self, per_prompt: Floats) -> Floats:
        """Sums ``[1 + resamples]``, that over the prompts themselves first."""
        return np.asarray(self.weights @ per_prompt)

    @staticmethod
    def interval(values: Floats) -> Interval:
        """The first value with the percentile interval of the others (statistical, 95%)."""
        best = float(values[0])
        low, high = np.nanquantile(values[1:], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        return Interval(min(float(low), best), best, max(float(high), best), "statistical")
