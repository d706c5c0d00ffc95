"""How many prompts are sampled together, what is said of it, and that a measurement does not change with it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from spectheory.errors import DeviceMemoryError, SettingError
from spectheory.measure import MeasureSettings, ModelPair, Progress, machine, measure, run
from spectheory.measure.job import encode
from spectheory.measure.reading import PreallocatedLayer, bytes_per_token, cache_of_causal
from spectheory.measure.run import batch_for
from spectheory.measure.runners import here, local_workers, workers_of
from spectheory.prompts import Prompt
from spectheory.trace import Trace

PROMPTS = tuple(Prompt(f"q{i}", "", " ".join(f"t{i + j}" for j in range(1 + 3 * (i % 4)))) for i in range(1, 8))
SETTINGS = MeasureSettings(tokens=12, count=2, seed=3)
ROUNDING = 1e-4
"""Columns in float32 of logits from passes of other shapes."""


def same_bytes(one: Trace, other: Trace) -> bool:
    return one.texts == other.texts and all(
        values.tobytes() == other.columns[name].tobytes() for name, values in one.columns.items()
    )


@pytest.fixture(scope="module")
def whole(tiny_pair: ModelPair, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Measured in batches of four."""
    return measure(tiny_pair, PROMPTS, SETTINGS, tmp_path_factory.mktemp("whole") / "trace.parquet", batch=4)


def test_a_batch_changes_numbers_by_rounding_alone(tiny_pair: ModelPair, whole: Trace, tmp_path: Path) -> None:
    alone = measure(tiny_pair, PROMPTS, SETTINGS, tmp_path / "trace.parquet", batch=1)
    assert alone.texts == whole.texts
    np.testing.assert_array_equal(alone.columns["token"], whole.columns["token"])
    for name in ("log_target", "log_draft", "total_variation"):
        np.testing.assert_allclose(alone.columns[name], whole.columns[name], atol=ROUNDING)


@pytest.mark.parametrize("lost", [False, True], ids=["texts kept", "texts lost"])
def test_stopped_within_a_batch_and_resumed_is_the_same(
    lost: bool, tiny_pair: ModelPair, whole: Trace, tmp_path: Path
) -> None:
    """After five of seven prompts; where the texts of their batch are lost, it is sampled again as a whole.

    The run goes on with the batch it began with, whatever is asked for then.
    """
    out, said = tmp_path / "trace.parquet", []

    def stop(progress: Progress) -> None:
        if progress.done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(tiny_pair, PROMPTS, SETTINGS, out, batch=4, on_progress=stop)
    if lost:
        parts = tmp_path / "trace.parquet.parts"
        lines = parts.read_bytes().splitlines(keepends=True)
        parts.write_bytes(b"".join(line for line in lines if b'"sampled"' not in line))
    resumed = measure(tiny_pair, PROMPTS, SETTINGS, out, batch=2, on_remark=said.append)
    assert same_bytes(resumed, whole)
    assert [line for line in said if "began" in line] == (
        ["4 prompts are sampled together, as when this measurement began, not 2"] if lost else []
    )


