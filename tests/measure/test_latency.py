"""Seconds of passes, and of our decoding loop beside them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from spectheory.cli import main
from spectheory.cost import LatencyTable, LoopedTable, LoopTime
from spectheory.deployment import Draft
from spectheory.distributions import Sampling
from spectheory.drafting import Batch, Chain, Copied, KAry, Shape
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.measure import Decoded, Method, ModelPair, measure_latency
from spectheory.measure.decoders import Call
from spectheory.measure.latency import BURST, DRAFT_TOKENS, TAKING, _round
from spectheory.measure.loop_time import CALIBRATION, _fit_loop, _time_loop
from spectheory.measure.rounds import PLAIN, Pass
from spectheory.prediction import predict
from spectheory.trace import Trace
from spectheory.verification import TokenVerification

SECOND = Interval.exact
PASSES = LatencyTable(
    {1: SECOND(1.0), 2: SECOND(1.1), 8: SECOND(1.5)}, {1: SECOND(0.1), 2: SECOND(0.12), 4: SECOND(0.2)}, context=64
)
LOOP = LoopTime(plain=0.05, call=0.2, draft_pass=0.03, node=0.01, tree=0.4)


@pytest.mark.parametrize(
    ("shape", "seconds"),
    [
        (Chain(3), 0.2 + 0.09 + 0.03),
        (KAry((2, 1)), 0.2 + 0.06 + 0.04 + 0.4),
        (Chain(3, schedule=Copied()), 0.05 + 0.03),
        (Chain(3, schedule=Copied((0.5, 0, 0, 0.5))), 0.05 + 0.015),
    ],
)
def test_a_call_by_hand(shape: Shape, seconds: float) -> None:
    looped = dataclasses.replace(PASSES, loop=LOOP).looped
    assert isinstance(looped, LoopedTable)
    assert np.isclose(looped.call(shape).best, PASSES.call(shape).best + seconds)
    assert np.isclose(LOOP.of(shape), seconds)
    assert np.isclose(looped.target_step().best, 1.05)
    assert looped.target_pass(1).best == PASSES.target_pass(1).best, "passes stay passes"
    assert PASSES.looped is PASSES, "nothing is counted that was not measured"


def test_the_fit_finds_the_loop_and_nothing_negative() -> None:
    shapes = [shape for _, shape in CALIBRATION]
    seconds = [LOOP.of(shape) for shape in shapes]
    fit = _fit_loop(shapes, seconds, LOOP.plain)
    np.testing.assert_allclose(dataclasses.astuple(fit), dataclasses.astuple(LOOP), rtol=1e-9)
    falling = _fit_loop(shapes, [1.0 / (1 + shape.nodes) for shape in shapes], 0.1)
    assert min(dataclasses.astuple(falling)) >= 0


def test_the_loop_of_known_calls_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes take three times the table's here, and the last calls of a text are cut short: neither matters."""

    def calls(pair: object, prompt: object, method: Method, **options: object) -> list[Decoded]:
        shape = method.shape
        around = LOOP.plain if shape is None else LOOP.of(shape)  # type: ignore[arg-type]
        nodes, depth = (0, 0) if shape is None else (shape.nodes, shape.depth)  # type: ignore[union-attr]
        full = Call(nodes, depth, 0, "recovered", 0.2, 3.0, 3.2 + 3 * around)
        short = Call(nodes // 2, depth - 1, 0, "recovered", 0.2, 3.0, 99.0)
        return [Decoded(torch.zeros(8), (full,) * 5 + (short,) * (6 if shape else 0), 0.0)]

    monkeypatch.setattr("spectheory.measure.loop_time.decode", calls)
    pair = SimpleNamespace(window=None, vocabulary=8, draft=SimpleNamespace(head=None))
    loop = _time_loop(pair, PASSES.context, PASSES.target[1].best)  # type: ignore[arg-type]
    np.testing.assert_allclose(dataclasses.astuple(loop), dataclasses.astuple(LOOP), rtol=1e-9)


def test_a_measured_loop_is_kept(tiny_pair: ModelPair, tmp_path: Path) -> None:
    how = {"context": 20, "tokens": (1, 2, 4), "rounds": 1, "warm_up": 1}
    assert measure_latency(tiny_pair, **how).loop is None  # type: ignore[arg-type]
    measured = measure_latency(tiny_pair, **how, loop=Sampling())  # type: ignore[arg-type]
    assert measured.loop is not None
    assert all(group.loop is not None for group in measured.groups)
    assert measured.loop.plain > 0
    assert sum(dataclasses.astuple(measured.loop)[1:]) > 0
    measured.write(tmp_path / "latency.json")
    assert LatencyTable.read(tmp_path / "latency.json") == measured
    content = json.loads((tmp_path / "latency.json").read_text())
    assert content["provenance"].pop("loop_sampling") == dataclasses.asdict(Sampling())
    del content["loop"]
    (tmp_path / "old.json").write_text(json.dumps(content))
    old = LatencyTable.read(tmp_path / "old.json")
    assert (old.target, old.draft, old.loop) == (measured.target, measured.draft, None), "older tables have none"


@pytest.mark.parametrize("name", ["plain", "call", "draft_pass", "node", "tree"])
@pytest.mark.parametrize("seconds", [1e308, 10**400])
def test_a_loop_has_the_range_of_passes(name: str, seconds: float) -> None:
    with pytest.raises(SettingError, match=rf"the loop's {name} is .*: must be >= 0 and below 1e\+100"):
        dataclasses.replace(LOOP, **{name: seconds})


def test_a_plan_counts_the_loop() -> None:
    trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40)] * 2)
    draft = Draft("small", trace, dataclasses.replace(PASSES, loop=LOOP))
    alone, looped = (
        predict(trace, TokenVerification(), Chain(2), each.cost).speedup for each in (draft, draft.in_loop)
    )
    assert alone is not None
    assert looped is not None
    call = PASSES.call(Chain(2)).best
    assert np.isclose(looped.best / alone.best, 1.05 * call / (call + LOOP.of(Chain(2))), rtol=0.01)


