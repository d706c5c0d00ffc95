"""Bootstrap over prompts: sums per prompt are drawn again, nothing else is worked out twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spectheory.intervals import CONFIDENCE, Interval
from spectheory.trace import TextInfo

Floats = NDArray[np.float64]
_BLOCK = 1 << 22
"""Weights held at a time."""


@dataclass
class PromptSums:
    """Named sums over the texts of each prompt; ratios of them become intervals.

    The texts of one prompt are dependent, so a prompt is drawn whole.

    Parameters
    ----------
    texts : sequence of TextInfo
        Whose prompts are drawn.
    resamples : int
        Bootstrap resamples.
    seed : int
        Seed of the draws.
    """

    texts: Sequence[TextInfo]
    resamples: int = 1000
    seed: int = 0
    _sums: dict[str, Floats] = field(default_factory=dict)
    _drawn: dict[str, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _, first, self.prompt_of_text = np.unique(
            [text.prompt or text.id for text in self.texts], return_index=True, return_inverse=True
        )
        self.prompts = len(first)

    def add(self, name: str, per_text: Floats) -> None:
        """Add a quantity by its value (or sum) on each text."""
        self._sums[name] = np.bincount(self.prompt_of_text, per_text, self.prompts).astype(float)

    def add_rows(self, name: str, per_row: Floats) -> None:
        """Add a quantity by its value at each position of the concatenated texts."""
        lengths = [text.tokens for text in self.texts]
        text_of_row = np.repeat(np.arange(len(lengths)), lengths)
        self.add(name, np.bincount(text_of_row, per_row, len(lengths)).astype(float))

    def has(self, name: str) -> bool:
        """Whether a quantity of this name was added."""
        return name in self._sums

    def total(self, name: str) -> float:
        """Sum over all prompts."""
        return float(self._sums[name].sum())

    def draw(self) -> None:
        """Draw the resamples: every sum added so far, one matrix product."""
        rng = np.random.default_rng(self.seed)
        table = np.stack(list(self._sums.values()), axis=1)
        share = np.full(self.prompts, 1 / self.prompts)
        block = max(1, _BLOCK // self.prompts)
        drawn = [
            rng.multinomial(self.prompts, share, size=min(block, self.resamples - start)).astype(float) @ table
            for start in range(0, self.resamples, block)
        ]
        self._drawn = dict(zip(self._sums, np.concatenate(drawn).T, strict=True))

    def ratio(self, above: str, below: str, *, limits: tuple[float, float]) -> Interval:
        """Ratio of two totals with its percentile interval (statistical, 95%).

        With a single prompt, or resamples that all miss what is counted, the interval is what is certain, `limits`.
        """
        best = self.total(above) / self.total(below)
        below_drawn = self._drawn[below]
        if self.prompts == 1 or not np.any(below_drawn > 0):
            return Interval(min(limits[0], best), best, max(limits[1], best), "bound")
        values = (self._drawn[above] / np.where(below_drawn > 0, below_drawn, np.nan))[below_drawn > 0]
        low, high = np.quantile(values, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        return Interval(min(float(low), best), best, max(float(high), best), "statistical")
