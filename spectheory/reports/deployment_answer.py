"""The answer of a plan, before it is written as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spectheory.deployment import BatchChoice, BreakEven, Candidate, Distance, EngineSettings, LockStepChoice, Ranking
from spectheory.prediction.adaptive import AdaptiveWorth
from spectheory.prediction.over_prompts import FEW
from spectheory.prediction.recorded_readings import RecordedReading


@dataclass(frozen=True)
class DeploymentAnswer:
    """A plan: the ranking, what its best setting needs to pay, its limits, and settings for engines.

    `batches` are the best lengths for the rule and draft of `chain`, the fastest chain, and `lock_step` those of
    lock-step batches; they are empty where the costs know one batch alone. `adaptive` says of each draft what adaptive
    lengths are worth. `recorded` are the readings of recorded lengths. Intervals are over so many `prompts` at least.
    """

    ranking: Ranking
    break_even: BreakEven
    distances: Sequence[Distance]
    chain: Candidate
    batches: Sequence[BatchChoice]
    engines: Sequence[EngineSettings]
    lock_step: Sequence[LockStepChoice] = ()
    notes: Sequence[str] = ()
    recorded: Sequence[RecordedReading] = ()
    adaptive: Sequence[AdaptiveWorth] = ()
    prompts: int = FEW
