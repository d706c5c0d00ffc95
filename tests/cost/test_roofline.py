"""C3 against counted parameters, operations and caches of real networks; C4 against hundreds of batches, one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM

from proofs_check.library.strategies import theorem
from spectheory import Interval
from spectheory.cost import (
    ACCELERATORS,
    Accelerator,
    AffineCost,
    AffineTime,
    ModelShape,
    Roofline,
    RooflineTime,
    batch_table,
    break_even_batch,
    knee_batch,
)
from spectheory.drafting import Batch, Chain, KAry, Shape
from spectheory.errors import SettingError

ROUNDING = 1e-12
"""Sums and products of a few terms."""

LLAMA: dict[str, Any] = {"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256}

# The config.json of each model on the Hugging Face hub, and its parameters as the hub counts them in the weights.
PUBLISHED: dict[str, tuple[dict[str, Any], int]] = {
    "meta-llama/Llama-3.1-8B": (
        LLAMA
        | {"num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336, "tie_word_embeddings": False},
        8_030_261_248,
    ),
    "meta-llama/Llama-3.1-70B": (
        LLAMA
        | {"num_hidden_layers": 80, "hidden_size": 8192, "intermediate_size": 28672, "num_attention_heads": 64}
        | {"tie_word_embeddings": False},
        70_553_706_496,
    ),
    "meta-llama/Llama-3.2-1B": (
        LLAMA
        | {"num_hidden_layers": 16, "hidden_size": 2048, "intermediate_size": 8192, "head_dim": 64}
        | {"tie_word_embeddings": True},
        1_235_814_400,
    ),
    "meta-llama/Llama-2-7b": (
        {"num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32}
        | {"vocab_size": 32000, "tie_word_embeddings": False},
        6_738_415_616,
    ),
    "mistralai/Mistral-7B-v0.1": (
        LLAMA
        | {"num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336, "vocab_size": 32000}
        | {"tie_word_embeddings": False},
        7_241_732_096,
    ),
}

# What is left out: the biases of queries, keys and values; the norms of queries and keys.
PUBLISHED_BUT_FOR: dict[str, tuple[dict[str, Any], int, int]] = {
    "Qwen/Qwen2.5-7B": (
        {"num_hidden_layers": 28, "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28}
        | {"num_key_value_heads": 4, "vocab_size": 152064, "tie_word_embeddings": False},
        7_615_616_512,
        28 * (28 + 2 * 4) * 128,
    ),
    "Qwen/Qwen3-0.6B": (
        {"num_hidden_layers": 28, "hidden_size": 1024, "intermediate_size": 3072, "num_attention_heads": 16}
        | {"num_key_value_heads": 8, "vocab_size": 151936, "head_dim": 128, "tie_word_embeddings": True},
        596_049_920,
        28 * 2 * 128,
    ),
}

CARD = ACCELERATORS["H100-SXM"]
LARGE = ModelShape.from_config(PUBLISHED["meta-llama/Llama-3.1-8B"][0])
SMALL = ModelShape.from_config(PUBLISHED["meta-llama/Llama-3.2-1B"][0])


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_of_published_models(name: str) -> None:
    config, parameters = PUBLISHED[name]
    model = ModelShape.from_config(config)
    assert model.parameters == parameters
    assert model.weight_bytes == 2 * parameters
    assert ModelShape.from_config(config, bytes_per_weight=0.5).weight_bytes == parameters / 2


@pytest.mark.parametrize("name", PUBLISHED_BUT_FOR)
def test_parameters_but_for_small_vectors(name: str) -> None:
    config, parameters, left_out = PUBLISHED_BUT_FOR[name]
    assert ModelShape.from_config(config).parameters == parameters - left_out
    assert left_out < 1e-4 * parameters


TINY = {
    "num_hidden_layers": 3,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "vocab_size": 101,
}
GROUPED = ("llama", "mistral", "qwen2", "qwen3", "gemma2", "starcoder2", "nemotron", "phi", "arcee", "olmo2", "granite")
FAMILIES = (*GROUPED, "gpt_neox", "persimmon")


def tiny(kind: str, **options: Any) -> tuple[ModelShape, Any]:
    """A small network of a family, and what its config says of it."""
    sizes = TINY | ({} if kind in GROUPED else {"num_key_value_heads": 6}) | options
    config = AutoConfig.for_model(kind, **sizes, pad_token_id=0)
    config._attn_implementation = "eager"
    network = AutoModelForCausalLM.from_config(config).eval()
    return ModelShape.from_config(config.to_dict()), network


@pytest.mark.parametrize("kind", FAMILIES)
def test_matrices_of_real_networks(kind: str) -> None:
    """Every matrix of the network is counted, once: embedding, attention, MLP, output."""
    model, network = tiny(kind)
    matrices = sum(p.numel() for p in network.parameters() if p.ndim == 2)
    embedding = 0 if model.tied else model.vocabulary * model.hidden
    assert model.multiplied + embedding == matrices
    assert model.read_bytes == model.weight_bytes - 2 * embedding


def test_without_its_word_the_model_type_says_whether_embeddings_are_tied() -> None:
    for kind in FAMILIES:
        config = AutoConfig.for_model(kind, **TINY, pad_token_id=0).to_dict()
        tied = config.pop("tie_word_embeddings")
        assert ModelShape.from_config(config).tied == tied, kind


@pytest.mark.parametrize("kind", ["llama", "qwen3", "phi"])
@pytest.mark.parametrize(("before", "new"), [(0, 1), (12, 1), (12, 4)])
def test_operations_and_cache_of_real_networks(kind: str, before: int, new: int) -> None:
    """Counted by torch in a pass after `before` tokens: every new token attends to all, whatever the mask hides."""
    model, network = tiny(kind)
    with torch.no_grad():
        cache = network(torch.ones(1, before, dtype=torch.long), use_cache=True).past_key_values if before else None
        with FlopCounterMode(display=False) as counted:
            cache = network(torch.ones(1, new, dtype=torch.long), past_key_values=cache, use_cache=True).past_key_values
    operations = new * model.operations_per_token(before + new)
    rotary = new * model.head_dim  # at most: the angles of rotary positions, an outer product of each pass
    assert operations <= counted.get_total_flops() <= operations + rotary
    stored = sum(t.numel() for layer in cache.layers for t in (layer.keys, layer.values))
    assert model.kv_bytes_per_token * (before + new) == 2 * stored


BAD: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: ModelShape.from_config({"n_embd": 768}),
        "the config has no num_hidden_layers (n_layer), num_attention_heads",
    ),
    (lambda: ModelShape.from_config(TINY | {"num_local_experts": 8}), "num_local_experts=8: only dense"),
    (lambda: ModelShape.from_config(TINY | {"kv_lora_rank": 512}), "kv_lora_rank=512: only dense"),
    (lambda: ModelShape.from_config(TINY | {"layer_types": ["conv"]}), "layer_types=['conv']: only dense"),
    (lambda: ModelShape.from_config(TINY | {"layer_types": 7}), "layer_types=7: only dense"),
    (lambda: ModelShape.from_config(TINY | {"vocab_size": 0}), "vocab_size is 0: must be in 1..1e+09"),
    (lambda: ModelShape.from_config(TINY | {"num_hidden_layers": -1}), "num_hidden_layers is -1: must be in 1..1e+09"),
    (lambda: ModelShape.from_config(TINY | {"vocab_size": 10**300}), "must be in 1..1e+09"),
    (lambda: ModelShape.from_config(TINY | {"hidden_size": math.nan}), "hidden_size is nan: needs one whole number"),
    (lambda: ModelShape.from_config(TINY | {"hidden_size": 48.5}), "hidden_size is 48.5"),
    (lambda: ModelShape.from_config(TINY | {"intermediate_size": [80, 90]}), "intermediate_size is [80, 90]"),
    (lambda: ModelShape.from_config(TINY | {"num_attention_heads": 0}), "num_attention_heads is 0: must be"),
    (lambda: ModelShape.from_config(TINY | {"num_attention_heads": 7}), "hidden_size is 48 with num_attention_heads 7"),
    (lambda: ModelShape.from_config(TINY | {"num_key_value_heads": 4}), "6 attention heads share 4 of keys"),
    (lambda: ModelShape.from_config(TINY, bytes_per_weight=math.nan), "bytes_per_weight is nan"),
    (lambda: Accelerator("A", {"bf16": 0.0}, 1e12), "bf16 of A is 0"),
    (lambda: Accelerator("A", {"bf16": 1e12}, math.inf), "bandwidth of A is inf"),
    (lambda: Accelerator("A", {"bf16": 1e12}, 1e12, -1.0), "the overhead of A is -1"),
    (lambda: ACCELERATORS["A100-80GB-SXM"].peak_of("fp8"), "has no peak for 'fp8': known are bf16"),
    (lambda: RooflineTime(0.0, 1.0, 1.0), "needs weights and token > 0"),
    (lambda: RooflineTime(1.0, math.nan, 1.0), "needs weights and token > 0"),
    (lambda: Roofline(LARGE, None, CARD, context=-1), "context is -1"),
    (lambda: Roofline(LARGE, None, CARD, context=1, batch=0), "batch is 0"),
    (lambda: Roofline(LARGE, None, CARD, context=1, dtype="int3"), "no peak for 'int3'"),
    (lambda: AffineTime(0.0, 0.0, 1.0), "needs seconds >= 0, some > 0"),
    (lambda: AffineTime(1.0, -1.0), "needs seconds >= 0"),
    (lambda: AffineCost(AffineTime(1.0, 1.0), None, batch=0), "batch is 0"),
    (lambda: AffineTime.fit([1, 2], [1, 1], [0, 0], [1.0, 2.0]), "2 timings do not determine the three terms"),
    (lambda: AffineTime.fit([1, 2, 3], [1, 1, 1], [9, 9, 9], [1.0, 2.0, 3.0]), "3 timings do not determine"),
    (lambda: AffineTime.fit([1, 2, 3], [1, 1, 1], [9, 8, 7], [1.0, 0.0, 3.0]), "timing 1 is [2.0, 1.0, 8.0, 0.0]"),
    (lambda: AffineTime.fit([1, 2, 3], [1, 1, 1], [9, 8, math.nan], [1.0, 2.0, 3.0]), "timing 2 is"),
    (lambda: AffineTime.fit([1, 2, 3], [1, 1], [9, 8, 7], [1.0, 2.0, 3.0]), "shapes (3,), (2,), (3,), (3,)"),
    (lambda: AffineTime.fit([], [], [], []), "needs four lists of one length"),
    (lambda: break_even_batch(Roofline(LARGE, None, CARD, 1), Chain(4), 5.1), "must be in 1..5 with chain k=4"),
    (lambda: batch_table(Roofline(LARGE, None, CARD, 1), Batch(4), 2.1, [1]), "must be in 1..2 with batch k=4"),
    (lambda: batch_table(Roofline(LARGE, None, CARD, 1), Chain(4), math.nan, [1]), "tokens per call are nan"),
    (lambda: batch_table(Roofline(LARGE, None, CARD, 1), Chain(4), 2.0, [0]), "batch is 0"),
]


@pytest.mark.parametrize(("call", "fragment"), BAD, ids=[fragment for _, fragment in BAD])
def test_bad_settings(call: Callable[[], Any], fragment: str) -> None:
    with pytest.raises(SettingError) as caught:
        call()
    assert fragment in str(caught.value)
    assert "\n" not in str(caught.value)


# C3: time


@pytest.mark.parametrize("accelerator", ACCELERATORS.values(), ids=lambda a: a.name)
def test_presets_have_their_source(accelerator: Accelerator) -> None:
    """The source names the bandwidth; fp8 is twice bf16, so that no figure is with sparsity and another without."""
    assert accelerator.overhead == 0
    assert accelerator.peak.get("fp8", 2 * accelerator.peak["bf16"]) == pytest.approx(
        2 * accelerator.peak["bf16"], 3e-3
    )
    terabytes, gigabytes = f"{accelerator.bandwidth / 1e12:g} TB/s", f"{accelerator.bandwidth / 1e9:,.0f} GB/s"
    assert terabytes in accelerator.source or gigabytes in accelerator.source


def by_hand(model: ModelShape, card: Accelerator, tokens: int, batch: int, context: int) -> float:
    """The roofline written out: bytes of weights and caches, operations of every token."""
    moved = model.read_bytes + batch * context * 2 * model.layers * model.kv_heads * model.head_dim * 2
    done = sum(2 * model.multiplied + 4 * model.layers * model.heads * model.head_dim * context for _ in range(tokens))
    return max(moved / card.bandwidth, batch * done / card.peak["bf16"]) + card.overhead


@pytest.mark.parametrize("batch", [1, 40, 4000])
@pytest.mark.parametrize("context", [0, 1000, 30_000])
@pytest.mark.parametrize("shape", [Batch(6), KAry((2, 2, 2))], ids=str)
def test_a_roofline_call_by_hand(shape: Shape, context: int, batch: int) -> None:
    """Draft passes on their tokens, verifying on nodes + 1, in both regimes."""
    card = Accelerator("with overhead", CARD.peak, CARD.bandwidth, overhead=2e-4)
    cost = Roofline(LARGE, SMALL, card, context, batch)
    drafting = [by_hand(SMALL, card, tokens, batch, context) for tokens in shape.passes]
    verify = by_hand(LARGE, card, shape.nodes + 1, batch, context)
    extra = by_hand(SMALL, card, 2, batch, context) - by_hand(SMALL, card, 1, batch, context)
    assert cost.call(shape, 0.5).best == pytest.approx(sum(drafting) + verify + 0.5 * extra, rel=ROUNDING)
    assert cost.call(shape).kind == "exact"
    assert cost.target_step().best == pytest.approx(by_hand(LARGE, card, 1, batch, context), rel=ROUNDING)
    assert Roofline(LARGE, None, card, context, batch).call(shape, 0.5).best == pytest.approx(verify, rel=ROUNDING)


def test_at_batch_one_verifying_costs_a_step() -> None:
    """C1's assumption holds under the roofline at batch 1, with c the ratio of what the models read."""
    cost = Roofline(LARGE, SMALL, CARD, context=0)
    c = SMALL.read_bytes / LARGE.read_bytes
    assert cost.speedup(Interval.exact(3.0), Chain(4)).best == pytest.approx(3 / (1 + 4 * c), rel=ROUNDING)


