"""Speed-ups of two runs: by hand, with common errors of times once, refused where times differ, and as answers say."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory.cost import ConstantRatio, LatencyTable, TimedGroup
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.judging import compare
from spectheory.judging.runs import Stated
from spectheory.trace import Trace
from spectheory.trace.counters import Counters
from spectheory.trace.samples import PAIR
from tests.commands import answer, refused

GROUPS = [TimedGroup({1: 1.0, 4: each}, {1: 0.1, 2: 0.1}) for each in (1.1, 1.2, 1.3)]
TABLE = LatencyTable.of(GROUPS, context=64, provenance={"hardware": {"cpu": "A"}, "batch": 1})
ONE, OTHER = (Counters(calls=10_000, survival=shares) for shares in ((0.8, 0.6, 0.4), (0.7, 0.5, 0.3)))


def test_by_hand() -> None:
    speedups = compare(ONE, OTHER, costs=[ConstantRatio(0.1), ConstantRatio(0.2)]).speedups
    assert speedups is not None
    assert speedups.one.best == pytest.approx(2.8 / 1.3)
    assert speedups.other.best == pytest.approx(2.5 / 1.6)
    assert speedups.ratio is not None
    assert speedups.ratio.best == pytest.approx(speedups.other.best / speedups.one.best)
    deviations = [
        math.sqrt((s[0] + 3 * s[1] + 5 * s[2] - sum(s) ** 2) / 10_000) for s in (ONE.survival, OTHER.survival)
    ]
    error = math.hypot(deviations[0] / 2.8, deviations[1] / 2.5)
    assert math.log(speedups.ratio.high / speedups.ratio.low) == pytest.approx(2 * 1.959964 * error, rel=1e-6)


def test_errors_of_one_table_enter_a_ratio_once() -> None:
    """Times of one table are common: equal runs have the ratio's noise of counting alone; two tables add theirs."""
    common = compare(ONE, ONE, costs=[TABLE, TABLE]).speedups
    counting = compare(ONE, ONE, costs=[ConstantRatio(0.1)] * 2).speedups
    again = LatencyTable.of(GROUPS[::-1], context=64, provenance=TABLE.provenance)
    apart = compare(ONE, ONE, costs=[TABLE, again]).speedups
    widths = []
    for speedups in (common, counting, apart):
        assert speedups is not None
        assert speedups.ratio is not None
        widths.append(math.log(speedups.ratio.high / speedups.ratio.low))
    assert widths[0] == pytest.approx(widths[1])
    assert widths[2] > 2 * widths[1]
    assert common is not None
    assert common.one.high > 1.05 * common.one.best, "each speed-up has the error of its times"


def test_prompts_in_common_shorten_a_ratio() -> None:
    trace = Trace.read(PAIR).in_memory()
    speedups = compare(trace, trace, k=3, costs=[TABLE, TABLE]).speedups
    assert speedups is not None
    assert speedups.ratio == Interval(1.0, 1.0, 1.0, "statistical")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"provenance": {"hardware": {"cpu": "B"}, "batch": 1}}, "machine: A and B"),
        ({"provenance": {"hardware": {"cpu": "A"}, "batch": 8}}, "batch: 1 and 8"),
        ({"context": 4096}, "cached tokens: 64 and 4096"),
    ],
)
def test_times_that_were_measured_differently_give_no_ratio(change: dict[str, Any], word: str) -> None:
    speedups = compare(ONE, OTHER, costs=[TABLE, replace(TABLE, **change)]).speedups
    assert speedups is not None
    assert speedups.ratio is None
    assert word in speedups.refused
    assert speedups.other.best == pytest.approx(2.5 / 1.496, abs=0.01)


def test_answers_are_compared_without_positions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of other k too; a trace takes an answer's k; other machines give no ratio."""
    answers = {"k": 3, "tokens_per_call": {"low": 2.6, "best": 2.7, "high": 2.8, "kind": "statistical"}}
    speedup = {"low": 1.4, "best": 1.5, "high": 1.6, "kind": "statistical"}
    files = [tmp_path / f"{name}.json" for name in "abc"]
    for file, k, cpu in zip(files, (3, 5, 3), "AAB", strict=True):
        content = answers | {"k": k, "speedup": speedup, "provenance": {"hardware": {"cpu": cpu}}}
        file.write_text(json.dumps(content), encoding="utf-8")
    shown = answer(capsys, "compare", files[0], files[1])
    assert [change["what"] for change in shown["changes"]] == ["tokens per call"]
    assert (shown["one"]["k"], shown["other"]["k"], shown["one"]["calls"]) == (3, 5, None)
    assert shown["changes"][0]["difference"]["high"] == pytest.approx(math.hypot(0.1, 0.1))
    assert shown["speedups"]["ratio"]["high"] == pytest.approx(math.exp(math.log(1.6 / 1.4) / math.sqrt(2)))
    other = answer(capsys, "compare", files[0], files[2])["speedups"]
    assert other["ratio"] is None
    assert "machine: A and B" in other["refused"]
    assert answer(capsys, "compare", PAIR, files[0])["one"]["k"] == 3
    assert "is an answer: it has expected calls" in refused(["gate", files[0], "--expect", files[1]], capsys)
    files[2].write_text(json.dumps(answers | {"speedup": {**speedup, "low": -1.0}}), encoding="utf-8")
    assert "an end of the speed-up is -1" in refused(["compare", files[0], files[2]], capsys)
    assert "calls draft 5 tokens" in refused(["gate", _written(tmp_path), "--expect", files[1]], capsys)


def _written(folder: Path) -> Path:
    ONE.write(folder / "counters.json")
    return folder / "counters.json"


def test_latencies_beside_both_runs_give_speedups(capsys: pytest.CaptureFixture[str]) -> None:
    shown = answer(capsys, "compare", PAIR, PAIR, "--k", 2)
    table = LatencyTable.read(PAIR / "latency.json").looped
    speedups = compare(Trace.read(PAIR), Trace.read(PAIR), k=2, costs=[table, table]).speedups
    assert speedups is not None
    assert shown["speedups"]["one"]["best"] == pytest.approx(speedups.one.best)


def test_what_has_no_costs_has_no_speedup() -> None:
    assert compare(ONE, OTHER).speedups is None
    assert compare(Stated(Interval.exact(2.0), 3), Stated(Interval.exact(2.1), 3)).speedups is None
    for costs in ([ConstantRatio(0.1)], [ConstantRatio(0.1)] * 3):
        with pytest.raises(SettingError, match=f"{len(costs)} cost models are given"):
            compare(ONE, OTHER, costs=costs)
    with pytest.raises(SettingError, match="two runs that are no answers"):
        compare(Stated(Interval.exact(2.0), 3), OTHER, costs=[TABLE, TABLE])
    assert np.isfinite(compare(Stated(Interval.exact(2.0), 3), OTHER).tokens.deviation)
