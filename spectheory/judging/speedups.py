"""Speed-ups of two runs: tokens per call by the passes of a call, where these were timed alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.cost import CostModel, LatencyTable
from spectheory.drafting import Chain
from spectheory.intervals import Interval, weakest
from spectheory.judging.difference import Speedups, variance
from spectheory.judging.runs import Run, Stated
from spectheory.prediction.over_prompts import deviation, reach

Floats = NDArray[np.float64]
_TIMED = {
    "hardware": "machine",
    "batch": "batch",
    "context": "cached tokens",
    "target": "target",
}
"""What two timings must share: their plain steps are the unit of both speed-ups."""


def speedups_of_costs(one: Run, other: Run, first: CostModel, second: CostModel) -> Speedups:
    r"""Both speed-ups, each with its own costs (C2), and their ratio (95% over prompts and times together).

    .. math:: \frac{S_B}{S_A} = \frac{\tau_B}{\tau_A} \cdot \frac{r_A}{r_B}

    with :math:`r` the time of a call in plain steps of the same timing. Prompts that both runs share, and times of one
    table, enter the errors of the ratio once.
    """
    clustering = np.maximum(one.clustering, other.clustering)

    def gained(cost: CostModel, run: Run) -> tuple[float, Floats, Interval]:
        gain, times = math.log(_gain(cost, run)), _moved(cost, run)
        error = math.sqrt(float(run.variance(clustering)[0] / run.shares[0] ** 2 + times @ times))
        return gain, times, _around(gain, error, run.freedom)

    (gain, times, speedup), (its_gain, its_times, its_speedup) = gained(first, one), gained(second, other)
    refused = _timed_otherwise(_timed(first), _timed(second), (one.name, other.name))
    if refused:
        return Speedups(speedup, its_speedup, None, refused)
    moved = its_times - times if first == second else np.concatenate([times, its_times])
    error = math.sqrt(float(variance(one, other, (one.shares, other.shares))[0] + moved @ moved))
    return Speedups(speedup, its_speedup, _around(its_gain - gain, error, min(one.freedom, other.freedom)))


def stated_speedups(one: Stated, other: Stated, names: tuple[str, str]) -> Speedups | None:
    """Speed-ups as two answers state them; their errors are taken as independent. None where one states none."""
    first, second = one.speedup, other.speedup
    if first is None or second is None:
        return None
    if refused := _timed_otherwise(one.provenance, other.provenance, names):
        return Speedups(first, second, None, refused)
    kind = weakest(first.kind, second.kind)
    if kind != "statistical":
        ends = second.low / first.high, second.best / first.best, second.high / first.low
        return Speedups(first, second, Interval(*ends, kind))
    error = math.hypot(deviation(first.low, first.high), deviation(second.low, second.high))
    return Speedups(first, second, _around(math.log(second.best / first.best), error, math.inf))


def _timed_otherwise(one: Mapping[str, Any], other: Mapping[str, Any], names: tuple[str, str]) -> str:
    """In which respects two timings differ, as a sentence; empty where they do not, as far as they say."""
    apart = [
        f"{word}: {_short(one[key])} and {_short(other[key])}"
        for key, word in _TIMED.items()
        if key in one and key in other and _same(one[key]) != _same(other[key])
    ]
    if not apart:
        return ""
    return f"Speed-ups are not compared: {names[0]} and {names[1]} were timed differently ({'; '.join(apart)})."


def _gain(cost: CostModel, run: Run) -> float:
    """Tokens per call times plain steps per call."""
    survival = run.shares[1:]
    late = float(survival.sum() if cost.reads_accepted else survival[-1])
    return float(run.shares[0] * cost.speedup(Interval.exact(1.0), Chain(run.k), late).best)


def _moved(cost: CostModel, run: Run) -> Floats:
    """By how much one standard deviation of each independent error of the times moves the logarithm of the speed-up."""
    ends = [(_gain(low, run), _gain(high, run)) for low, high in cost.errors()]
    return np.array([math.log(high / low) / (2 * reach(math.inf)) for low, high in ends])


def _around(logarithm: float, error: float, freedom: float) -> Interval:
    """A value with its 95% interval, from its logarithm."""
    half = reach(freedom) * error
    low, best, high = (math.exp(logarithm + way * half) for way in (-1, 0, 1))
    return Interval(low, best, high, "statistical")


def _timed(cost: CostModel) -> dict[str, Any]:
    """What a table says of how it was measured."""
    return {**cost.provenance, "context": cost.context} if isinstance(cost, LatencyTable) else {}


def _same(value: Any) -> Any:
    """What of a description decides: of a model its weights and number type."""
    if isinstance(value, Mapping) and "fingerprint" in value:
        return value["fingerprint"], value.get("dtype")
    return value


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        named = [value[key] for key in ("name", "dtype") if key in value] or list(value.values())
        return ", ".join(map(str, named))
    return str(value)