def test_memory_decides_how_many(tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never none, never more than pays or than there are, and fewer where tokens or texts take more."""
    prompts = encode(tiny_pair, PROMPTS * 20, SETTINGS)

    def with_free(amount: float, settings: MeasureSettings = SETTINGS) -> int:
        monkeypatch.setattr(run, "free_bytes", lambda device: amount)
        return batch_for(tiny_pair, prompts, settings)

    assert with_free(0) == 1
    assert with_free(1e12) == 16
    assert batch_for(tiny_pair, prompts[:7], SETTINGS) == 7
    some = with_free(4e6)
    assert 1 < some < 16
    assert with_free(4e6, dataclasses.replace(SETTINGS, count=4)) < some
    assert with_free(4e6, dataclasses.replace(SETTINGS, tokens=100)) < some
    assert with_free(1e12, dataclasses.replace(SETTINGS, count=1000)) == 1
    given = dataclasses.replace(SETTINGS, given_text=True, count=1)
    assert with_free(1e12, given) == 1


def test_workers_divide_what_their_weights_leave(tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights are one float32 of each parameter; workers on other devices take nothing."""
    prompts = encode(tiny_pair, PROMPTS * 20, SETTINGS)
    weights = 4 * sum(model.network.num_parameters() for model in (tiny_pair.target, tiny_pair.draft))

    def with_free(amount: float, runner: Any) -> int:
        monkeypatch.setattr(run, "free_bytes", lambda device: amount)
        return batch_for(tiny_pair, prompts, SETTINGS, workers=workers_of(runner))

    def load(device: str | None) -> ModelPair:
        return tiny_pair

    alone = with_free(4e6, here)
    assert 1 < alone < 16
    assert with_free(3 * (4e6 + weights), local_workers(load, ["cpu"] * 3)) == alone
    assert with_free(4e6 + weights, local_workers(load, ["cuda:0", "cuda:1"])) == alone
    assert with_free(3 * weights, local_workers(load, ["cpu"] * 3)) == 1


def test_a_measurement_divides_memory_among_its_workers(
    tiny_pair: ModelPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    class Two:
        workers = 2

        def __call__(self, *due: Any) -> Any:
            return here(*due)

    monkeypatch.setattr(run, "batch_for", lambda *_, workers: asked.append(workers) or 3)
    for runner in (here, Two()):
        measure(tiny_pair, PROMPTS, SETTINGS, tmp_path / f"{len(asked)}.parquet", runner=runner)
    assert asked == [0, 2]


def test_the_estimate_is_above_what_the_cache_takes(tiny_pair: ModelPair) -> None:
    """Two layers, two heads of 16 numbers, keys and values, four bytes each."""
    cache = cache_of_causal(tiny_pair.target)
    assert bytes_per_token(cache) == 2 * 2 * 2 * 16 * 4
    held = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    assert held == 8 * bytes_per_token(cache)


def test_free_memory_of_this_machine_and_of_a_container(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cpu, (info, limit, used) = torch.device("cpu"), (tmp_path / name for name in ("info", "limit", "used"))
    assert machine.free_bytes(cpu) > 0
    monkeypatch.setattr(machine, "_MEMINFO", info)
    monkeypatch.setattr(machine, "_LIMITS", ((limit, used),))
    assert machine.free_bytes(cpu) > 0, "a share of all memory where the system does not say"
    info.write_text("MemTotal: 9 kB\nMemAvailable: 5 kB\n")
    assert machine.free_bytes(cpu) == 5 * 1024
    limit.write_text("max\n")
    used.write_text("1000\n")
    assert machine.free_bytes(cpu) == 5 * 1024
    limit.write_text("3000\n")
    assert machine.free_bytes(cpu) == 2000
    limit.write_text("500\n")
    assert machine.free_bytes(cpu) == 0
    monkeypatch.setattr(torch, "cuda", SimpleNamespace(mem_get_info=lambda device: (7, 9)))
    assert machine.free_bytes(torch.device("cuda")) == 7


def remarks_of(pair: ModelPair, prompts: tuple[Prompt, ...], batch: int | None, tmp_path: Path) -> list[str]:
    said: list[str] = []
    measure(
        pair,
        prompts,
        dataclasses.replace(SETTINGS, tokens=1, race=False),
        tmp_path / f"{batch}.parquet",
        batch=batch,
        on_remark=said.append,
    )
    return said


def test_padding_is_named_where_it_is_much(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """Prompts of 4, 7, 10, 1, 4, 7 and 10 tokens: of the middle batch 1 - 12 / 21 of what is read is padding.

    Of a file of 24 the first stage has every other prompt: short and long ones are batched there, although neighbours
    in the file are alike.
    """
    (said,) = remarks_of(tiny_pair, PROMPTS, 3, tmp_path)
    assert said == (
        "prompts of 1 to 7 tokens are sampled together ('q4' and 'q6' are among them): 43% of what is read of them is "
        "padding; use a smaller --batch than 3"
    )
    rising = tuple(Prompt(f"r{i}", "", "t1 " * (1 + i)) for i in range(24))
    (said,) = remarks_of(tiny_pair, rising, 12, tmp_path)
    assert said.startswith("prompts of 1 to 23 tokens are sampled together ('r0' and 'r22' are among them): 48%")
    even = tuple(sorted(PROMPTS, key=lambda prompt: len(prompt.text)))
    assert remarks_of(tiny_pair, even[1:], 2, tmp_path) == []
    assert remarks_of(tiny_pair, PROMPTS, 1, tmp_path) == []


def test_a_target_without_padding_is_named(
    tiny_pair: ModelPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "why_alone", lambda *_: "has no cache")
    for batch, remarks in ((None, 1), (4, 1), (1, 0)):
        said = remarks_of(tiny_pair, PROMPTS, batch, tmp_path)
        assert said == ["target has no cache: prompts are sampled one after the other"][:remarks]


def test_no_batch_is_refused(tiny_pair: ModelPair, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="batch is 0: must be >= 1"):
        measure(tiny_pair, PROMPTS, SETTINGS, tmp_path / "trace.parquet", batch=0)


def test_a_cache_with_room_is_one_without(tiny_pair: ModelPair) -> None:
    """Rows chosen twice, more tokens than there is room for: keys and values are those of a cache that grows."""
    ids = torch.tensor([[3, 4, 5, 6], [7, 8, 9, 10]])
    rows = torch.tensor([1, 0, 1])
    grown, roomy = cache_of_causal(tiny_pair.target), cache_of_causal(tiny_pair.target)
    grown.batch_select_indices(rows)
    roomy.layers = [PreallocatedLayer(layer, rows, 2) for layer in roomy.layers]
    for token in ids.T:
        for cache in (grown, roomy):
            with torch.inference_mode():
                tiny_pair.target.network(input_ids=token[[0, 1, 0]][:, None], past_key_values=cache, use_cache=True)
    for one, other in zip(grown.layers, roomy.layers, strict=True):
        assert torch.equal(one.keys, other.keys)
        assert torch.equal(one.values, other.values)


def test_a_measurement_says_that_memory_ran_out(tiny_pair: ModelPair, whole: Trace, tmp_path: Path) -> None:
    """And goes on to the same texts; without memory for one text it is an error."""

    def full(most: int) -> Any:
        def check(_: Any, __: Any, options: dict[str, Any]) -> None:
            if len(options["input_ids"]) > most:
                raise torch.OutOfMemoryError

        return tiny_pair.target.network.register_forward_pre_hook(check, with_kwargs=True)

    said: list[str] = []
    hook = full(4)
    try:
        trace = measure(
            tiny_pair,
            PROMPTS,
            SETTINGS,
            tmp_path / "trace.parquet",
            batch=4,
            runner=lambda *task: here(*task, remark=said.append),
        )
    finally:
        hook.remove()
    assert said[0] == "memory ran out with 8 texts sampled together: they go on 4 at a time"
    np.testing.assert_array_equal(trace.columns["token"], whole.columns["token"])
    hook = full(0)
    try:
        with pytest.raises(DeviceMemoryError, match="1 texts"):
            measure(tiny_pair, PROMPTS, SETTINGS, tmp_path / "other.parquet", batch=4)
    finally:
        hook.remove()
