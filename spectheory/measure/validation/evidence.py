"""What was decoded and measured at one temperature, and the sums that its comparisons use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.cost import LatencyTable
from spectheory.intervals import Interval
from spectheory.measure.validation.runs import Round, Run, compare_runs
from spectheory.measure.validation.settings import Setting
from spectheory.measure.validation.times import Floats, Known, Timed, timed
from spectheory.prediction import predict
from spectheory.prediction.over_prompts import NO_LIMITS, interval, left_out
from spectheory.prediction.paths import calls_of_tree
from spectheory.prediction.shape_calls import calls_by_drafted, drafted, survival_of
from spectheory.trace import Trace

COARSE = ("bfloat16", "float16")
"""Precisions in which a cached and a teacher-forced pass often differ by more than the gap of a near-tie."""


@dataclass(frozen=True)
class Evidence:
    """What was decoded and measured at one temperature.

    `rounds` has one round per prompt; `trace` is of other texts of the same prompts, known before decoding; `table` has
    the seconds of passes.
    """

    settings: tuple[Setting, ...]
    prompts: tuple[str, ...]
    rounds: Sequence[Round]
    trace: Trace
    table: LatencyTable

    def runs(self, setting: Setting) -> list[Run]:
        """The runs of a setting, one per prompt."""
        return [one[setting.name] for one in self.rounds]

    def decides(self, setting: Setting) -> bool:
        """Whether a difference of counted and expected calls refutes the theorem or the decoder.

        Where nothing is random given the text the two must be equal, but in coarse precision a near-tie may round
        differently in the two passes. Prompt lookup always decides: what it copies depends only on the tokens.
        """
        known = self.trace.provenance
        coarse = any(known.get(who, {}).get("dtype") in COARSE for who in ("target", "draft"))
        greedy = known.get("settings", {}).get("sampling", {}).get("temperature") == 0
        return (
            not coarse or not setting.path_rule.uses_draft or not (greedy or compare_runs(self.runs(setting)).certain)
        )

    def timed(self, setting: Setting) -> Timed:
        """The sums over a setting's runs."""
        return timed(self.runs(setting))

    def predicted(self, setting: Setting, cost: LatencyTable) -> Interval:
        """The speed-up predicted from trace and costs, as in ``spectheory predict``."""
        found = predict(self.trace, setting.path_rule, setting.drafts, cost).speedup
        assert found is not None
        return found

    def of_trace(self, setting: Setting) -> Known:
        """What the trace predicts of the setting's calls."""
        rule, shape = setting.path_rule, setting.drafts
        survival = survival_of(rule, setting.shape or shape, self.trace.columns)
        calls = calls_of_tree(*survival, self.trace.lengths, variance=True)
        counts = calls_by_drafted(self.trace, rule, shape)
        expected = self._of_texts(calls.expected)
        return Known(
            drafted(rule, shape, counts),
            self._of_texts(self.trace.lengths) / expected,
            self._of_texts(calls.full) / expected,
            {shape.nodes + 1: np.ones_like(expected)}
            if counts is None
            else {copied + 1: self._of_texts(column) / expected for copied, column in enumerate(counts.T)},
        )

    def _of_texts(self, values: NDArray[Any]) -> Floats:
        """Sums over all prompts, and without each, of a value per text of the trace."""
        place = {name: number for number, name in enumerate(self.prompts)}
        rows = [place[text.prompt] for text in self.trace.texts]
        return left_out(np.bincount(rows, values, len(place)))

    def interval(
        self, values: Floats, *, limits: tuple[float, float] = NO_LIMITS, logarithmic: bool = True
    ) -> Interval:
        """The 95% interval over prompts of values computed on all of them and without each."""
        return interval(values, self._of_texts(self.trace.lengths), limits=limits, logarithmic=logarithmic)
