"""Whether a latency table on disk may be used again."""

from __future__ import annotations

from dataclasses import asdict

from spectheory.cost import LatencyTable
from spectheory.distributions import Sampling
from spectheory.measure.loop_time import AS_MODELS_DO, LOOP_SAMPLING
from spectheory.measure.machine import hardware, versions
from spectheory.measure.pair import ModelPair


def differences(
    table: LatencyTable, pair: ModelPair, *, context: int, longest: int, sampling: Sampling
) -> tuple[str, ...]:
    """Names of what differs between a kept table and the one this run would measure, such as ``hardware``.

    `context` is the number of tokens in the cache, `longest` the largest pass in tokens. Empty if the table can be
    used.
    """
    described = {**pair.describe(), "hardware": hardware(), "versions": versions()}
    same = {name: table.provenance.get(name) == value for name, value in described.items()}
    same["context"] = table.context == context
    same["tokens of a pass"] = max(table.target) >= longest
    same["loop"] = table.loop is not None
    same["sampling"] = table.provenance.get(LOOP_SAMPLING, asdict(AS_MODELS_DO)) == asdict(sampling)
    return tuple(name for name, equal in same.items() if not equal)