def commands(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[dict[str, float], list[float]]:
    """Best speed-up of plan and of predict, and those of the engines."""
    assert main(["plan", str(folder), "--k-max", "4", "--nodes-max", "1", "--json", *options]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert main(["predict", str(folder), "--k-max", "4", "--rule", "token", "--json", *options]) == 0
    predicted = json.loads(capsys.readouterr().out)
    engines = [settings["speedup"]["best"] for settings in planned["engines"]]
    return {"plan": planned["speedup"]["best"], "predict": predicted["speedup"]["best"]}, engines


def test_plan_predict_and_the_settings_of_engines_count_the_loop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40)] * 2).write(tmp_path / "trace.parquet")
    dataclasses.replace(PASSES, loop=LOOP).write(tmp_path / "latency.json")
    looped, engines = commands(tmp_path, capsys)
    alone, engines_alone = commands(tmp_path, capsys, "--passes-alone")
    assert looped["plan"] < 0.95 * alone["plan"]
    assert looped["predict"] < 0.95 * alone["predict"]
    assert len(engines) == len(engines_alone) > 0
    assert all(one < 0.95 * other for one, other in zip(engines, engines_alone, strict=True))
    assert engines[0] == looped["plan"], "what leads the plan is what an engine runs"
    PASSES.write(tmp_path / "latency.json")
    assert commands(tmp_path, capsys)[0] == alone, "what was not measured is not counted"


