"""Speed-ups over plain decoding, from what was decoded, with intervals over prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.measure.validation.evidence import Evidence
from spectheory.measure.validation.settings import PLAINLY, Setting
from spectheory.measure.validation.times import Timed
from spectheory.prediction import predict

Floats = NDArray[np.float64]
MOST_LOST = 0.05
"""The pick may lose so much of the best's speed-up."""


class Measured:
    """Speed-ups over plain decoding of settings that have decoded the same prompts once or several times."""

    def __init__(self, decoded: Sequence[Evidence]) -> None:
        self.first, self.settings = decoded[0], decoded[0].settings
        self._timed = {
            setting: _added([evidence.timed(setting) for evidence in decoded]) for setting in (PLAINLY, *self.settings)
        }

    def speedup(self, setting: Setting) -> Floats:
        """Tokens per second of decoding over those of plain decoding, then without each of the prompts."""
        here, plain = self._timed[setting], self._timed[PLAINLY]
        return here.tokens * plain.seconds / (here.seconds * plain.tokens)

    def with_tokens_of_trace(self, setting: Setting) -> Floats:
        """The same from tokens per call of the trace and measured time per call.

        It varies less, and favours the pick, which was chosen on that trace.
        """
        here, plain = self._timed[setting], self._timed[PLAINLY]
        known = 1.0 if setting == PLAINLY else self.first.of_trace(setting).tokens_per_call
        return known * (plain.seconds * here.calls / (here.seconds * plain.calls))

    def against_best(self, speedup: Callable[[Setting], Floats], pick: Setting) -> dict[str, Any]:
        """The setting of the largest speed-up, and the pick's over it, with prompts left out on both sides together."""
        best = max((PLAINLY, *self.settings), key=lambda setting: float(speedup(setting)[0]))
        ratio = self.first.interval(speedup(pick) / speedup(best))
        return {"best": best.name, "pick_over_best": ratio.as_dict(), "within": ratio.best >= 1 - MOST_LOST}

    @property
    def machine(self) -> float:
        """A plain step while decoding over that of the latency table: 1 if the machine was as quiet."""
        plain = self._timed[PLAINLY]
        return float(plain.verifying[0] / plain.calls[0] / self.first.table.target_step().best)

    def record(self, setting: Setting) -> dict[str, Any]:
        """What is known of a setting: measured in both ways, and predicted as by the plan."""
        here, plain, interval = self._timed[setting], self._timed[PLAINLY], self.first.interval
        call = here.per_call(plain.verifying / plain.calls)
        found = {
            "name": setting.name,
            "tokens": int(here.tokens[0]),
            "measured": interval(self.speedup(setting)).as_dict(),
            "tokens_per_call": float(here.tokens[0] / here.calls[0]),
            "plain_steps_per_call": {part: float(times[0]) for part, times in vars(call).items()},
        }
        if setting == PLAINLY:
            return found
        looped = self.first.table.looped  # as plan reads it
        predicted = predict(self.first.trace, setting.path_rule, setting.drafts, looped).speedup
        return {
            **found,
            "with_tokens_of_trace": interval(self.with_tokens_of_trace(setting)).as_dict(),
            "predicted": predicted.as_dict() if predicted else None,
        }


def _added(parts: Sequence[Timed]) -> Timed:
    return Timed(*(sum(getattr(part, one.name) for part in parts) for one in fields(Timed)))
