"""Prompts sampled together: texts as of each alone, how many at a time, and what is said of it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.errors import DeviceMemoryError
from spectheory.measure import (
    MeasureSettings,
    Model,
    ModelPair,
    Progress,
    machine,
    measure,
    run,
    sample_continuations,
)
from spectheory.measure.job import encode
from spectheory.measure.reading import Reading, _bytes_per_token, _PreallocatedLayer, cache_of_causal, why_alone
from spectheory.measure.run import _batch_for
from spectheory.measure.runners import _workers_of, here, local_workers
from spectheory.measure.sampling import draw, sample_together
from spectheory.prompts import Prompt
from spectheory.trace import Trace
from tests.far_device import TwoDevices, moved

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
        return _batch_for(tiny_pair, prompts, settings)

    assert with_free(0) == 1
    assert with_free(1e12) == 16
    assert _batch_for(tiny_pair, prompts[:7], SETTINGS) == 7
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
        return _batch_for(tiny_pair, prompts, SETTINGS, workers=_workers_of(runner))

    def load(device: str | None) -> ModelPair:
        return tiny_pair

    alone = with_free(4e6, here)
    assert 1 < alone < 16
    assert with_free(3 * (4e6 + weights), local_workers(load, ["cpu"] * 3)) == alone
    assert with_free(4e6 + weights, local_workers(load, ["cuda:0", "cuda:1"])) == alone
    assert with_free(3 * weights, local_workers(load, ["cpu"] * 3)) == 1


def test_the_estimate_is_above_what_the_cache_takes(tiny_pair: ModelPair) -> None:
    """Two layers, two heads of 16 numbers, keys and values, four bytes each."""
    cache = cache_of_causal(tiny_pair.target)
    assert _bytes_per_token(cache) == 2 * 2 * 2 * 16 * 4
    size = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    assert size == 8 * _bytes_per_token(cache)


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


def test_a_cache_with_room_is_one_without(tiny_pair: ModelPair) -> None:
    """Rows chosen twice, more tokens than there is room for: keys and values are those of a cache that grows."""
    ids = torch.tensor([[3, 4, 5, 6], [7, 8, 9, 10]])
    rows = torch.tensor([1, 0, 1])
    grown, roomy = cache_of_causal(tiny_pair.target), cache_of_causal(tiny_pair.target)
    grown.batch_select_indices(rows)
    roomy.layers = [_PreallocatedLayer(layer, rows, 2) for layer in roomy.layers]
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


SIZES = {"vocab_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 32}
WIDE = {"intermediate_size": 64, "max_position_embeddings": 128, "initializer_range": 0.5, "eos_token_id": 0}
CONFIGS = {
    "positions added": transformers.GPT2Config(
        vocab_size=64, n_layer=2, n_head=2, n_embd=32, n_positions=128, initializer_range=0.3, eos_token_id=0
    ),
    "positions rotated": transformers.LlamaConfig(**SIZES, **WIDE),
    "positions by distance": transformers.BloomConfig(
        vocab_size=64, n_layer=2, n_head=2, hidden_size=32, initializer_range=0.5, eos_token_id=0
    ),
    "shared heads": transformers.Qwen2Config(**SIZES, **WIDE, num_key_value_heads=1),
    "eager attention": transformers.LlamaConfig(**SIZES, **WIDE, attn_implementation="eager"),
    "sliding window": transformers.MistralConfig(**SIZES, **WIDE, num_key_value_heads=2, sliding_window=8),
    "some attention": transformers.JambaConfig(
        **SIZES, **WIDE, num_key_value_heads=2, attn_layer_period=2, attn_layer_offset=1, num_experts=1
    ),
    "no attention": transformers.MambaConfig(vocab_size=64, num_hidden_layers=2, hidden_size=32, eos_token_id=0),
}
ALONE = {"no attention": "has no cache", "some attention": "gives other logits where texts are padded"}
LENGTHS = (1, 40, 9, 3)
TOGETHER = [torch.from_numpy(np.random.default_rng(length).integers(1, 64, length)) for length in LENGTHS]
WARM = Sampling(1.4)
"""Texts of the tiny models then end at many places."""


def rngs(count: int) -> list[np.random.Generator]:
    return [np.random.default_rng([7, place]) for place in range(count)]


def each_alone(pair: ModelPair, prompts: Sequence[Tensor], **options: Any) -> list[list[Tensor]]:
    return [
        sample_continuations(pair, prompt, WARM, rng=rng, **options)
        for prompt, rng in zip(prompts, rngs(len(prompts)), strict=True)
    ]


def together(pair: ModelPair, prompts: Sequence[Tensor], **options: Any) -> list[list[Tensor]]:
    return sample_together(pair, prompts, WARM, rngs=rngs(len(prompts)), **options)


def lists(texts: list[list[Tensor]]) -> list[list[list[int]]]:
    return [[text.tolist() for text in of_prompt] for of_prompt in texts]


@contextmanager
def passes(pair: ModelPair, before: Callable[[Tensor], None] = lambda _: None) -> Iterator[list[tuple[int, ...]]]:
    """The shapes of the target's passes; `before` each it sees the ids."""
    shapes = []

    def note(_: Any, __: Any, options: dict[str, Any]) -> None:
        shapes.append(tuple(options["input_ids"].shape))
        before(options["input_ids"])

    hook = pair.target.network.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield shapes
    finally:
        hook.remove()


