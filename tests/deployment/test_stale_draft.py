"""A draft by training step: the planted line is read back, the period is the least of all, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spectheory.cost import ACCELERATORS, ConstantRatio, CostModel, ModelShape, Roofline
from spectheory.deployment import Draft
from spectheory.deployment.stale_draft import RETRAINING, staleness
from spectheory.errors import SettingError
from spectheory.reports.stale_draft import training_report
from spectheory.trace import Trace
from tests.commands import answer, refused
from tests.made_up import each

C = 0.25


def of_acceptance(share: float) -> Trace:
    """A trace on which every draft of k = 1 is accepted with this probability: p/q is the same at every token."""
    return Trace.from_log_probabilities([([-1.0] * 400, [-1.0 + math.log(share)] * 400)] * 2)


def draft_of(step: int, time: float) -> Draft:
    """A draft whose time per token is `time` at k = 1: (1 + c) / (1 + acceptance)."""
    return Draft(f"step{step}", of_acceptance((1 + C) / time - 1), ConstantRatio(C))


def test_a_planted_line() -> None:
    """Time per token grows by 5e-4 a step from .8. A text's end adds at most a quarter of a call to about 250, which is
    below 1/800 of each value and, of values that differ by .1, below 2% of the slope.
    """
    aged = staleness([draft_of(step, 0.8 + 5e-4 * step) for step in (200, 0, 100)], k_max=1)
    assert [one.step for one in aged.steps] == [0, 100, 200]
    assert [1 / one.best.speedup.best for one in aged.steps if one.best.speedup] == pytest.approx(
        [0.8, 0.85, 0.9], rel=1 / 800
    )
    assert aged.slope.best == pytest.approx(5e-4, rel=0.02)
    assert aged.pays_until == pytest.approx(400, rel=0.02)


def test_the_period_is_the_least_of_all() -> None:
    """Against the sum over the steps of a period, where step j after training costs j times the slope more."""
    aged = staleness([draft_of(step, 0.8 + 5e-4 * step) for step in (0, 100)], k_max=1)
    tried = np.arange(1, 400)
    for cost, period in aged.periods:
        more = cost / tried + aged.slope.best * (tried - 1) / 2
        assert abs(tried[more.argmin()] - period) <= 1
        assert more[min(round(2 * period), 398)] > more.min(), "another period costs more: the check can fail"
    assert [cost for cost, _ in aged.periods] == list(RETRAINING)


def test_training_that_never_pays_is_left_out() -> None:
    """Time per token grows by 1e-3 a step from .9, so that plain decoding is as fast after 100 steps. Against the mean
    time of the best period, tried one by one; control: the costs that are left out take more than plain decoding.
    """
    aged = staleness([draft_of(step, 0.9 + 1e-3 * step) for step in (0, 50)], k_max=1)
    tried = np.arange(1, 2000)
    least = [(0.9 + cost / tried + aged.slope.best * tried / 2).min() for cost in RETRAINING]
    assert [cost for cost, _ in aged.periods] == [
        cost for cost, time in zip(RETRAINING, least, strict=True) if time < 1
    ]
    assert len(aged.periods) == 2


def test_a_draft_that_stays_good() -> None:
    aged = staleness([draft_of(0, 0.85), draft_of(100, 0.8)], k_max=1)
    assert (aged.pays_until, aged.periods) == (None, ())
    assert "no reason to train the draft again" in training_report(aged).headline


def test_rounding_is_no_growth() -> None:
    """One trace at every step: sums of equal times differ by their rounding. Control: a growth of 1e-9 is seen."""
    grows = []
    for more in (0.0, 1e-9):
        steps = (
            replace(uneven(0, 0.3, ConstantRatio(C + more * step)), name=f"step{step}") for step in range(0, 900, 100)
        )
        grows.append(staleness(steps, k_max=4))
    assert [bool(aged.periods or aged.pays_until) for aged in grows] == [False, True]


def test_a_draft_that_never_paid() -> None:
    aged = staleness([draft_of(0, 1.05), draft_of(100, 1.1)], k_max=1)
    assert aged.periods == ()
    assert "plain decoding is faster from the first step, 0, on" in training_report(aged).headline


def uneven(step: int, off: float, cost: CostModel) -> Draft:
    """Ten texts whose acceptances differ a little."""
    rows = np.random.default_rng(step).normal(off, 0.05, (10, 60))
    return Draft(f"step{step}", Trace.from_log_probabilities([([-1.0] * 60, -1 - abs(row)) for row in rows]), cost)


def test_an_error_that_all_steps_share() -> None:
    """A roofline's stated error moves the times of all steps alike: it hides no growth. Control: costs that differ."""
    small = ModelShape.dense(16, 2048, 8192, heads=32, kv_heads=8, head_dim=64, vocabulary=128256, tied=True)
    large = ModelShape.dense(32, 4096, 14336, heads=32, kv_heads=8, head_dim=128, vocabulary=128256)
    cost = Roofline(large, small, ACCELERATORS["H100-SXM"], context=1024)
    alike = staleness([uneven(step, 0.2 + 0.001 * step, cost) for step in (0, 50)], k_max=4)
    apart = staleness([uneven(0, 0.2, cost), uneven(50, 0.25, replace(cost, context=1025))], k_max=4)
    assert apart.slope.low < 0 < alike.slope.low
    assert "not sure" in training_report(apart).headline


