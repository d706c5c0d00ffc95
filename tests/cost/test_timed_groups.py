"""Groups of rounds: errors of all times together, and how often a speed-up's interval holds under noise that is known.

Coverages are of simulated measurements of a machine whose quiet times are known. The false-alarm rate of each coverage
test is `FALSE_ALARM`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import astuple, replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom
from scipy.stats import t as student

from spectheory.answers.schema import json_schema
from spectheory.cost import LatencyTable, LoopTime, TimedGroup
from spectheory.cost.table import DISTURBED
from spectheory.drafting import Chain
from spectheory.errors import SettingError, TraceError
from spectheory.intervals import Interval
from spectheory.prediction.call_times import speedup_of_chain

Floats = NDArray[np.float64]
ROOT = Path(__file__).parents[2]
TARGET, DRAFT = {1: 1.0, 2: 1.1, 4: 1.2, 8: 1.4}, {1: 0.15, 2: 0.16, 4: 0.17}
LOOP = LoopTime(0.05, 0.1, 0.02, 0.01, 0.0)
PASSES = len(TARGET) + len(DRAFT)
GROUPS, ROUNDS, RUNS = 8, 5, 400
FALSE_ALARM = 1e-7
Noise = Callable[[np.random.Generator], Floats]
"""Logarithms of what passes take over their quiet times, ``[groups, rounds, passes]``."""


def group(factors: Floats, loop: float = 1.0, others: float = 0.0) -> TimedGroup:
    """A group whose passes take these factors of their quiet times, all plain steps first."""
    target, draft = factors[: len(TARGET)], factors[len(TARGET) :]
    return TimedGroup(
        {m: s * float(f) for (m, s), f in zip(TARGET.items(), target, strict=True)},
        {m: s * float(f) for (m, s), f in zip(DRAFT.items(), draft, strict=True)},
        LoopTime(*(loop * each for each in astuple(LOOP))),
        others=others,
    )


def gain(table: LatencyTable) -> Interval:
    """The speed-up of chains of 6 drafts on prompts that are all alike: the error is that of times alone."""
    tokens, calls = np.array([300.0, 200.0, 200.0, 200.0]), np.array([120.0, 80.0, 80.0, 80.0])
    return speedup_of_chain(tokens, calls, calls / 5, Chain(6), table, tuple(table.errors()))


# By hand


def test_means_and_intervals_by_hand() -> None:
    ratios = np.array([0.10, 0.12, 0.15])
    groups = [TimedGroup({1: unit}, {1: unit * r, 2: unit}) for unit, r in zip((1.0, 2.0, 4.0), ratios, strict=True)]
    table = LatencyTable.of(groups, 64)
    logs, plain = np.log(ratios), 2.0
    half = student.ppf(0.975, 2) * logs.std(ddof=1) / math.sqrt(3)
    expected = plain * np.exp(logs.mean() + np.array([-half, 0, half]))
    interval = table.draft[1]
    np.testing.assert_allclose([interval.low, interval.best, interval.high], expected)
    assert table.target[1].low == table.target[1].high == pytest.approx(plain), "the unit"
    assert table.draft[2].low == pytest.approx(plain), "what moves with the plain step has no error"
    wide = LatencyTable.of([replace(each, others=1.5) for each in groups], 64).draft[1]
    assert math.log(wide.high / wide.best) == pytest.approx(half * math.sqrt(3 + 1)), "sqrt(1 + 1/3) for sqrt(1/3)"


def test_errors_are_the_delta_method_with_all_covariances() -> None:
    """By the covariance of the logarithms between groups and a numerical gradient."""
    rng = np.random.default_rng(3)
    logs = rng.normal(0, 0.01, (GROUPS, PASSES)) + rng.normal(0, 0.02, (GROUPS, 1)) * np.arange(PASSES)
    table = LatencyTable.of([replace(group(each), loop=None) for each in np.exp(logs)], 64)

    def at(moved: Floats) -> float:
        """Logarithm of the speed-up where passes take so much longer than the means."""
        mean = np.exp(logs.mean(axis=0) + moved)
        return math.log(gain(LatencyTable.of([replace(group(mean), loop=None)], 64)).best)

    steps = 1e-6 * np.eye(PASSES)
    gradient = np.array([(at(step) - at(-step)) / 2e-6 for step in steps])
    expected = gradient @ np.cov(logs.T) @ gradient / GROUPS
    error = sum(math.log(gain(high).best / gain(low).best) ** 2 for low, high in table.errors())
    # Each pair lies Student's t on both sides of the mean.
    assert error == pytest.approx(4 * student.ppf(0.975, GROUPS - 1) ** 2 * expected, rel=1e-3)
    independent = replace(table, groups=())
    alone = sum(math.log(gain(high).best / gain(low).best) ** 2 for low, high in independent.errors())
    assert alone != pytest.approx(error, rel=0.3), "entries that are taken as independent give another error"


def test_the_loop_moves_with_its_group() -> None:
    groups = [group(np.full(PASSES, factor), loop=factor * loop) for factor, loop in ((1.0, 1.0), (2.0, 1.2))]
    table = LatencyTable.of(groups, 64)
    assert table.loop is not None
    plain = table.target[1].best
    np.testing.assert_allclose(astuple(table.loop), 1.1 * plain * np.array(astuple(LOOP)))
    (low, high), (back, forth) = table.looped.errors()
    assert gain(low).best < gain(table.looped).best < gain(high).best, "the first group's loop is shorter"
    assert gain(back).best > gain(table.looped).best > gain(forth).best
    assert gain(low).low == gain(low).high, "an end has no error of its own"


def test_a_disturbed_table_gives_every_group_alone() -> None:
    busy = [group(np.exp(np.full(PASSES, 0.0) + 0.1 * b * (np.arange(PASSES) > 3)), others=0.6) for b in range(4)]
    table = LatencyTable.of(busy, 64)
    assert table.disturbed
    assert table.others == pytest.approx(0.6)
    alone = [gain(one).best for one in table.when_disturbed()]  # type: ignore[arg-type]
    np.testing.assert_allclose(alone, [gain(LatencyTable.of([one], 64)).best for one in busy])
    quiet = LatencyTable.of([replace(one, others=DISTURBED) for one in busy], 64)
    assert (quiet.disturbed, list(quiet.when_disturbed())) == (False, [])
    assert LatencyTable.of([replace(one, others=None) for one in busy], 64).others is None


# Files


def test_groups_survive_their_file(tmp_path: Path) -> None:
    groups = [group(np.full(PASSES, 1 + b / 10), others=b or None) for b in range(3)]
    table = LatencyTable.of(groups, 64, {"made": "here"})
    table.write(tmp_path / "latency.json")
    assert LatencyTable.read(tmp_path / "latency.json") == table
    content = json.loads((tmp_path / "latency.json").read_text())
    jsonschema.validate(content, json_schema("latency"))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"target": {"1": 1.0}}, "differ in what they timed"),
        ({"target": {"1": -1.0}}, "the seconds of a pass is -1"),
        ({"rounds": 0}, "rounds of a group is 0"),
        ({"others": -1}, "others of a group is -1"),
        ({"loop": 7}, "is not a latency table"),
        ({"more": 7}, "is not a latency table"),
    ],
)
def test_damaged_groups_are_refused(change: dict[str, object], named: str, tmp_path: Path) -> None:
    file = tmp_path / "latency.json"
    LatencyTable.of([group(np.ones(PASSES))] * 3, 64).write(file)
    content = json.loads(file.read_text())
    content["groups"][1] |= change
    file.write_text(json.dumps(content))
    with pytest.raises(TraceError, match=named):
        LatencyTable.read(file)


def test_no_group_is_no_table() -> None:
    with pytest.raises(SettingError, match="there is no group of rounds"):
        LatencyTable.of([], 64)
    assert LatencyTable.of([group(np.ones(PASSES))], 64).draft[1].kind == "estimate", "one group knows no error"


# Coverage


def measured(logs: Floats) -> LatencyTable:
    """The table of these rounds, as they are measured: medians over a group's rounds of ratios to its plain steps."""
    plain = np.median(logs[:, :, :1], axis=1)
    return LatencyTable.of([*map(group, np.exp(plain + np.median(logs - logs[:, :, :1], axis=1)))], 64)


