"""What latencies cost and how sure they are: rounds end by width, time or number, and intervals hold although so."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import binom

from spectheory.cli import main
from spectheory.cost import LatencyTable
from spectheory.distributions import Sampling
from spectheory.drafting import Chain
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.measure import ModelPair, differences, loop_time, measure_latency, with_loop
from spectheory.measure.decoders import Decoded, Method, decode
from spectheory.measure.rounds import LEAST_REPEATS, LOOKS, Budget, Rounds, median_at, miss_rate, rank_at
from spectheory.prediction import plan
from spectheory.reports import prediction_report
from spectheory.reports.notes import timing_notes
from spectheory.trace import Trace

Floats = NDArray[np.float64]
RUNS = 20_000
FALSE_ALARM = 1e-7
"""Of one coverage; there are four."""


@pytest.mark.parametrize("last", [8, 11, 13])
def test_the_chance_to_miss_by_counting_every_case(last: int) -> None:
    """All signs of so many values around their median, each as likely; intervals at the looks before it and at it."""
    ranks = {n: rank_at(n, last=False) for n in LOOKS if n < last} | {last: rank_at(last, last=True)}
    missed = 0
    for signs in itertools.product((0, 1), repeat=last):
        below = {n: sum(signs[:n]) for n in ranks}
        missed += any(not rank <= below[n] <= n - rank for n, rank in ranks.items())
    assert miss_rate(last, ranks[last]) == pytest.approx(missed / 2**last, rel=1e-12)


def test_ranks_are_as_deep_as_the_error_allows() -> None:
    for n in (*range(LEAST_REPEATS, 45), 101):
        rank = rank_at(n, last=True)
        assert miss_rate(n, rank) <= 0.05 < miss_rate(n, rank + 1)
        assert rank <= binom.ppf(0.025, n, 0.5), "an interval of its own, without looks before, is no wider"
    assert rank_at(LEAST_REPEATS - 1, last=True) == 0
    assert all(1 <= rank_at(n, last=False) <= rank_at(n, last=True) for n in LOOKS)
    assert rank_at(LOOKS[0], last=True) == binom.ppf(0.025, LOOKS[0], 0.5), "there is no look before the first"


def noisy(shape: tuple[int, int], spread: float, rng: np.random.Generator) -> Floats:
    """Ratios around a median of 1 with a skewed law; now and then something else delays a pass, or the plain step."""
    ratios = np.exp(spread * rng.gumbel(size=shape) - spread * -np.log(np.log(2)))
    delayed = rng.random(shape) < 0.05
    return np.where(delayed, ratios ** rng.choice([-30.0, 30.0], size=shape), ratios)


def coverage(values: Floats, width: float, rank: Callable[[int, bool], int], looks: tuple[int, ...]) -> float:
    """How often the interval contains the median 1, where a run ends at the first look that finds it narrow."""
    inside, going = np.zeros(len(values), dtype=bool), np.ones(len(values), dtype=bool)
    for n in looks:
        ordered = np.sort(values[:, :n], axis=1)
        ends = rank(n, n == looks[-1])
        low, high = ordered[:, ends - 1], ordered[:, n - ends]
        ended = going & ((high - low <= width * np.median(ordered, axis=1)) | (n == looks[-1]))
        inside |= ended & (low <= 1) & (high >= 1)
        going &= ~ended
    return float(inside.mean())


@pytest.mark.parametrize("spread", [0.005, 0.02, 0.04, 0.06])
def test_coverage_when_a_narrow_interval_ends_the_run(spread: float) -> None:
    """At least 0.95, whatever the noise. The control looks after every round, each time as if for the first."""
    values = noisy((RUNS, LOOKS[-1]), spread, np.random.default_rng(round(1e4 * spread)))
    slack = (binom.ppf(FALSE_ALARM, RUNS, 0.95) - 1) / RUNS
    assert coverage(values, 0.05, lambda n, last: rank_at(n, last=last), LOOKS) > slack
    control = coverage(values, 0.05, lambda n, last: int(binom.ppf(0.025, n, 0.5)), tuple(range(6, LOOKS[-1] + 1)))
    if spread >= 0.04:  # with less noise the first look is narrow, and an interval of so few values is too wide
        assert control < slack, "an error of 0.01 is seen"


def test_rounds_end_as_in_the_simulation() -> None:
    """The rule of `Rounds`, a pass at a time, against the rule on whole arrays."""
    values, ends = noisy((60, LOOKS[-1]), 0.03, np.random.default_rng(5)), set()
    for run in values:
        rounds = Rounds([("draft", 1)], 0.1, LOOKS[-1])
        for ratio in run:
            if not rounds.due(left=1e9):
                break
            rounds.add({("target", 1): 0.5, ("draft", 1): 0.5 * float(ratio)})
        n = rounds.count(("draft", 1))
        narrow = [look for look in LOOKS if wide(run[:look]) <= 0.1]
        assert n == (narrow[0] if narrow else LOOKS[-1])
        assert rounds.stopped == ("width" if narrow else "repeats")
        assert rounds.medians()["draft", 1] == median_at(run[:n], last=n == LOOKS[-1]) * 0.5
        ends.add(n)
    assert len(ends) > 3


def wide(values: Floats) -> float:
    found = median_at(values, last=len(values) == LOOKS[-1])
    return (found.high - found.low) / found.best


@pytest.fixture(scope="module")
def tiny_table(tiny_pair: ModelPair) -> LatencyTable:
    """Of few passes, with the loop."""
    loose = Budget(width=1e6)
    return with_loop(tiny_pair, measure_latency(tiny_pair, context=4, tokens=(1, 2), budget=loose), budget=loose)


COSTS = {("target", 1): 1.0, ("draft", 1): 0.25, ("target", 4): 4.0, ("target", 64): 64.0}
PASSES = [key for key in COSTS if key != ("target", 1)]


def measured(seconds: float, *, width: float = 1e-3, repeats: int = 40, noise: float = 0.01) -> tuple[Rounds, float]:
    """Rounds on a made-up clock, where passes take what they cost, now more and now less; and the time spent."""
    rounds, spent = Rounds(PASSES, width, repeats), 0.0
    while due := rounds.due(seconds - spent):
        wobble = 1 + noise * (-1) ** len(rounds.plain)
        taken = {key: COSTS[key] * (1 if key == ("target", 1) else wobble) for key in {*due, ("target", 1)}}
        rounds.add(taken)
        spent += sum(taken.values())
    return rounds, spent


def test_the_least_rounds_are_measured_whatever_they_cost() -> None:
    rounds, spent = measured(1.0)
    assert {rounds.count(key) for key in PASSES} == {LEAST_REPEATS}
    assert rounds.stopped == "budget"
    assert spent == pytest.approx(LEAST_REPEATS * sum(COSTS.values()))


def test_long_passes_are_repeated_less() -> None:
    """Beyond the least rounds repetitions fall as 1/sqrt(seconds), and the budget holds to a round."""
    rounds, spent = measured(800.0)
    counts = [rounds.count(key) for key in PASSES]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 40
    more = [count - LEAST_REPEATS for count in counts]
    assert more[1] / more[2] == pytest.approx(4, rel=0.2), "sqrt(64 / 4)"
    assert 600 < spent < 800 + sum(COSTS.values())
    assert rounds.stopped == "budget"
    ends = rounds.ended()["repeats"]
    assert ends == {f"{who} {m}": rounds.count((who, m)) for who, m in COSTS}


def test_rounds_end_when_all_is_narrow_or_as_often_as_asked() -> None:
    assert measured(1e9, width=0.03)[0].stopped == "width"
    assert {measured(1e9, width=0.03)[0].count(key) for key in PASSES} == {LOOKS[0]}
    rounds, _ = measured(1e9, width=1e-9, repeats=9)
    assert rounds.stopped == "repeats"
    assert {rounds.count(key) for key in PASSES} == {9}


def test_a_width_counts_by_the_share_of_a_call() -> None:
    """By hand: of a call that needs the pass on 4 tokens, the target takes 4 of 4.25 seconds at most."""
    rounds, _ = measured(1.0, noise=0.1)
    for key, share in ((("target", 4), 4 / 4.25), (("target", 64), 64 / 64.25), (("draft", 1), 1.0)):
        assert rounds.wide(key) == pytest.approx(share * 0.2, rel=0.01), "between 0.9 and 1.1"
    wide = Rounds([("draft", 1), ("draft", 4), ("target", 4)], 0.05, 40)
    for _ in range(LEAST_REPEATS):
        wide.add({("target", 1): 1.0, ("draft", 1): 0.25, ("draft", 4): 1.0, ("target", 4): 4.0})
    wide.ratios["draft", 4][0] = 1.1
    assert wide.wide(("draft", 4)) == pytest.approx(0.1 / 5)


def test_a_measurement_ends_by_width_and_by_budget(tiny_pair: ModelPair) -> None:
    def table(budget: Budget) -> LatencyTable:
        return measure_latency(tiny_pair, context=9, tokens=(1, 2, 8), budget=budget)

    soon = table(Budget(width=1e3))
    assert soon.provenance["pass_rounds"]["stopped"] == "width"
    assert soon.provenance["repeats"] == LOOKS[0]
    assert soon.provenance["warm_up"] == 5
    cut = table(Budget(width=1e-9, seconds=1e-6))
    ended = cut.provenance["pass_rounds"]
    assert ended["stopped"] == "budget"
    assert ended["wanted"] == {"width": 1e-9, "seconds": 1e-6}
    assert (cut.provenance["repeats"], cut.provenance["warm_up"]) == (LEAST_REPEATS, 1)
    assert set(ended["repeats"]) == {"target 1", "target 2", "target 8", "draft 1", "draft 2", "draft 8"}
    assert all(entry.low < entry.high for m, entry in cut.target.items() if m > 1), "6 rounds have an interval"
    assert ended["seconds"] > 0


def test_a_loop_takes_what_is_left(tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    table = measure_latency(tiny_pair, context=9, tokens=(1, 2), budget=Budget(width=1e3))
    methods: list[Method] = []
    monkeypatch.setattr(loop_time, "ROUNDS", 2)

    def listened(pair: ModelPair, ids: list[torch.Tensor], method: Method, **how: Any) -> list[Decoded]:
        methods.append(method)
        return decode(pair, ids, method, **how)

    monkeypatch.setattr(loop_time, "decode", listened)
    found = with_loop(tiny_pair, table, budget=Budget(1e-9, 1e-6)).provenance["loop_rounds"]
    assert (found["stopped"], found["repeats"]) == ("budget", 1)
    assert len(methods) == len(loop_time.CALIBRATION) + 1, "each setting once, whatever is left"
    found = with_loop(tiny_pair, table, budget=Budget(1e-9, 1e6)).provenance["loop_rounds"]
    assert (found["stopped"], found["repeats"]) == ("repeats", 2)
    assert with_loop(tiny_pair, table, budget=Budget(1e6)).provenance["loop_rounds"]["stopped"] == "width"


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


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf"])
@pytest.mark.parametrize(("option", "named"), [("width", "width of latencies"), ("seconds", "time for latencies")])
def test_bad_values_are_refused(
    option: str, named: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["measure", "--out", str(tmp_path / "out"), f"--latency-{option}", value]) == 2
    said = capsys.readouterr().err.strip()
    assert f"the {named}" in said
    assert f"is {value}: must be > 0" in said


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
    assert table.provenance["repeats"] == LEAST_REPEATS
    assert table.provenance["loop_rounds"]["repeats"] == 1


@pytest.mark.parametrize(
    ("passes", "loop", "asked", "again"),
    [
        ({"stopped": "width", "widths": {"draft 1": 0.04}}, {}, Budget(), False),
        ({"stopped": "width", "widths": {"draft 1": 0.2}}, {}, Budget(), True),
        ({"stopped": "width", "widths": {"draft 1": 0.2}}, {}, Budget(seconds=5), False),
        ({"stopped": "repeats", "widths": {"draft 1": 0.2}}, {}, Budget(), False),
        ({"stopped": "budget", "widths": {"draft 1": 0.2}}, {}, Budget(), False),
        ({"stopped": "budget", "widths": {"draft 1": 0.2}}, {}, Budget(seconds=61), True),
        ({"stopped": "budget", "widths": {"draft 1": 0.2}}, {}, Budget(width=0.3, seconds=61), False),
        ({"stopped": "width", "widths": {"draft 1": 0.04}}, {"stopped": "width", "spread": 0.2}, Budget(), True),
        ({"stopped": "width", "widths": {"draft 1": 0.04}}, {"stopped": "repeats", "spread": 0.2}, Budget(), False),
    ],
)
def test_a_kept_table_is_measured_again_if_it_is_wider_than_asked(
    passes: dict[str, Any], loop: dict[str, Any], asked: Budget, again: bool, tiny_pair: ModelPair, tiny_table: Any
) -> None:
    """Unless there were as many rounds as may be, or no more time is given than it had: that would end no narrower."""
    passes = {"wanted": {"width": 0.3, "seconds": 60.0}, "seconds": 9.0, **passes}
    kept = replace(tiny_table, provenance={**tiny_table.provenance, "pass_rounds": passes, "loop_rounds": loop})
    found = differences(kept, tiny_pair, context=4, longest=2, sampling=Sampling(), budget=asked)
    assert found == (("width of its intervals",) if again else ())


def test_tables_without_rounds_are_kept(tiny_pair: ModelPair, tiny_table: LatencyTable) -> None:
    """Those of earlier versions."""
    rounds = ("pass_rounds", "loop_rounds")
    kept = replace(tiny_table, provenance={k: v for k, v in tiny_table.provenance.items() if k not in rounds})
    narrow = Budget(width=1e-9, seconds=1e9)
    assert differences(kept, tiny_pair, context=4, longest=2, sampling=Sampling(), budget=narrow) == ()


def test_the_command_measures_again_for_a_narrower_width(
    tiny_folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In little time, and without figures."""
    monkeypatch.setattr("spectheory.cli.predict.write_figures", lambda *_: [])
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text(json.dumps({"question_id": 1, "category": "", "turns": ["t1 t2 t3"]}) + "\n")
    pair = ["--target", str(tiny_folders[0]), "--draft", str(tiny_folders[1]), "--device", "cpu"]
    text = ["--prompts", str(prompts), "--tokens", "6", "--continuations", "1", "--out", str(tmp_path / "out")]
    command = ["predict", *pair, *text, "--k-max", "2", "--json"]
    for width, seconds, said in (
        ("1e6", "0.001", ""),
        ("1e6", "0.001", "measured before"),
        ("1e-9", "0.01", "(width of its intervals): measuring again"),
    ):
        assert main([*command, "--latency-width", width, "--latency-seconds", seconds]) == 0
        assert said in capsys.readouterr().err.replace("\n", " ")
    assert LatencyTable.read(tmp_path / "out" / "latency.json").provenance["pass_rounds"]["wanted"]["width"] == 1e-9


