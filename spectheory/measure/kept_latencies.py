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
    """What a table does not share with a run that needs it; nothing if it is the one the run would measure.

    Parameters
    ----------
    table : LatencyTable
        As it was kept.
    pair : ModelPair
        The models of the run, on this machine.
    context : int
        Tokens in the cache.
    longest : int
        Most tokens of a pass.
    sampling : Sampling
        How the decoding loop samples.

    Returns
    -------
    tuple of str
        Names of what differs, such as ``hardware``.
    """
    described = {**pair.describe(), "hardware": hardware(), "versions": versions()}
    same = {name: table.provenance.get(name) == value for name, value in described.items()}
    same["context"] = table.context == context
    same["tokens of a pass"] = max(table.target) >= longest
    same["loop"] = table.loop is not None
    same["sampling"] = table.provenance.get(LOOP_SAMPLING, asdict(AS_MODELS_DO)) == asdict(sampling)
    return tuple(name for name, equal in same.items() if not equal)
