"""What was decoded and measured at one temperature, and the sums that its comparisons rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectheory.cost import LatencyTable
from spectheory.measure.validation.expected import calls_of
from spectheory.measure.validation.resampled import Resampled
from spectheory.measure.validation.runs import Round, Run
from spectheory.measure.validation.settings import Setting
from spectheory.measure.validation.times import Timed, timed
from spectheory.trace import Trace
from spectheory.verification import PathRule

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Evidence:
    """What was decoded and measured at one temperature.

    Attributes
    ----------
    settings : tuple of Setting
        What is validated.
    prompts : tuple of str
        Names of the prompts.
    rounds : sequence of Round
        What was counted, one per prompt.
    trace : Trace
        Other texts of the same prompts: what is known beforehand.
    table : LatencyTable
        Seconds of passes.
    resampled : Resampled
        Prompts drawn again.
    """

    settings: tuple[Setting, ...]
    prompts: tuple[str, ...]
    rounds: Sequence[Round]
    trace: Trace
    table: LatencyTable
    resampled: Resampled

    def runs(self, setting: Setting) -> list[Run]:
        """The runs of a setting, one per prompt."""
        return [one[setting.name] for one in self.rounds]

    def timed(self, setting: Setting) -> Timed:
        """Their sums."""
        return timed(self.runs(setting), self.resampled)

    def of_trace(self, setting: Setting, rule: PathRule) -> tuple[Floats, Floats]:
        """Tokens per call by the trace, and the share of calls after a full acceptance."""
        calls = calls_of(rule, setting.drafts, self.trace.columns, self.trace.lengths)
        place = {name: number for number, name in enumerate(self.prompts)}
        rows = np.array([place[text.prompt] for text in self.trace.texts])
        tokens, expected, full = (
            self.resampled.sum(np.bincount(rows, values, len(place)).astype(float))
            for values in (self.trace.lengths, calls.expected, calls.full)
        )
        return tokens / expected, full / expected
