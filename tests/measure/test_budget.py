"""What latencies cost and when they are measured: groups of rounds, their schedule, and what a kill leaves."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spectheory.cli import main
from spectheory.cost import LatencyTable, TimedGroup
from spectheory.deployment import Draft
from spectheory.deployment import plan as deployment
from spectheory.distributions import Sampling
from spectheory.drafting import Chain
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.measure import ModelPair, Timing, differences, latency, measure_latency, runners
from spectheory.measure.decoders import Method, decode
from spectheory.measure.latency import BEFORE, FEWEST_GROUPS, kept_beside
from spectheory.measure.rounds import GROUPS, PLAIN, Budget, Pass, Rounds, share
from spectheory.prediction import plan
from spectheory.reports import deployment_report, prediction_report
from spectheory.reports.notes import QUIET, timing_notes
from spectheory.trace import Trace


@pytest.fixture(scope="module")
def tiny_table(tiny_pair: ModelPair) -> LatencyTable:
    """Of few passes, with the loop."""
    return measure_latency(tiny_pair, context=4, tokens=(1, 2), rounds=1, warm_up=0, loop=Sampling())


# The rounds of a group


def test_a_group_by_hand() -> None:
    """Medians of ratios to the plain step of the same round, and the width that their noise leaves."""
    rounds = Rounds()
    for plain, ratio in ((1.0, 0.2), (2.0, 0.25), (3.0, 0.4)):
        assert rounds.width() == math.inf, "two rounds do not show their noise"
        rounds.add({PLAIN: plain, ("draft", 1): plain * ratio, ("target", 4): plain * 1.5})
    assert rounds.medians() == {PLAIN: 2.0, ("draft", 1): 0.5, ("target", 4): 3.0}
    deviation = (0.325 - 0.225) / 0.25 / 1.349  # between the quartiles of a normal law
    of_median = math.sqrt(math.pi / 2 / 3) * deviation
    assert rounds.width() == pytest.approx(2 * 1.96 * of_median / math.sqrt(GROUPS), rel=1e-3)


def test_a_width_counts_by_the_share_of_a_call() -> None:
    """By hand: of a call that needs the pass on 4 tokens, the target takes 4 of 4.25 seconds at most."""
    seconds = {PLAIN: 1.0, ("draft", 1): 0.25, ("draft", 2): 0.3, ("draft", 4): 1.0, ("target", 4): 4.0}
    expected = {("target", 4): 4 / 4.25, ("draft", 1): 1.0, ("draft", 2): 1.0, ("draft", 4): 1 / 5}
    assert {key: share(key, seconds) for key in expected} == pytest.approx(expected)


def test_rounds_end_by_width_time_or_number(tiny_pair: ModelPair) -> None:
    def ended(budget: Budget, rounds: int = 4) -> LatencyTable:
        return measure_latency(tiny_pair, context=9, tokens=(1, 2, 8), rounds=rounds, budget=budget)

    soon = ended(Budget(width=1e3))
    assert {(group.stopped, group.rounds) for group in soon.groups} == {("width", 3)}
    number = ended(Budget(width=1e-9), rounds=2)
    assert {(group.stopped, group.rounds) for group in number.groups} == {("rounds", 2)}
    cut = ended(Budget(width=1e-9, seconds=1e-6))
    assert [(group.stopped, group.rounds) for group in cut.groups] == [("budget", 1)] * FEWEST_GROUPS
    ending = cut.provenance["rounds"]
    assert (ending["stopped"], ending["groups"], ending["rounds"]) == ("budget", FEWEST_GROUPS, FEWEST_GROUPS)
    assert ending["wanted"] == {"width": 1e-9, "seconds": 1e-6}
    assert set(ending["widths"]) == {"target 2", "target 8", "draft 1", "draft 2", "draft 8"}
    assert all(entry.low < entry.high for m, entry in cut.target.items() if m > 1), "4 groups have an interval"
    assert ending["seconds"] == pytest.approx(sum(group.seconds for group in cut.groups))


def test_a_group_has_weights_in_another_place_and_the_threads_of_the_first(
    tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    places, threads, before = [], [], {name: w.clone() for name, w in tiny_pair.target.network.named_parameters()}
    one_round = latency._round

    def listened(*args: Any) -> dict[Pass, float]:
        places.append(tuple(w.data_ptr() for w in tiny_pair.target.network.parameters()))
        threads.append(torch.get_num_threads())
        return one_round(*args)

    monkeypatch.setattr(latency, "_round", listened)
    timing = Timing(tiny_pair, 9, (1, 2), rounds=1, warm_up=0)
    timing.reach(0.0)
    now = torch.get_num_threads()
    torch.set_num_threads(now + 1)
    timing.reach(1.0)
    assert torch.get_num_threads() == now + 1
    torch.set_num_threads(now)
    assert set(threads) == {now}
    assert timing.table.provenance["hardware"]["threads"] == now
    assert len(set(places[:BEFORE])) > 1
    assert all(one != other for one, other in pairwise(places))
    for name, weights in tiny_pair.target.network.named_parameters():
        assert torch.equal(weights, before[name])


# When groups are measured


def timed(seconds: float = 1.0, others: float | None = 0.0, c: float = 0.1) -> TimedGroup:
    """A made-up group."""
    return TimedGroup({1: 1.0, 2: 1.1}, {1: c, 2: c}, seconds=seconds, others=others)


@pytest.mark.parametrize(
    ("seconds", "parts", "groups"),
    [
        (1.0, (0.0, 0.19, 0.2, 0.5, 0.99, 1.0), (3, 3, 4, 5, 7, 8)),
        (7.6, (0.0, 0.25, 1.0), (3, 4, 7)),
        (100.0, (0.0, 0.9, 1.0), (3, 3, 4)),
    ],
)
def test_groups_are_spread_over_the_other_work(
    seconds: float, parts: Sequence[float], groups: Sequence[int], tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three before it, the last after it; fewer where 60 s do not hold eight."""
    monkeypatch.setattr(Timing, "_group", lambda self: timed(seconds))
    timing, counts = Timing(tiny_pair, 9), []
    for part in parts:
        timing.reach(part)
        counts.append(len(timing.groups))
    assert tuple(counts) == tuple(groups)


