"""Simulation as evidence: what compiled kernels count, against what statements say of it, at a stated alarm.

What simulates in :mod:`simulations.simulators` calls no closed form; what statements say of the tallies stands beside
it. The compiled part is imported when a check runs: the ledger loads without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from proofs_check.evidence.entries import Control, Evidence
from proofs_check.statement.findings import Effort, Finding
from simulations.counts import Mean, Tally
from simulations.experiments.tasks import Task, registered, task
from simulations.models.families import FAMILIES
from simulations.verdicts.predictions import Comparison, Predicted, Side, compare, predictions
from spectheory import kl_divergence
from spectheory.errors import SettingError

Parameters = Mapping[str, Any]
Setting = tuple[str, Parameters]
"""A registered simulator and what it is given."""

Reading = Callable[[str, Parameters], Iterable[Predicted]]
"""What is said of a setting's tally: kind and parameters to numbers."""

TRIALS = (200_000, 2_000_000)
"""Trials of a setting, by default and deep."""

ALARM = 1e-9
"""Probability that right numbers are called wrong, over all comparisons of one piece of evidence: a thousand pieces
share the 1e-6 of the whole."""


def stated(*statements: str, kind: str = "", **other: Any) -> Reading:
    """What these statements say of a setting; as if it were of another `kind` or had other parameters, if given."""

    def read(asked: str, parameters: Parameters) -> list[Predicted]:
        changed = {name: value(parameters[name]) if callable(value) else value for name, value in other.items()}
        said = predictions(kind or asked, {**parameters, **changed})
        return [each for each in said if each.statement in statements]

    return read


def instead(said: Reading, value: Callable[[Parameters, Any], Any]) -> Reading:
    """The same quantities with another value: a function of the parameters and the value said."""
    return lambda kind, parameters: [
        replace(each, value=float(value(parameters, each.value))) for each in said(kind, parameters)
    ]


def simulated(
    says: str,
    settings: Sequence[Setting],
    said: Reading,
    *,
    wrong: tuple[str, Reading],
    trials: tuple[int, int] = TRIALS,
) -> Evidence:
    """Kernels at these settings against what is said of their tallies, and the same tallies against wrong numbers.

    Of a refuted entry `said` is the false statement, and `wrong` its true neighbour.

    says: what is simulated.
    settings: names of simulators, and their parameters.
    said: the statement's numbers, as by :func:`stated`.
    wrong: the wrong numbers in words, and the same for them.
    trials: of a setting, by default and deep; fixed beforehand, so that the verdict holds.

    Examples
    --------
    >>> half = {"target": [0.5, 0.5], "draft": [0.75, 0.25], "max_rank": 2}
    >>> race = simulated("ranks", [("poisson", half)], stated("R1"), wrong=("R2", stated("R2", kind="race")))
    >>> race.check(Effort()).status, race.control.check(Effort()).status
    ('held', 'refuted')
    """

    def check(reading: Reading, effort: Effort) -> Finding:
        return _finding(_compared(settings, reading, effort, effort.pick(*trials)), effort.pick(*trials))

    control = Control(wrong[0], lambda effort: check(wrong[1], effort))
    made = f"{trials[0]:,} trials" + (f" in each of {len(settings)} settings" if len(settings) > 1 else "")
    return Evidence("simulation", f"{says}; {made}", lambda effort: check(said, effort), control)


Compared = tuple[Setting, Comparison]


def _compared(settings: Sequence[Setting], reading: Reading, effort: Effort, trials: int) -> list[Compared]:
    """Every number said of every setting beside what was counted; the alarm is shared equally."""
    import simulations.simulators  # noqa: F401  registers the kernels; it needs numba

    said = [(setting, tuple(reading(*setting))) for setting in settings]
    number = sum(len(numbers) for _, numbers in said)
    if not all(numbers for _, numbers in said):
        unsaid = next(setting for setting, numbers in said if not numbers)
        raise SettingError(
            f"nothing is said of {unsaid[0]} with {sorted(unsaid[1])}",
            limit="needs a number",
            remedy="name a statement",
        )
    return [
        (setting, each)
        for setting, numbers in said
        for each in compare(
            _tally(task(*setting, seed=effort.seed, trials=trials)), numbers, ALARM * len(numbers) / number
        )
    ]


@lru_cache(maxsize=64)
def _tally(asked: Task) -> Tally:
    """Kept, as a check and its control read the same tallies."""
    from simulations.experiments.collect import batch_stream

    tally: Tally = registered(asked.kind).run(asked.parameters, asked.trials, batch_stream(asked, 0))
    return tally


def _finding(compared: list[Compared], trials: int) -> Finding:
    """The first number that disagrees; or that which is farthest off, of bounds that which is nearest."""
    for number, (setting, each) in enumerate(compared, start=1):
        if not each:
            return Finding("refuted", number, None, _place(setting, each), f"{_counted(each)}, false alarm {ALARM:.0e}")
    setting, each = max(compared, key=lambda pair: _closeness(pair[1]))
    return Finding("held", len(compared), None, f"{_place(setting, each)}: {_counted(each)}", _note(compared, trials))


def _closeness(each: Comparison) -> float:
    """How far a number is off, in standard errors; of bounds, minus the room that is left."""
    seen, (low, high) = each.agreement, each.agreement.predicted
    room = {"exact": 0.0, "upper bound": high - seen.observed, "lower bound": seen.observed - low}
    return abs(seen.z) or -room[each.predicted.side]