@pytest.fixture(scope="module")
def pair_of(tiny_pair: ModelPair) -> Callable[[Any], ModelPair]:
    def made(config: Any) -> ModelPair:
        with torch.random.fork_rng():
            torch.manual_seed(1)
            network = transformers.AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
        return ModelPair(Model("model", None, network, 64, 128, ""), tiny_pair.draft, tiny_pair.tokenizer, 64)

    return made


@pytest.mark.parametrize("kind", CONFIGS)
def test_texts_are_those_of_each_prompt_alone(kind: str, pair_of: Callable[[Any], ModelPair]) -> None:
    """Prompts of 1 to 40 tokens in chunks of 16, several continuations, ends at many places, rows that leave."""
    pair, alone = pair_of(CONFIGS[kind]), kind in ALONE
    prompts, most = (TOGETHER[2:], 12) if alone else (TOGETHER, 40)
    options = {"tokens": most, "count": 3, "chunk": 16}
    assert str(why_alone(pair.target, 90)).startswith(ALONE.get(kind, "None"))
    with passes(pair) as shapes:
        batched = together(pair, prompts, **options)
    rows = [shape[0] for shape in shapes]
    assert max(rows) == (3 if alone else 12)
    lengths = [len(text) for texts in batched for text in texts]
    assert len(set(lengths)) > (1 if alone else 2)
    if not alone and sorted(lengths)[5] < most:
        assert rows[-1] <= 6, "rows leave once half of the texts have ended"
    assert lists(batched) == lists(each_alone(pair, prompts, **options))


def test_texts_do_not_depend_on_the_batch(tiny_pair: ModelPair) -> None:
    """Control: with the generators of other prompts they are other texts."""
    whole = lists(together(tiny_pair, TOGETHER, tokens=20, count=2))
    assert lists(together(tiny_pair, TOGETHER[:2], tokens=20, count=2)) == whole[:2]
    swapped = sample_together(tiny_pair, TOGETHER, WARM, tokens=20, count=2, rngs=rngs(4)[::-1])
    assert lists(swapped) != whole