@pytest.mark.evidence
@pytest.mark.parametrize("workers", [None, "1"])
def test_a_command_measures_before_between_and_after_the_prompts(
    workers: str | None, tiny_folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With workers, of which none may run meanwhile, before and after them alone."""
    monkeypatch.setattr("spectheory.cli.measure.write_measured", lambda *_: [])
    for name, value in (("GROUPS", 6), ("BEFORE", 2)):
        monkeypatch.setattr(latency, name, value)
    events: list[str] = []
    monkeypatch.setattr(Timing, "_group", lambda self: events.append("group") or timed())
    perform: Callable[..., Any] = runners._perform
    monkeypatch.setattr(runners, "_perform", lambda *args: events.append("work") or perform(*args))
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(json.dumps({"question_id": i, "turns": ["t1 t2 t3"]}) + "\n" for i in range(4)))
    pair = ["--target", str(tiny_folders[0]), "--draft", str(tiny_folders[1]), "--device", "cpu"]
    text = ["--prompts", str(prompts), "--tokens", "6", "--continuations", "1", "--out", str(tmp_path / "out")]
    more = ["--workers", workers] if workers else []
    assert main(["measure", *pair, *text, *more]) == 0
    if workers:
        assert events == ["group"] * 6, "the prompts are measured elsewhere"
    else:
        assert events == [*["group"] * 2, *["work"] * 2, *["group", "work"] * 3, "group"], "sampled, then read"
    assert len(LatencyTable.read(tmp_path / "out" / "latency.json").groups) == 6


def test_a_kill_loses_no_finished_group(tiny_pair: ModelPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run goes on with them; those of another run are not used."""
    path, made = tmp_path / "latency.json", iter(range(1, 100))
    monkeypatch.setattr(Timing, "_group", lambda self: timed(c=0.1 + next(made) / 1000))

    def run(stop_at: float, context: int = 9) -> Timing:
        timing = Timing(tiny_pair, context, (1, 2), loop=None)
        with kept_beside(path, timing):
            timing.reach(stop_at)
            if stop_at < 1:
                raise KeyboardInterrupt
        return timing

    with pytest.raises(KeyboardInterrupt):
        run(0.2)
    assert not path.exists()
    with (tmp_path / "latency.json.parts").open("ab") as file:
        file.write(b'{"target":{"1":')  # what a kill tears
    assert [round(1000 * group.draft[1]) - 100 for group in run(1.0).groups] == list(range(1, 9))
    assert [each.name for each in tmp_path.iterdir()] == ["latency.json"]
    assert [round(1000 * group.draft[1]) - 100 for group in LatencyTable.read(path).groups] == list(range(1, 9))
    with pytest.raises(KeyboardInterrupt):
        run(0.2)
    assert [round(1000 * group.draft[1]) - 100 for group in run(1.0, context=8).groups] == list(range(13, 21))


# Commands


@pytest.mark.parametrize("method", [Method("plain"), Method("token", Chain(3))])
def test_a_decoding_ends_after_its_calls(tiny_pair: ModelPair, method: Method) -> None:
    """The calls are the first ones of a decoding that goes on."""
    prompt = torch.tensor([3, 4, 5])
    how = {"tokens": 30, "stop_at_end": False}
    (whole,), (cut,) = (decode(tiny_pair, [prompt], method, **how, calls=calls) for calls in (None, 4))  # type: ignore[arg-type]
    assert len(cut.calls) == 4 < len(whole.calls)
    assert cut.output_ids.tolist() == whole.output_ids.tolist()[: len(cut.output_ids)]
    assert [(c.depth, c.accepted) for c in cut.calls] == [(c.depth, c.accepted) for c in whole.calls[:4]]
    with pytest.raises(SettingError, match="calls is 0"):
        decode(tiny_pair, [prompt], method, tokens=3, calls=0)


@pytest.mark.evidence
def test_the_command_keeps_to_its_budget(
    tiny_folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text(json.dumps({"question_id": 1, "category": "", "turns": ["t1 t2 t3"]}) + "\n")
    pair = ["--target", str(tiny_folders[0]), "--draft", str(tiny_folders[1]), "--device", "cpu"]
    out = str(tmp_path / "out")
    text = ["--prompts", str(prompts), "--tokens", "6", "--continuations", "1", "--out", out]
    asked = ["--k-max", "2", "--latency-width", "1e-6", "--latency-seconds", "0.001"]
    assert main(["predict", *pair, *text, *asked, "--json"]) == 0
    (note,) = [note for note in json.loads(capsys.readouterr().out)["notes"] if note.startswith("Latencies: ")]
    assert "the time was over after" in note
    table = LatencyTable.read(tmp_path / "out" / "latency.json")
    assert [group.rounds for group in table.groups] == [1] * FEWEST_GROUPS
    assert table.loop is not None


@pytest.mark.parametrize(
    ("ended", "asked", "again"),
    [
        ({"stopped": "width", "widths": {"draft 1": 0.2}}, Budget(width=0.3), False),
        ({"stopped": "width", "widths": {"draft 1": 0.2}}, Budget(width=0.1), True),
        ({"stopped": "width", "widths": {"draft 1": 0.2}}, Budget(width=0.1, seconds=5), True),
        ({"stopped": "width", "widths": {"draft 1": 0.4}}, Budget(width=0.3), False),
        ({"stopped": "rounds", "widths": {"draft 1": 0.2}}, Budget(width=0.1), False),
        ({"stopped": "budget", "widths": {"draft 1": 0.2}}, Budget(width=0.1), False),
        ({"stopped": "budget", "widths": {"draft 1": 0.2}}, Budget(width=0.1, seconds=61), True),
        ({"stopped": "budget", "widths": {"draft 1": 0.2}}, Budget(width=0.3, seconds=61), False),
    ],
)
def test_a_kept_table_is_measured_again_if_it_is_wider_than_asked(
    ended: dict[str, Any], asked: Budget, again: bool, tiny_pair: ModelPair, tiny_table: LatencyTable
) -> None:
    """Unless more rounds made it no narrower: groups differ by more, or there were as many as may be, or no more time.

    The kept one was asked for a width of 0.3 within 60 s.
    """
    rounds = {"wanted": asdict(Budget(0.3, 60.0)), **ended}
    kept = replace(tiny_table, provenance={**tiny_table.provenance, "rounds": rounds})
    reasons = differences(kept, tiny_pair, context=4, longest=2, sampling=Sampling(), budget=asked)
    assert reasons == (("width of its intervals",) if again else ())


# What answers say


SECOND = Interval.exact(1.0)
TABLE = LatencyTable({1: SECOND, 3: SECOND}, {1: SECOND, 2: SECOND}, 64)
TRACE = Trace.from_log_probabilities([([-1.0] * 9, [-1.2] * 9)] * 2)


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        ({}, None),
        ({"rounds": {"stopped": "width", "seconds": 9.0, "others": 0.4}}, None),
        ({"rounds": {"stopped": "width", "seconds": 9.0, "others": None}}, None),
        ({"rounds": {"stopped": "rounds", "seconds": 9.0, "others": 0.6}}, "other processes used 0.6 cores."),
        (
            {
                "pass_rounds": {"stopped": "budget", "seconds": 9.0, "others": 0.0, "widths": {"draft 1": 0.11}},
                "loop_rounds": {"stopped": "budget", "seconds": 7.0, "others": 2.0},
            },
            "other processes used 2.0 cores; the time was over after 16 s, with intervals up to 11% wide.",
        ),
    ],
)
def test_what_an_answer_says_of_its_latencies(ended: dict[str, Any], said: str | None) -> None:
    """The last is a table of an earlier version."""
    table = replace(TABLE, provenance=ended)
    assert timing_notes(table) == ([] if said is None else [f"Latencies: {said}"])
    for report in reports(table):
        assert [note for note in report.notes if note.startswith("Latencies: ")] == timing_notes(table)
        assert "disturbed" not in report.headline