def _place(setting: Setting, each: Comparison) -> str:
    """The number and the setting in a line; large inputs by their size."""
    kind, parameters = setting
    return f"{each.predicted.says} of {kind}({', '.join(f'{name} = {_brief(v)}' for name, v in parameters.items())})"


def _brief(value: Any) -> str:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return str(value)
    nested = any(isinstance(item, Sequence) for item in value)
    return f"[{len(value)} rows]" if nested or len(value) > 8 else f"[{', '.join(f'{item:.6g}' for item in value)}]"


def _counted(each: Comparison) -> str:
    """What was counted, and what was said of it."""
    observed, seen, side = each.observed, each.agreement, each.predicted.side
    low, high = (f"{end:.6g}" for end in seen.predicted)
    value = {
        "exact": low if low == high else f"{low} to {high}",
        "upper bound": f"<= {high}",
        "lower bound": f">= {low}",
    }
    interval = f"95% from {observed.low:.6g} to {observed.high:.6g}"
    off = f", {seen.z:.1f} standard errors off" if seen.z else ""
    return f"{observed.best:.6g} ({interval}), said {value[side]}{off}"


def _note(compared: list[Compared], trials: int) -> str:
    """Trials, false alarms, and the smallest errors that would have been seen, in whichever direction is worse."""
    both = [(each.agreement.below, each.agreement.above) for _, each in compared]
    sizes = [max(finite) for pair in both if (finite := [error for error in pair if math.isfinite(error)])]
    ends = dict.fromkeys(f"{size:.2g}" for size in (min(sizes), max(sizes))) if sizes else ()
    seen = f"errors of {' to '.join(ends)} would be seen" if ends else "no error would be seen"
    hidden = f", in {len(both) - len(sizes)} of {len(both)} numbers none" if sizes and len(sizes) < len(both) else ""
    return f"{trials:,} trials each, false alarm {ALARM:.0e} in all; {seen}{hidden}"


def against_kl(side: Side) -> Reading:
    """That the entropy of simulated ranks lies on one side of KL, less the most that the estimate lacks in the mean."""

    def read(_: str, given: Parameters) -> Iterator[Predicted]:
        room = (given["max_rank"] + 1) / given["draws"]
        kl = float(kl_divergence(given["target"], given["draft"]))
        says, value = ("KL <= H(R)", kl - room) if side == "lower bound" else ("H(R) <= KL", kl)
        yield Predicted(says, "H", Mean("entropy"), value, side)

    return read


# Where kernels are simulated as evidence: pairs of pmfs, draft trees, families of random pmfs.


TURNED: Parameters = {"target": [0.4, 0.3, 0.2, 0.1], "draft": [0.1, 0.2, 0.3, 0.4]}
LACKING: Parameters = {"target": [0.4, 0.3, 0.2, 0.1], "draft": [0.25, 0.0, 0.6, 0.15]}
NEAR: Parameters = {"target": [0.35, 0.3, 0.2, 0.15], "draft": [0.3, 0.4, 0.1, 0.2]}
RARE: Parameters = {"target": [0.4, 0.35, 0.25], "draft": [4e-11, 0.6, 0.4 - 4e-11]}
"""Pairs: of opposite orders, with a token that the draft lacks, near each other, with a p/q of 1e10."""

OVER_ACCEPTING: tuple[Parameters, ...] = (
    {**TURNED, "accept": [1.0, 1.0, 0.8, 0.5]},
    {**LACKING, "accept": [1.0, 1.0, 0.5, 0.8]},
)
"""Pairs with rules that accept more than min(1, p/q)."""

FOREST: list[Setting] = [
    ("random-trees", {"family": family, "pmfs": 256, "tokens": 32, "capacities": [1, 8, 64]}) for family in FAMILIES
]
TREES = (10_000, 200_000)
"""Best trees of random pmfs, and how many."""

RANKED: list[Setting] = [
    ("tree", {"paths": paths, "rank_pmf": law})
    for paths in ([[1], [2], [1, 1], [1, 2], [1, 1, 1]], [[1], [2], [3]])
    for law in ([0.55, 0.25, 0.15, 0.05], [0.2, 0.5, 0.2, 0.1])
]
RACED: list[Setting] = [("raced-tree", {"paths": [[1], [2], [1, 1], [2, 1]], **TURNED, "max_rank": 2})]
"""Draft trees whose ranks are drawn from a law, and whose ranks are those of races."""


def at(kinds: Sequence[str], pairs: Sequence[Parameters], **more: Any) -> list[Setting]:
    """Every simulator at every pair, with the parameters that all share."""
    return [(kind, {**pair, **more}) for pair in pairs for kind in kinds]


STOPPED: list[Setting] = [
    (
        "stopped",
        {
            "target": [[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]],
            "draft": [[0.4, 0.3, 0.3], [0.6, 0.2, 0.2], [0.1, 0.1, 0.8]],
            "initial": [0.4, 0.3, 0.3],
            "length": 6,
            "k": 3,
            "stop": stop,
        },
    )
    for stop in ("token<0.25", "top<0.5", "entropy>1")
]
"""Chains of token verification that each stopping rule ends."""