@pytest.mark.parametrize("leaves_out", ["attention_mask", "position_ids"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_models_that_ignore_padding_sample_alone(
    leaves_out: str, dtype: torch.dtype, pair_of: Callable[[Any], ModelPair]
) -> None:
    """A model that drops the mask, or the positions, is found out, and gives the texts of each prompt alone."""
    pair, control = (pair_of(CONFIGS["positions added"]) for _ in range(2))
    for each in (pair, control):
        each.target.network.to(dtype)
    assert why_alone(control.target, 90) is None

    def drop(_: Any, args: Any, options: dict[str, Any]) -> Any:
        return args, {name: value for name, value in options.items() if name != leaves_out}

    pair.target.network.register_forward_pre_hook(drop, with_kwargs=True)
    assert "other logits where texts are padded" in str(why_alone(pair.target, 90))
    assert lists(together(pair, TOGETHER, tokens=9, count=2)) == lists(each_alone(pair, TOGETHER, tokens=9, count=2))


@pytest.mark.parametrize("rope", ["longrope", "dynamic", "yarn"])
def test_positions_that_turn_by_the_longest_text(rope: str, pair_of: Callable[[Any], ModelPair]) -> None:
    """Texts that stay within the length where they begin to turn share passes; others are sampled alone.

    Control: rotary positions of another kind do not depend on the length.
    """
    turning = {"rope_type": rope, "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 32}
    if rope == "longrope":
        turning |= {"short_factor": [1.0] * 8, "long_factor": [4.0] * 8}
    config = transformers.LlamaConfig(**SIZES, **{**WIDE, "max_position_embeddings": 32}, rope_parameters=turning)
    pair, options = pair_of(config), {"tokens": 20, "count": 2}
    assert why_alone(pair.target, 32) is None
    assert str(why_alone(pair.target, 33)).endswith("beyond 32 tokens") == (rope != "yarn")
    for prompts, alone in ((TOGETHER[2:], False), (TOGETHER, rope != "yarn")):
        with passes(pair) as shapes:
            batched = together(pair, prompts, **options)
        assert max(rows for rows, _ in shapes) == (2 if alone else 2 * len(prompts))
        assert lists(batched) == lists(each_alone(pair, prompts, **options))


def test_models_without_a_mask_or_that_fail_sample_alone(pair_of: Callable[[Any], ModelPair]) -> None:
    config = CONFIGS["positions rotated"]

    class Unmasked(transformers.LlamaForCausalLM):  # type: ignore[misc]
        def forward(self, input_ids: Tensor, past_key_values: Any = None, use_cache: bool = True) -> Any:
            return super().forward(input_ids=input_ids, past_key_values=past_key_values, use_cache=use_cache)

    class Failing(transformers.LlamaForCausalLM):  # type: ignore[misc]
        def forward(self, attention_mask: Any = None, **options: Any) -> Any:
            if attention_mask is not None:
                raise ValueError("no padding")
            return super().forward(**options)

    for kind, reason in ((Unmasked, "takes no mask of padding"), (Failing, "cannot read padded texts (ValueError)")):
        pair = pair_of(config)
        network = kind(config).eval()
        network.load_state_dict(pair.target.network.state_dict())
        other = ModelPair(Model("other", None, network, 64, 128, ""), pair.draft, pair.tokenizer, 64)
        assert why_alone(other.target, 90) == reason
        assert lists(together(other, TOGETHER, tokens=9, count=2)) == lists(together(pair, TOGETHER, tokens=9, count=2))


@pytest.mark.parametrize(("most", "after"), [(1, 0), (3, 9)], ids=["the prompts", "a token"])
def test_memory_that_runs_out_halves_the_batch(most: int, after: int, tiny_pair: ModelPair) -> None:
    """From the first pass on no two prompts fit, or from the tenth pass on three texts: each has the text it would."""
    expected = lists(together(tiny_pair, TOGETHER, tokens=30, count=2))
    seen: list[int] = []
    said: list[str] = []

    def full(ids: Tensor) -> None:
        seen.append(len(ids))
        if len(seen) > after and len(ids) > most:
            raise torch.OutOfMemoryError

    with passes(tiny_pair, full):
        batched = together(tiny_pair, TOGETHER, tokens=30, count=2, remark=said.append)
    assert lists(batched) == expected
    assert all(re.fullmatch(r"memory ran out with \d texts sampled together: they go on \d at a time", s) for s in said)
    assert len(said) == sum(rows > most for rows in seen[after:]) > 0


def test_memory_that_runs_out_for_one_text_is_an_error(tiny_pair: ModelPair) -> None:
    def full(_: Tensor) -> None:
        raise torch.OutOfMemoryError

    with passes(tiny_pair, full) as shapes, pytest.raises(DeviceMemoryError, match=r"1 texts, .*: needs room for"):
        together(tiny_pair, TOGETHER[2:], tokens=5, count=2)
    assert [shape[0] for shape in shapes] == [2, 1, 1]


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")], ids=["GPU", "CPU"]
)
def test_memory_that_runs_out_while_tokens_are_drawn(
    error: Exception, tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No three rows of weights fit from the third draw on; other errors are not taken for it."""
    expected, rows = lists(together(tiny_pair, TOGETHER, tokens=9, count=2)), list[int]()

    def full(logits: Tensor, *others: Any) -> Tensor:
        rows.append(len(logits))
        if len(rows) > 2 and len(logits) > 2:
            raise error
        return draw(logits, *others)

    monkeypatch.setattr("spectheory.measure.sampling.draw", full)
    said: list[str] = []
    assert lists(together(tiny_pair, TOGETHER, tokens=9, count=2, remark=said.append)) == expected
    assert any("they go on" in line for line in said)
    error, rows = RuntimeError("shapes differ"), []
    with pytest.raises(RuntimeError, match="shapes differ"):
        together(tiny_pair, TOGETHER, tokens=9, count=2)


def test_the_last_text_goes_on_without_those_that_ended(tiny_pair: ModelPair) -> None:
    """Memory runs out where the ended texts of a batch leave and one is left: that one is sampled alone."""

    def texts() -> list[list[list[int]]]:
        return lists(sample_together(tiny_pair, TOGETHER[2:], Sampling(8.0), tokens=80, count=1, rngs=rngs(2)))

    expected, seen, select = texts(), list[int](), Reading.select

    def full(reading: Reading, rows: Tensor, room: int = 0) -> None:
        if room < 80 and len(rows) == 1 and not seen:
            seen.append(room)
            raise DeviceMemoryError("a device", limit="is full", remedy="use less")
        select(reading, rows, room)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reading, "select", full)
        assert texts() == expected
    assert seen, "one text is left at some time"


def test_texts_on_another_device_are_those_of_the_cpu(tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks, positions, rows that leave, cut distributions: no tensor meets one of another device."""
    monkeypatch.setattr(torch, "inference_mode", torch.no_grad)  # the stand-in's tensors know none
    for sampling in (WARM, Sampling(1.4, top_k=20, top_p=0.9)):
        options: dict[str, Any] = {"tokens": 3, "count": 2, "chunk": 8}
        here = sample_together(tiny_pair, TOGETHER[2:], sampling, rngs=rngs(2), **options)
        with TwoDevices():
            far = ModelPair(moved(tiny_pair.target), tiny_pair.draft, tiny_pair.tokenizer, 64)
            there = sample_together(far, TOGETHER[2:], sampling, rngs=rngs(2), **options)
        assert lists(here) == lists(there)