def test_a_growth_below_0_may_be_chance() -> None:
    aged = staleness([uneven(0, 0.3, ConstantRatio(C)), uneven(100, 0.295, ConstantRatio(C))], k_max=4)
    assert aged.slope.best < 0 < aged.slope.high
    assert "not sure" in training_report(aged).headline


def test_a_draft_that_is_copied() -> None:
    """How often it is short differs by step: the same k is still found."""
    drafts = []
    for step, seed in ((0, 1), (100, 2)):
        matched = np.random.default_rng(seed).integers(0, 5, 800)
        copied = {"lookup_match": matched, "lookup_drafted": matched + seed}
        given = Trace(of_acceptance(0.5).columns | copied, of_acceptance(0.5).texts)
        drafts.append(Draft(f"step{step}", given, ConstantRatio(C)))
    aged = staleness(drafts, rules="lookup", k_max=4)
    assert [one.unchanged.shape.nodes for one in aged.steps] == [aged.steps[0].best.shape.nodes] * 2


@each(
    "names, words",
    [
        (["step0"], "drafts are named step0: needs two training steps or more, each once"),
        (["step0", "step0"], "each once"),
        (["step0", "late"], "use names as step0 and step100"),
    ],
)
def test_what_are_no_steps(names: list[str], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        staleness([replace(draft_of(0, 0.8), name=name) for name in names])


def test_one_sampling_and_any_target() -> None:
    """Checkpoints of a target are compared; texts drawn in another way are not."""
    one, two = draft_of(0, 0.8), draft_of(100, 0.85)

    def with_facts(draft: Draft, target: str, temperature: float) -> Draft:
        facts = {"target": {"name": target}, "settings": {"sampling": {"temperature": temperature}}}
        return replace(draft, trace=Trace(draft.trace.columns, draft.trace.texts, facts))

    assert staleness([with_facts(one, "a", 1.0), with_facts(two, "b", 1.0)], k_max=1).steps
    with pytest.raises(SettingError, match="step0 and step100 differ in sampling"):
        staleness([with_facts(one, "a", 1.0), with_facts(two, "b", 0.5)], k_max=1)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for step in (0, 100):
        of_acceptance(0.8 - step / 1000).write(tmp_path / f"{step}.parquet")
    traces = [word for step in (0, 100) for word in ("--trace", f"step{step}={tmp_path / f'{step}.parquet'}")]
    planned = answer(capsys, "plan", *traces, "--c", "0.1", "--k-max", "2")
    assert [one["step"] for one in planned["steps"]] == [0, 100]
    assert planned["periods"][0][0] == RETRAINING[0]
    line = refused(["plan", *traces, "--c", "0.1", "--stop", "token<0.4"], capsys)
    assert "--stop is given with training steps: they are compared by chains of a fixed length;" in line
