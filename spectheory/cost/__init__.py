"""Time: ratio (C1), measured latencies (C2), roofline and affine fit (C3), batches (C4), parallel (C5), experts (C7).

Shared contract: numbers are checked when a cost model is made or a function is called, and a ``SettingError`` names the
one that is out of range. A pass processes m tokens of each of B sequences ("batch"), each with L tokens in its cache
("context"). Values of a roofline or an affine fit have the kind ``exact`` as they are the model's own; as times of the
machine they are estimates.
"""

from spectheory.cost.accelerators import ACCELERATORS, Accelerator
from spectheory.cost.architecture import ModelShape
from spectheory.cost.batches import BatchPoint, batch_table, break_even_batch, knee_batch
from spectheory.cost.experts import Routing, distinct_experts
from spectheory.cost.iid import (
    best_chain_length,
    iid_operations,
    iid_speedup,
    iid_tokens_per_call,
    parallel_replicas,
    parallel_speedup,
    parallel_time,
    required_acceptance,
    required_ratio,
)
from spectheory.cost.model import FREE_DRAFTS, AffineCost, AffineTime, ConstantRatio, CostModel, PassCost
from spectheory.cost.roofline import Roofline, RooflineTime
from spectheory.cost.table import LATENCY_SCHEMA, LatencyTable, LoopedTable, LoopTime, TimedGroup

__all__ = [
    "ACCELERATORS",
    "FREE_DRAFTS",
    "LATENCY_SCHEMA",
    "Accelerator",
    "AffineCost",
    "AffineTime",
    "BatchPoint",
    "ConstantRatio",
    "CostModel",
    "LatencyTable",
    "LoopTime",
    "LoopedTable",
    "ModelShape",
    "PassCost",
    "Roofline",
    "RooflineTime",
    "Routing",
    "TimedGroup",
    "batch_table",
    "best_chain_length",
    "break_even_batch",
    "distinct_experts",
    "iid_operations",
    "iid_speedup",
    "iid_tokens_per_call",
    "knee_batch",
    "parallel_replicas",
    "parallel_speedup",
    "parallel_time",
    "required_acceptance",
    "required_ratio",
]