def reports(table: LatencyTable) -> list[Any]:
    """Of a prediction and of a plan."""
    return [
        prediction_report(plan(TRACE, table, shapes=[Chain(1)])),
        deployment_report(deployment([Draft("small", TRACE, table)], k_max=1, nodes=1)),
    ]


def test_a_disturbed_timing_leads_with_its_range() -> None:
    """The range is that of each group alone; what to do follows, and the object of the answer has it."""
    cs = np.array([0.1, 0.3, 0.5])
    for others, disturbed in ((0.5, False), (0.9, True)):
        table = LatencyTable.of([timed(c=c, others=others) for c in cs], 64)
        alone = [plan(TRACE, LatencyTable.of([timed(c=c)], 64), shapes=[Chain(1)]).best.speedup for c in cs]
        ends = [one.best for one in alone if one]
        for report in reports(table):
            content = report.as_dict()
            assert ("disturbed" in content) == disturbed
            said = f"looks disturbed (others used {others:.1f} cores): {ends[2]:.2f}x to {ends[0]:.2f}x over rounds"
            assert (said in report.headline) == disturbed
            assert (said in " ".join(report.brief.verdict)) == disturbed
            assert (QUIET in report.notes and QUIET in report.brief.notes) == disturbed
            if disturbed:
                spread = content["disturbed"]
                assert (spread["low"], spread["high"]) == pytest.approx((ends[2], ends[0]))
                assert content["speedup"]["low"] < spread["low"] < spread["high"] < content["speedup"]["high"]


def test_the_same_defaults_everywhere() -> None:
    from spectheory.cli.options import MeasuringOptions

    assert Budget() == Budget(MeasuringOptions.latency_width, MeasuringOptions.latency_seconds)
