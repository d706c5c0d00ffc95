"""Planning a deployment: the best draft, rule and shape, what it would take to pay, and settings for engines."""

from spectheory.cost.iid import Needed, draft_needed
from spectheory.deployment.batches import BATCHES, BatchChoice, ChainCalls, batch_ranges, best_lengths, chain_calls
from spectheory.deployment.break_even import BreakEven, Distance, break_even, distances
from spectheory.deployment.candidates import Candidate, Draft
from spectheory.deployment.deployment import Deployment, plan
from spectheory.deployment.engines import (
    EngineSettings,
    deployable,
    engine_settings,
    serving_engines,
    without_method,
    without_stop,
)
from spectheory.deployment.load import Load, LoadAnswer, LoadPoint, under_load
from spectheory.deployment.lock_step import LockStepChoice, lock_step_lengths
from spectheory.deployment.mismatch import other_machine
from spectheory.deployment.ranking import Ranking, check_comparable, fastest_tree
from spectheory.deployment.stale_draft import Staleness, TrainingStep, staleness

__all__ = [
    "BATCHES",
    "BatchChoice",
    "BreakEven",
    "Candidate",
    "ChainCalls",
    "Deployment",
    "Distance",
    "Draft",
    "EngineSettings",
    "Load",
    "LoadAnswer",
    "LoadPoint",
    "LockStepChoice",
    "Needed",
    "Ranking",
    "Staleness",
    "TrainingStep",
    "batch_ranges",
    "best_lengths",
    "break_even",
    "chain_calls",
    "check_comparable",
    "deployable",
    "distances",
    "draft_needed",
    "engine_settings",
    "fastest_tree",
    "lock_step_lengths",
    "other_machine",
    "plan",
    "serving_engines",
    "staleness",
    "under_load",
    "without_method",
    "without_stop",
]
