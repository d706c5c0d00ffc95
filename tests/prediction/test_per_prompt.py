"""Each prompt alike: means against the texts themselves, and the share of new prompts that the ranges hold."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from spectheory.cli import main
from spectheory.drafting import Chain
from spectheory.errors import SettingError
from spectheory.prediction import predict
from spectheory.prediction.per_prompt import HEAVY, Largest, per_prompt
from spectheory.prediction.recorded import recorded_rules
from spectheory.trace import TextInfo, Trace
from spectheory.verification import TokenVerification
from tests.prediction.test_recorded import walked


def of_lengths(lists: list[list[int]]) -> Trace:
    """A trace of accepted lengths, bonus included, a text each."""
    column = np.concatenate(lists)[:, None] - 1
    return Trace({"recorded_match": column}, tuple(TextInfo(str(i), len(each)) for i, each in enumerate(lists)))


def lists_of(rng: np.random.Generator, prompts: int, tokens: int = 30) -> list[list[int]]:
    """Texts whose acceptance rates differ much from prompt to prompt."""
    return [(1 + (rng.random(tokens) < rate)).tolist() for rate in rng.beta(4, 3, prompts)]


def test_the_mean_has_each_prompt_once() -> None:
    lists = [[1] * 4, [2] * 400, *lists_of(np.random.default_rng(1), 5)]
    trace = of_lengths(lists)
    (answer,) = per_prompt(trace, recorded_rules(trace)[0], [Chain(1)], new=3)
    per_call = [len(each) / walked([each], 1) for each in lists]
    assert answer.mean.best == pytest.approx(np.mean(per_call), rel=1e-12)
    assert (answer.mean.high - answer.mean.best) == pytest.approx(2.4469 * np.std(per_call, ddof=1) / 7**0.5, rel=1e-4)
    assert answer.new is not None
    reach = (answer.mean.high - answer.mean.best) * (7 * (1 / 7 + 1 / 3)) ** 0.5
    assert answer.new.high == pytest.approx(min(answer.new.best + reach, 2.0))
    pooled = predict(trace, recorded_rules(trace)[0], Chain(1)).tokens_per_call.best
    assert pooled == pytest.approx(sum(map(len, lists)) / walked(lists, 1))
    assert pooled > answer.mean.best + 0.1, "the long text decides the pooled number"


def test_ranges_of_new_prompts_hold_and_intervals_of_the_mean_do_not() -> None:
    """900 draws of 12 prompts and one new: 95% held, within 4.2 standard errors (alarms: 3e-5).

    The control: the confidence interval of the mean, which is no range of new prompts, holds far less often.
    """
    rng, hits, mean_held = np.random.default_rng(2), 0, 0
    trials = 900
    for _ in range(trials):
        *lists, further = lists_of(rng, 13)
        trace = of_lengths(lists)
        (answer,) = per_prompt(trace, recorded_rules(trace)[0], [Chain(1)], new=1)
        truth = len(further) / walked([further], 1)
        assert answer.new is not None
        hits += answer.new.low <= truth <= answer.new.high
        mean_held += answer.mean.low <= truth <= answer.mean.high
    assert abs(hits / trials - 0.95) < 4.2 * (0.95 * 0.05 / trials) ** 0.5
    assert mean_held / trials < 0.6


def test_one_prompt_says_nothing_of_new_ones() -> None:
    trace = Trace.from_log_probabilities([([-1.0, -0.5], [-1.0, -0.7])])
    with pytest.raises(SettingError, match="new prompts are asked for from 1 prompt"):
        list(per_prompt(trace, TokenVerification(), [Chain(1)], new=2))
    (answer,) = per_prompt(trace, TokenVerification(), [Chain(1)])
    assert (answer.mean.kind, answer.new) == ("estimate", None)


def test_a_heavy_tail() -> None:
    """One runaway among 200, and the controls: equal texts, few of them, and exponential lengths."""
    equal = [[1] * 10] * 199
    runaway = Largest.of_trace(of_lengths([*equal, [2] * 900]))
    assert (runaway.prompts, runaway.of, runaway.heavy) == (2, 200, True)
    assert runaway.share == pytest.approx(910 / 2890)
    assert not Largest.of_trace(of_lengths(equal)).heavy
    few = Largest.of_trace(of_lengths([[1] * 10] * 4))
    assert few.share > HEAVY
    assert not few.heavy
    lengths = np.random.default_rng(3).exponential(40, 400).astype(int) + 1
    assert not Largest.of_trace(of_lengths([[1] * n for n in lengths])).heavy


def test_the_command_gives_the_range_that_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of_lengths(lists_of(np.random.default_rng(4), 12)).write(tmp_path / "trace.parquet")
    assert main(["predict", str(tmp_path), "--new-prompts", "5", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    (row,) = content["new_prompts"]
    assert row["prompts"] == 5
    assert row["mean"] == content["recorded"][0]["over_requests"]
    assert row["new"]["low"] < row["mean"]["low"] < row["mean"]["high"] < row["new"]["high"]
    assert main(["predict", str(tmp_path), "--new-prompts", "5"]) == 0
    assert "mean of 5 new" in capsys.readouterr().out


def test_a_runaway_is_said_in_every_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the mean over requests beside the pooled number; the control has no runaway."""
    equal = [[1] * 10] * 99
    for lists, warned in (([*equal, [2] * 900], True), (equal, False)):
        of_lengths(lists).write(tmp_path / "trace.parquet")
        for command in ("predict", "plan"):
            assert main([command, str(tmp_path), "--c", "0.1"]) == 0
            said = " ".join(capsys.readouterr().out.split())
            assert ("The longest 1% of the requests, 1 of 100, hold 47.6% of the tokens" in said) == warned, said
            assert ("The mean over requests is 1.010" in said) == warned
    assert main(["predict", str(tmp_path), "--all"]) == 0
    assert "The longest 1% of the requests, 1 of 99, hold 1.0% of the tokens." in capsys.readouterr().out