# C3: affine fit


def timings(seed: int, n: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(1, 33, n), rng.integers(1, 17, n), rng.integers(0, 4000, n)


@pytest.mark.parametrize("truth", [(3e-3, 2e-5, 4e-9), (3e-3, 0.0, 4e-9), (0.0, 2e-5, 0.0), (1e3, 1.0, 1e-3)])
def test_the_fit_finds_affine_times(truth: tuple[float, float, float]) -> None:
    """Exactly affine timings, small or large, give their coefficients back."""
    tokens, batch, context = timings(1)
    seconds = truth[0] + truth[1] * batch * tokens + truth[2] * batch * context
    fit = AffineTime.fit(tokens, batch, context, seconds)
    scale = np.array([1.0, (batch * tokens).max(), (batch * context).max()])
    found = np.array([fit.fixed, fit.per_token, fit.per_cached])
    np.testing.assert_allclose(found * scale, truth * scale, rtol=0, atol=1e-10 * seconds.max())
    assert fit.error <= 1e-10 * seconds.max()


def test_an_affine_call_by_hand() -> None:
    target, draft = AffineTime(0.01, 2e-4, 1e-7), AffineTime(1e-3, 1e-5, 1e-8)
    cost = AffineCost(target, draft, context=1000, batch=8)
    verify = 0.01 + 8 * 7 * 2e-4 + 8 * 1000 * 1e-7
    drafting = 2 * (1e-3 + 8 * 1000 * 1e-8) + 8 * (1 + 2) * 1e-5
    assert cost.call(KAry((2, 2))).best == pytest.approx(verify + drafting, rel=ROUNDING)
    assert cost.call(KAry((2, 2)), 1.0).best == pytest.approx(verify + drafting + 8 * 1e-5, rel=ROUNDING)
    assert AffineCost(target, None, 1000, 8).call(KAry((2, 2)), 1.0).best == pytest.approx(verify, rel=ROUNDING)


# C4

BATCHES = np.unique(np.concatenate([np.arange(1, 65), np.geomspace(64, 1e7, 400).astype(int)]))
NEAR = 1e-9
"""A batch this close to break-even, relatively, may round to either side."""

models = st.sampled_from([LARGE, SMALL, ModelShape(2, 512, 2048, 8, 8, 64, vocabulary=32000)])
drafts = st.one_of(st.none(), models)
shapes = st.sampled_from([Chain(1), Chain(4), Chain(12), Batch(5), KAry((3, 2)), KAry((4, 4, 4))])
cards = st.builds(
    lambda peak, bandwidth, overhead: Accelerator("any", {"bf16": 10**peak}, 10**bandwidth, overhead),
    st.floats(12, 16),
    st.floats(10, 13),
    st.sampled_from([0.0, 1e-5, 1e-3, 0.1]),
)
contexts = st.one_of(st.just(0), st.floats(0, 18).map(lambda e: int(2**e)))


def paying(cost: Roofline, shape: Shape, tokens: float, full: float) -> tuple[np.ndarray, np.ndarray]:
    """At which of BATCHES the speed-up is above 1 beyond rounding, and at which it is 1 up to rounding: a tie."""
    speedup = np.array([point.speedup for point in batch_table(cost, shape, tokens, BATCHES.tolist(), full)])
    ties = np.abs(speedup - 1) <= ROUNDING
    return (speedup > 1) & ~ties, ties


@theorem
@given(models, drafts, cards, contexts, shapes, st.floats(0, 1), st.floats(0, 1))
@example(LARGE, None, Accelerator("any", {"bf16": 1e14}, 1e12), 0, Chain(4), 1.0, 0.0)  # ties beyond break-even
def test_break_even_against_many_batches(
    target: ModelShape,
    draft: ModelShape | None,
    card: Accelerator,
    context: int,
    shape: Shape,
    share: float,
    full: float,
) -> None:
    """The batches that pay are an interval, and break-even is its upper end; infinite where the last of them pays."""
    cost = Roofline(target, draft, card, context)
    tokens = 1 + share * shape.depth
    end = break_even_batch(cost, shape, tokens, full)
    pays, ties = paying(cost, shape, tokens, full)
    at = np.flatnonzero(pays)
    assert not len(at) or (pays | ties)[at[0] : at[-1]].all(), "a gap"
    if end is None:
        assert not pays.any()
    else:
        assert not pays[end * (1 + NEAR) < BATCHES].any()
        # Just below the end it pays, or the interval falls between two batches.
        below = BATCHES[end * (1 - NEAR) > BATCHES]
        if pays.any() and len(below):
            assert (pays | ties)[len(below) - 1]


@theorem
@given(models, drafts, cards, contexts, shapes, st.floats(0.05, 1))
def test_at_break_even_the_speedup_is_one(
    target: ModelShape, draft: ModelShape | None, card: Accelerator, context: int, shape: Shape, share: float
) -> None:
    """With times written out at the batch itself, not rounded."""
    cost = Roofline(target, draft, card, context)
    tokens = 1 + share * shape.depth
    end = break_even_batch(cost, shape, tokens)
    assume(end is not None and end < math.inf)
    assert end is not None
    time, small = cost.target_time, cost.draft_time
    drafting = sum(small.seconds(m, end) for m in shape.passes) if small else 0.0
    assert tokens * time.seconds(1, end) == pytest.approx(time.seconds(shape.nodes + 1, end) + drafting, rel=1e-9)


@theorem
@given(models, cards, contexts, shapes)
def test_the_knee(target: ModelShape, card: Accelerator, context: int, shape: Shape) -> None:
    """Where reading takes as long as computing; without one, verifying takes as long as a plain step at any batch."""
    cost = Roofline(target, None, card, context)
    knee, time, tokens = knee_batch(cost, shape), cost.target_time, shape.nodes + 1
    if knee < math.inf:
        assert time.weights + knee * time.cache == pytest.approx(knee * tokens * time.token, rel=1e-9)
        assert time.seconds(tokens, 2 * knee) > time.seconds(1, knee) > 0
    else:
        assert all(time.seconds(tokens, b) == time.seconds(1, b) for b in BATCHES[::20].tolist())
    flags = [point.compute_bound for point in batch_table(cost, shape, 1.0, BATCHES[::20].tolist())]
    assert flags == [b > knee for b in BATCHES[::20].tolist()]


@theorem
@given(models, cards, contexts, shapes, st.floats(0.01, 1))
def test_free_drafts_without_a_knee_pay_at_any_batch(
    target: ModelShape, card: Accelerator, context: int, shape: Shape, share: float
) -> None:
    """Break-even exists for free drafts iff the time to compute (nodes + 1) tokens exceeds tokens x cache."""
    cost = Roofline(target, None, card, context)
    tokens = 1 + share * shape.depth
    time = cost.target_time
    computing, reading = (shape.nodes + 1) * time.token, tokens * max(time.cache, time.token)
    assume(abs(computing - reading) > 1e-9 * computing)
    assert (break_even_batch(cost, shape, tokens) == math.inf) == (computing < reading)
    if knee_batch(cost, shape) == math.inf:
        assert break_even_batch(cost, shape, tokens) == math.inf


def test_a_table_over_batches() -> None:
    """Each row is the cost model at that batch."""
    cost = Roofline(LARGE, SMALL, CARD, context=1024)
    for point in batch_table(cost, Chain(3), 2.5, [1, 8, 256], full_share=0.3):
        at = Roofline(LARGE, SMALL, CARD, 1024, point.batch)
        assert point.plain == at.target_step().best
        assert point.call == at.call(Chain(3), 0.3).best
        assert point.speedup == pytest.approx(at.speedup(Interval.exact(2.5), Chain(3), 0.3).best, rel=ROUNDING)
        assert point.tokens_per_second == pytest.approx(point.speedup * point.batch / point.plain, rel=ROUNDING)


@pytest.mark.parametrize("overhead", [0.0, 1e-4])
def test_perfect_free_drafts_where_all_is_compute_bound(overhead: float) -> None:
    """Five times the work for five tokens: even with plain decoding from its own knee on, but for overheads saved."""
    card = Accelerator("any", CARD.peak, CARD.bandwidth, overhead)
    cost = Roofline(LARGE, None, card, context=0)
    end = break_even_batch(cost, Chain(4), 5.0)
    assert end is not None
    assert end == (math.inf if overhead else pytest.approx(cost.target_time.knee(1), rel=1e-9))