SECOND = Interval.exact(1.0)
TABLE = LatencyTable({1: SECOND, 3: SECOND}, {1: SECOND, 2: SECOND}, 64)


@pytest.mark.parametrize(
    ("passes", "loop", "said"),
    [
        (None, None, None),
        ({"stopped": "width", "seconds": 9.0, "others": 0.4}, None, None),
        ({"stopped": "width", "seconds": 9.0, "others": None}, None, None),
        ({"stopped": "width", "seconds": 9.0, "others": 0.6}, None, "other processes used up to 0.6 cores."),
        (
            {"stopped": "width", "seconds": 9.0, "others": 0.0},
            {"stopped": "budget", "seconds": 7.0, "others": 2.0},
            "other processes used up to 2.0 cores; the time for the decoding loop was over after 7 s.",
        ),
        (
            {"stopped": "budget", "seconds": 9.0, "others": 0.0, "widths": {"target 2": 0.07, "draft 1": 0.11}},
            {"stopped": "budget", "seconds": 7.0, "others": 0.0},
            "the time was over after 16 s, with intervals up to 11% wide.",
        ),
    ],
)
def test_what_an_answer_says_of_its_latencies(passes: object, loop: object, said: str | None) -> None:
    table = replace(TABLE, provenance={"pass_rounds": passes, "loop_rounds": loop})
    assert timing_notes(table) == ([] if said is None else [f"Latencies: {said}"])
    answer = plan(Trace.from_log_probabilities([([-1.0] * 9, [-1.2] * 9)] * 2), table, shapes=[Chain(2)])
    notes = [note for note in prediction_report(answer).notes if note.startswith("Latencies")]
    assert notes == timing_notes(table)


def test_the_same_defaults_everywhere() -> None:
    from spectheory.cli.options import MeasuringOptions

    assert Budget() == Budget(MeasuringOptions.latency_width, MeasuringOptions.latency_seconds)