def in_one_stretch(logs: Floats) -> LatencyTable:
    """The control: all rounds as if they followed each other, every pass with its own interval, independent."""
    rounds = logs.reshape(-1, PASSES)
    ratios = np.exp(np.sort(rounds - rounds[:, :1], axis=0))
    rank = int(binom.ppf(0.025, len(rounds), 0.5))
    low, best, high = ratios[rank - 1], np.median(ratios, axis=0), ratios[-rank]
    entries = [Interval(*map(float, each), "statistical") for each in zip(low, best, high, strict=True)]
    target = {m: one * s for (m, s), one in zip(TARGET.items(), entries, strict=False)}
    draft = {m: one * s for (m, s), one in zip(DRAFT.items(), entries[len(TARGET) :], strict=True)}
    return LatencyTable(target, draft, 64)


def independent(rng: np.random.Generator) -> Floats:
    """Skewed noise of every pass, and now and then a delay."""
    noise = 0.05 * rng.gumbel(size=(GROUPS, ROUNDS, PASSES))
    return noise + 0.5 * (rng.random(noise.shape) < 0.03)


def drifting(rng: np.random.Generator) -> Floats:
    """All passes together grow and shrink slowly, by 10%, and the draft's half as much more, from group to group."""
    of_group = 0.1 * rng.normal(size=(GROUPS, 1, 1)) + 0.02 * rng.normal(size=(GROUPS, 1, PASSES))
    return of_group * np.where(np.arange(PASSES) < len(TARGET), 1.0, 1.5) + 0.02 * rng.normal(
        size=(GROUPS, ROUNDS, PASSES)
    )


