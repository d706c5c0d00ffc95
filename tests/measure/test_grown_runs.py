"""Grown trees from the measurement to the answer: provenance, resumed runs, predictions, validation, refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory.cli import main
from spectheory.cost import ConstantRatio
from spectheory.drafting import Chain, Grown, Parallel, Shape
from spectheory.errors import SettingError, SpectheoryError
from spectheory.measure import MeasureSettings, ModelPair, fingerprint_of_run, measure
from spectheory.measure.validation import Validation, validate
from spectheory.prediction import Prediction, predict
from spectheory.prompts import Prompt
from spectheory.trace import Trace
from spectheory.verification import PATH_RULES
from tests.made_up import each

SHAPE = Grown(8, 2, 4)
PROMPTS = tuple(Prompt(f"q{i}", "", f"t{i} t{i + 1} t7") for i in range(1, 5))
GROWN = PATH_RULES["grown"]


@pytest.fixture(scope="module")
def trace(tiny_pair: ModelPair, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    folder = tmp_path_factory.mktemp("grown")
    return measure(tiny_pair, PROMPTS, MeasureSettings(tokens=24, grown=SHAPE.size), folder / "trace.parquet")


def predicted(trace: Trace) -> Prediction:
    return predict(trace, GROWN, SHAPE, ConstantRatio(0.1))


def test_the_trace_says_the_size_and_gives_the_calls(trace: Trace) -> None:
    assert trace.provenance["settings"]["grown"] == "8x2x4"
    match, calls, at = trace.columns["grown_match"], 0, 0
    for length in trace.lengths:
        start = 0
        while start < length:
            start += int(match[at + start]) + 1
            calls += 1
        at += length
    found = predicted(trace)
    assert found.tokens_per_call.best == pytest.approx(len(trace) / calls, rel=1e-12)
    assert 1 < found.tokens_per_call.best < SHAPE.depth + 1
    assert (found.shape, found.shape.listed, found.limits.decoding, found.limits.iid_channel) == (SHAPE,) + (None,) * 3
    assert found.limits.text is None or found.limits.text.kind == "statistical"


def test_runs_without_trees_are_those_of_before(tiny_pair: ModelPair, trace: Trace, tmp_path: Path) -> None:
    """The fingerprint has the size where there is one; the other columns are the same with trees and without."""
    plain = MeasureSettings(tokens=24)
    marks = {fingerprint_of_run(tiny_pair, PROMPTS, replace(plain, grown=size)) for size in (None, "8x2x4", "8x2x3")}
    assert len(marks) == 3
    without = measure(tiny_pair, PROMPTS, plain, tmp_path / "trace.parquet")
    assert set(trace.columns) - set(without.columns) == {"grown_match"}
    assert all(np.array_equal(values, trace.columns[name]) for name, values in without.columns.items())


def test_a_perturbed_draft_gives_other_calls(tiny_pair: ModelPair, trace: Trace, tmp_path: Path) -> None:
    """The control: the target's own trees lie deeper on its texts."""
    own = replace(tiny_pair, draft=tiny_pair.target)
    better = measure(own, PROMPTS, MeasureSettings(tokens=24, grown=SHAPE.size), tmp_path / "trace.parquet")
    assert np.array_equal(better.columns["token"], trace.columns["token"])
    assert predicted(better).tokens_per_call.best > predicted(trace).tokens_per_call.best


@pytest.mark.usefixtures("quick_latencies")
def test_a_validation_decodes_the_trees(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """Given the text nothing is random: counted and expected calls are equal at every temperature."""
    how = MeasureSettings(tokens=12, grown=SHAPE.size)
    found = validate(tiny_pair, PROMPTS[:2], Validation((), (SHAPE,), (0.0, 1.0), how), tmp_path)
    assert found["comparisons"] == 2
    for at in found["temperatures"]:
        (record,) = at["settings"]
        assert (record["rule"], record["shape"], record["nodes"]) == ("grown", "grown 8x2x4", 8)
        assert (record["expected"]["calls"], record["expected"]["deviation"]) == (record["calls"], 0)


def test_trees_of_a_parallel_head_are_the_measured_ones(trace: Trace) -> None:
    """A validation asks for the shape with its one pass: the same calls, drafted for less."""
    found = predict(trace, GROWN, SHAPE.by(Parallel()), ConstantRatio(0.1))
    assert (found.shape.passes, found.tokens_per_call) == ((4,), predicted(trace).tokens_per_call)
    assert found.speedup is not None
    assert found.speedup.best == pytest.approx(found.tokens_per_call.best / 1.1)


@each("shape, longest", [(Chain(3), 4), (Grown(4, 16, 2), 17), (Grown(2, 2, 5), 6), (SHAPE, 9)])
def test_latencies_reach_every_pass(shape: Shape, longest: int) -> None:
    """Trees that read more nodes, or more levels, than they keep."""
    assert Validation((), (shape,), (1.0,), MeasureSettings()).longest == longest


def _unnamed(trace: Trace) -> Trace:
    return replace(trace, provenance={**trace.provenance, "settings": {}})


def _without(trace: Trace) -> Trace:
    return replace(trace, columns={n: v for n, v in trace.columns.items() if n != "grown_match"})


@each(
    "ask, said",
    [
        (lambda trace: predict(trace, GROWN, Grown(8, 2, 3)), "measured trees of 8x2x4.*use grown:8x2x4"),
        (lambda trace: predict(trace, GROWN, Chain(3)), "the rule grown is asked for chain k=3"),
        (lambda trace: predict(trace, PATH_RULES["topk"], SHAPE), "use the rule grown"),
        (lambda trace: predict(_without(trace), GROWN, SHAPE), "measure with --grow"),
        (lambda trace: predict(_unnamed(trace), GROWN, SHAPE), "no size of its trees"),
    ],
)
def test_refusals(trace: Trace, ask: Callable[[Trace], Any], said: str) -> None:
    with pytest.raises(SpectheoryError, match=said) as refused:
        ask(trace)
    assert "\n" not in str(refused.value)


def test_bad_sizes_are_refused_before_anything_runs() -> None:
    with pytest.raises(SettingError, match="NODESxTOPxDEPTH"):
        MeasureSettings(grown="8x2")
    with pytest.raises(SettingError, match="its passes find 6 nodes"):
        MeasureSettings(grown="9x2x2")


def test_predict_shows_them(trace: Trace, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace.write(tmp_path / "trace.parquet")
    for more in ([], ["--rule", "grown"], ["--shape", "grown:8x2x4"]):
        assert main(["predict", str(tmp_path), "--c", "0.1", "--k-max", "2", "--all", *more]) == 0
        shown = capsys.readouterr().out
        assert "grown 8x2x4" in shown
        assert (" block " in shown) == (more == [])
    for more, said in (
        (["--shape", "grown:8x2x3"], "use grown:8x2x4"),
        (["--rule", "token", "--shape", "grown:8x2x4"], "rule grown"),
        (["--shape", "grown:8x2"], "write it as 16x4x5"),
    ):
        assert main(["predict", str(tmp_path), "--c", "0.1", *more]) == 2
        assert said in capsys.readouterr().err
    command = ["validate", "--out", str(tmp_path / "v"), "--grow", "8x2x4", "--shape", "grown:8x2x3"]
    assert main(command) == 2
    assert "validate each by itself" in capsys.readouterr().err