def test_table(tiny_pair: ModelPair) -> None:
    groups: list[tuple[int, int]] = []
    table = measure_latency(
        tiny_pair,
        context=100,
        tokens=(1, 4, 28, 29),
        rounds=2,
        warm_up=1,
        on_progress=lambda done, total: groups.append((done, total)),
    )
    assert set(table.target) == {1, 4, 28}, "100 + 29 tokens do not fit a window of 128"
    assert set(table.draft) == {1, 2, 4, 28}
    for entry in (*table.target.values(), *table.draft.values()):
        assert 0 < entry.low <= entry.best <= entry.high
        assert entry.kind == "statistical"
    assert table.context == 100
    assert groups == [(i, 8) for i in range(1, 9)]
    assert [group.rounds for group in table.groups] == [2] * 8
    provenance = table.provenance
    assert (provenance["rounds"]["groups"], provenance["rounds"]["rounds"]) == (8, 16)
    assert provenance["batch"] == 1
    assert provenance["target"]["dtype"] == "float32"
    assert table.call(KAry((2, 4))).best > table.call(Batch(10)).best, "a pass on two tokens more"
    assert provenance["hardware"]["cpu"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"context": 127}, "context is 127: the models take 128"),
        ({"context": 0}, "context is 0"),
        ({"context": 8, "rounds": 0}, "rounds is 0"),
        ({"context": 8, "tokens": (0, 1)}, "tokens is 0"),
        ({"context": 8, "tokens": ()}, "tokens is 0"),
    ],
)
def test_bad_settings(options: dict[str, Any], named: str, tiny_pair: ModelPair) -> None:
    with pytest.raises(SettingError, match=named):
        measure_latency(tiny_pair, **options)


def test_models_without_a_cache_read_everything_again(tiny_pair: ModelPair) -> None:
    read = []

    class Plain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = tiny_pair.draft.network
            self.get_input_embeddings, self.num_parameters = self.inner.get_input_embeddings, self.inner.num_parameters
            self.dtype = self.inner.dtype

        def forward(self, input_ids: Any, past_key_values: Any, use_cache: bool) -> Any:
            read.append(input_ids.shape[1])
            return self.inner(input_ids, use_cache=False)

    pair = dataclasses.replace(tiny_pair, draft=dataclasses.replace(tiny_pair.draft, network=Plain()))
    table = measure_latency(pair, context=8, tokens=(1, 4), rounds=1, warm_up=0)
    assert sorted(table.draft) == [1, 2, 4]
    assert table.provenance["read_again"] == ["draft"]
    assert read[0] == 8
    assert set(read) == {8, 8 + 1, 8 + 2, 8 + 4}


class Clock:
    """Stands for a model: a pass takes what it reads, a draft's first one after the target's 1 more; it is listed."""

    def __init__(self, name: str, listed: list[Pass], firsts: Sequence[int] = (), layers: Sequence[int] = ()) -> None:
        self.name, self.listed, self.firsts, self.layers = name, listed, firsts, layers

    def run(self, tokens: int, keep: int, *, alone: bool = False) -> float:
        """Seconds of a pass."""
        taking = bool(self.layers) and tokens == 1 and not alone
        fresh = self.name == "draft" and self.listed[-1][0] != "draft"
        self.listed.append((TAKING if taking else self.name, tokens))
        return tokens + 0.5 * taking + fresh

    def first(self, pairs: int) -> float:
        """Seconds of a call's first pass."""
        return self.run(pairs, keep=1)

    def burst(self, tokens: int) -> list[float]:
        """Seconds of a chain's passes."""
        return [self.run(tokens, keep=1) for _ in range(BURST)]


@pytest.mark.parametrize("head", [False, True])
@pytest.mark.parametrize("sizes", [[1], [1, 2], [1, 4], [1, 2, 4], [1, 4, 16, 64]])
def test_a_round_has_every_pass_and_drafts_after_the_target(sizes: list[int], head: bool) -> None:
    """Each burst of drafts and each first pass follows the target, wherever the round has it."""
    listed: list[Pass] = [PLAIN]
    draft, target = Clock("draft", listed, sizes if head else ()), Clock("target", listed, layers=(1,) if head else ())
    passes = {PLAIN, *([TAKING] if head else []), *(("target", m) for m in sizes)}
    passes |= {("draft", m) for m in (*DRAFT_TOKENS, *sizes)} | {("first", m) for m in draft.firsts}
    for number in range(2 * len(sizes)):
        taken = _round(draft, target, sizes, number)  # type: ignore[arg-type]
        assert taken.keys() == passes
        for step in [("draft", m) for m in DRAFT_TOKENS]:
            assert taken[step] == pytest.approx(step[1] + 1 / BURST)
        assert all(taken[who, m] == m for who, m in taken if who == "target")
        assert all(taken["first", m] == m + 1 for m in draft.firsts)