def one_disturbed(rng: np.random.Generator) -> Floats:
    """In one of the groups the draft's passes take half as long again."""
    noise = 0.03 * rng.normal(size=(GROUPS, ROUNDS, PASSES))
    noise[rng.integers(GROUPS), :, len(TARGET) :] += math.log(1.5)
    return noise


def coverage(table_of: Callable[[Floats], LatencyTable], noise: Noise, seed: int) -> tuple[float, float]:
    """How often the interval holds the speed-up of quiet times, and how wide it is on average.

    Noise that all passes have alike, such as the median of a skewed one, cancels in a speed-up.
    """
    rng, inside, widths = np.random.default_rng(seed), 0, []
    for _ in range(RUNS):
        interval = gain(table_of(noise(rng)))
        inside += interval.low <= QUIET <= interval.high
        widths.append(interval.high / interval.low - 1)
    return inside / RUNS, float(np.mean(widths))


QUIET = gain(LatencyTable.of([group(np.ones(PASSES))] * 2, 64)).best
LEAST = float(binom.ppf(FALSE_ALARM, RUNS, 0.95)) / RUNS
"""Less is seen in one of 1 / `FALSE_ALARM` tests of an interval that holds in 95%; one that holds in 80% is seen."""


@pytest.mark.evidence
@pytest.mark.parametrize("noise", [independent, drifting, one_disturbed])
def test_intervals_hold(noise: Noise) -> None:
    covered, width = coverage(measured, noise, seed=11)
    assert covered >= LEAST
    assert width < 0.35


@pytest.mark.evidence
def test_the_control_fails_under_drift() -> None:
    """Rounds of one stretch say nothing of what differs between stretches: a later one has another middle."""

    def one_group(rng: np.random.Generator) -> Floats:
        """All rounds within one group of the drift."""
        drift = drifting(rng)[:1]
        return drift[:, :1] + 0.02 * rng.normal(size=(1, GROUPS * ROUNDS, PASSES))

    covered, _ = coverage(in_one_stretch, one_group, seed=12)
    assert covered < 0.6
    spread, _ = coverage(in_one_stretch, drifting, seed=13)
    assert spread < LEAST, "nor do rounds of all groups, taken as independent of each other"
    quiet, _ = coverage(in_one_stretch, independent, seed=14)
    assert quiet > spread, "without drift the control holds nearly: passes share the noise of their plain step"


def test_the_coverage_of_the_docs_is_that_of_the_result() -> None:
    inside = json.loads((ROOT / "benchmarks/results/latency_coverage.json").read_text())["inside"]["answer, all"]
    page = (ROOT / "docs/measuring_reference.md").read_text(encoding="utf-8")
    assert f"{inside['inside']} of {inside['of']} did (`benchmarks/results/latency_coverage.json`)" in page
