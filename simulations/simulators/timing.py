"""Time per race (R1, R2), and the plain numpy race that is timed beside the kernels.

``race-timing``: a trial is a timed repetition of ``races`` races of one ``kernel``, ``lazy``, ``dense``, ``numpy`` or
``poisson``, on the pair that ``vocabulary``, ``noise`` and ``worst_ratio`` make (:func:`language_pair`), ranks
counted up to ``max_rank``. Its samples are thread CPU time: ``nanoseconds`` of a race, without the tables of a pair,
and ``call``, nanoseconds of a call with a single race: checks, tables, race. Times differ from run to run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import softmax

from simulations.counts import Tally
from simulations.draws import Counts, Floats, Words
from simulations.experiments.tasks import simulator
from simulations.kernels.races import dense_race, enter_race, lazy_race, poisson_race
from spectheory.errors import SettingError

SPREAD = 3.0
"""Standard deviation of the logits of a target."""
STARVED = 0.01
"""Share of the target whose tokens the draft all but forgot."""

Pair = tuple[Floats, Floats]


def language_pair(vocabulary: int, noise: float, worst_ratio: float | None = None) -> Pair:
    """Softmax of normal logits and of the same with noise; tokens of 1% of the target's mass have the `worst_ratio`."""
    rng = np.random.default_rng(vocabulary)
    logits = SPREAD * rng.standard_normal(vocabulary)
    p, q = (softmax(row) for row in (logits, logits + noise * rng.standard_normal(vocabulary)))
    if worst_ratio is not None:
        order = rng.permutation(vocabulary)
        forgotten = order[np.cumsum(p[order]) <= STARVED]
        q[forgotten] = p[forgotten] / worst_ratio
        q /= q.sum()
    return p, q


def numpy_race(
    target: Any, draft: Any, *, trials: int, state: Words, max_rank: int = 1, by_output: bool = False
) -> Counts:
    """Dense races in plain numpy, counted as :func:`simulations.kernels.races.dense_race` does (A2, R2)."""
    race = enter_race(target, draft, trials=trials, max_rank=max_rank, state=state, by_output=by_output)
    p, q, _, counts = race
    rng = np.random.default_rng(state)
    clocks, arrivals = np.empty((2, p.size))  # fresh pages would cost more than the race
    with np.errstate(divide="ignore", over="ignore"):
        for _ in range(trials):
            rng.standard_exponential(out=clocks)
            output = int(np.argmin(np.divide(clocks, p, out=arrivals)))
            np.divide(clocks, q, out=arrivals)
            before = int(np.count_nonzero(arrivals < arrivals[output]))
            rank = min(before, max_rank) + 1 if q[output] > 0 else 0
            counts[output if by_output else 0, rank] += 1
    return counts if by_output else counts[0]


KERNELS: dict[str, Callable[..., Counts]] = {
    "lazy": lazy_race,
    "dense": dense_race,
    "numpy": numpy_race,
    "poisson": poisson_race,
}
"""What can be timed."""


@simulator("race-numpy", version="1")
def race_numpy(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A race with a clock for every token, in numpy (A2, R2)."""
    given = {"trials": trials, "state": state, "max_rank": parameters["max_rank"]}
    counts = numpy_race(parameters["target"], parameters["draft"], **given, by_output=True)
    return Tally.of(trials, counts={"rank": counts.sum(axis=0), "output": counts.sum(axis=1)})


@simulator("race-timing", version="1")
def race_timing(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A timed repetition of many races."""
    kernel = KERNELS.get(parameters["kernel"])
    if kernel is None:
        raise SettingError(
            f"the kernel is {parameters['kernel']!r}", limit=f"there are {', '.join(KERNELS)}", remedy="name one"
        )
    pair = language_pair(parameters["vocabulary"], parameters["noise"], parameters.get("worst_ratio"))
    races, max_rank = parameters["races"], parameters["max_rank"]

    def timed(number: int) -> int:
        started = time.thread_time_ns()
        kernel(*pair, trials=number, state=state, max_rank=max_rank)
        return time.thread_time_ns() - started

    timed(1), timed(1 + races)
    calls = [timed(1) for _ in range(trials)]
    many = [timed(1 + races) for _ in range(trials)]
    per_race = [(whole - one) / races for whole, one in zip(many, calls, strict=True)]
    return Tally.of(trials, samples={"nanoseconds": per_race, "call": [float(one) for one in calls]})
