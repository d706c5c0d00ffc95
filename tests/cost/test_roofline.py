"""C3: times of passes; C4 against hundreds of batches, one by one."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from proofs_check.library.strategies import theorem
from spectheory import Interval
from spectheory.cost import (
    ACCELERATORS,
    Accelerator,
    AffineCost,
    AffineTime,
    ModelShape,
    Roofline,
    batch_table,
    break_even_batch,
    knee_batch,
)
from spectheory.drafting import Batch, Chain, KAry, Shape
from spectheory.errors import SettingError
from spectheory.prediction import predict
from spectheory.trace import Trace
from spectheory.verification import TokenVerification
from tests.cost.roofline_cases import CARD, LARGE, PUBLISHED, attention_of, shapes, timings
from tests.made_up import each

ROUNDING = 1e-12
"""Sums and products of a few terms."""

SMALL = ModelShape.from_config(PUBLISHED["meta-llama/Llama-3.2-1B"][0])


def test_accelerators_are_named_in_any_case() -> None:
    for name, card in ACCELERATORS.items():
        assert Accelerator.named(name.lower()) is card
    for near, remedy in (("H100", "; write H100-SXM"), ("h2000", "; write H200"), ("Z80", "; name one, or")):
        with pytest.raises(SettingError, match=f"accelerator '{near}' is unknown: there are .*{remedy}"):
            Accelerator.named(near)


# C3: time


@pytest.mark.parametrize("accelerator", ACCELERATORS.values(), ids=lambda a: a.name)
def test_presets_have_their_source(accelerator: Accelerator) -> None:
    """The source names all figures; fp8 is twice bf16, so that no figure is with sparsity and another without."""
    assert accelerator.overhead == 0
    assert accelerator.peak.get("fp8", 2 * accelerator.peak["bf16"]) == pytest.approx(
        2 * accelerator.peak["bf16"], 3e-3
    )
    terabytes, gigabytes = f"{accelerator.bandwidth / 1e12:g} TB/s", f"{accelerator.bandwidth / 1e9:,.0f} GB/s"
    assert terabytes in accelerator.source or gigabytes in accelerator.source
    assert f"{accelerator.memory / 1e9:g} GB" in accelerator.source
    assert f"{accelerator.link / 1e9:g} GB/s" in accelerator.source


def by_hand(model: ModelShape, card: Accelerator, tokens: int, batch: int, context: int) -> float:
    """The roofline written out: bytes of weights and caches, operations of every token."""
    layers, heads = attention_of(model)
    moved = model.read_bytes + batch * context * 2 * layers * heads.kv_heads * heads.head_dim * 2
    done = sum(2 * model.multiplied + 4 * layers * heads.heads * heads.head_dim * context for _ in range(tokens))
    return max(moved / card.bandwidth, batch * done / card.peak["bf16"]) + card.overhead


@each("batch", [1, 40, 4000])
@each("context", [0, 1000, 30_000])
@each("shape", [Batch(6), KAry((2, 2, 2))])
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


def ring(sent: float, devices: int, link: float) -> float:
    """Seconds of an all-reduce played out: every device sends a part to the next one until all have every sum."""
    parts = [[{device} for _ in range(devices)] for device in range(devices)]
    seconds, step = 0.0, 0
    while any(len(part) < devices for parts_of in parts for part in parts_of):
        moving = [(device, (device - step) % devices) for device in range(devices)]
        copies = [(device, part, set(parts[device][part])) for device, part in moving]
        for device, part, summed in copies:
            parts[(device + 1) % devices][part] |= summed
        seconds, step = seconds + sent / devices / (link / 2), step + 1
    return seconds


@each("devices", [2, 4, 8])
@each("batch", [1, 40, 4000])
def test_devices_share_work_and_exchange_sums(devices: int, batch: int) -> None:
    card = Accelerator("linked", CARD.peak, CARD.bandwidth, overhead=2e-4, link=1e11, link_latency=1e-6)
    cost, alone = (Roofline(LARGE, SMALL, card, 1000, batch, devices=n) for n in (devices, 1))
    for model, passed, whole in (
        (LARGE, cost.target_pass, alone.target_pass),
        (SMALL, cost.draft_pass, alone.draft_pass),
    ):
        for tokens in (1, 5):
            sums = ring(batch * tokens * model.hidden * 2, devices, card.link) + card.link_latency
            shared = (whole(tokens).best - card.overhead) / devices
            expected = shared + 2 * attention_of(model)[0] * sums + card.overhead
            assert passed(tokens).best == pytest.approx(expected, rel=ROUNDING)


def test_devices_without_a_switch_have_a_link_to_each_other() -> None:
    """Two MI300X exchange sums over one of their seven links of 128 GB/s."""
    card = ACCELERATORS["MI300X"]
    two, eight = (Roofline(LARGE, None, card, context=0, devices=n).target_pass(1).best for n in (2, 8))
    links = [replace(card, link=bandwidth, peers=0) for bandwidth in (128e9, 896e9)]
    assert two == Roofline(LARGE, None, links[0], context=0, devices=2).target_pass(1).best
    assert eight == Roofline(LARGE, None, links[1], context=0, devices=8).target_pass(1).best


def test_a_head_of_keys_and_values_is_the_least_that_a_device_stores() -> None:
    model = ModelShape.dense(2, 512, 2048, 16, 2, 64, vocabulary=32000)
    stored = [Roofline(model, None, CARD, 10**6, devices=n).target_time.cache for n in (1, 2, 8)]
    assert stored == pytest.approx([stored[0], stored[0] / 2, stored[0] / 2])


def test_room_is_where_memory_is_full() -> None:
    cost = Roofline(LARGE, SMALL, CARD, 4096, devices=2)
    caches = sum(4096 * 2 * n * one.kv_heads * one.head_dim * 2 for n, one in map(attention_of, (LARGE, SMALL)))
    assert cost.room * caches + LARGE.weight_bytes + SMALL.weight_bytes == pytest.approx(2 * CARD.memory)
    assert Roofline(LARGE, None, CARD, 0).room == math.inf
    assert Roofline(replace(LARGE, parts=LARGE.parts * 40), None, CARD, 10).room == 0


def test_the_pass_of_a_prompt_by_hand() -> None:
    card = Accelerator("mine", CARD.peak, CARD.bandwidth, overhead=2e-4)
    cost = Roofline(LARGE, SMALL, card, 1000)
    computed = [model.operations_of_prompt(2000) / card.peak["bf16"] + 2e-4 for model in (LARGE, SMALL)]
    assert cost.prompt_pass(2000) == pytest.approx(computed[0])
    assert cost.prompt_pass(2000, drafted=True) == pytest.approx(sum(computed))
    assert cost.prompt_pass(1) == pytest.approx(LARGE.read_bytes / card.bandwidth + 2e-4), "a short one reads weights"
    assert cost.prompt_pass(0) == 0


def test_each_model_computes_in_its_own_type() -> None:
    """Many sequences are compute-bound: the passes of each model take half as long in fp8, and the other's stay."""
    fast, slow = (Roofline(LARGE, SMALL, CARD, 0, batch=4000, dtype=dtype) for dtype in ("fp8", "bf16"))
    mixed = Roofline(LARGE, SMALL, CARD, 0, batch=4000, dtype="fp8", draft_dtype="bf16")
    assert mixed.target_step() == fast.target_step() != slow.target_step()
    assert mixed.draft_pass(1) == slow.draft_pass(1) != fast.draft_pass(1)
    of_drafts = [each.prompt_pass(2000, drafted=True) - each.prompt_pass(2000) for each in (mixed, slow, fast)]
    assert of_drafts[0] == pytest.approx(of_drafts[1], ROUNDING)
    assert of_drafts[0] > 1.5 * of_drafts[2]


@pytest.mark.parametrize(
    ("devices", "card", "words"),
    [
        (3, CARD, "devices is 3: must divide the attention heads of each model, 32 of one; use 1"),
        (2, Accelerator("lone", {"bf16": 1e14}, 1e12), "the bandwidth of their link is unknown"),
        (0, CARD, "devices is 0"),
    ],
)
def test_devices_out_of_range(devices: int, card: Accelerator, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        Roofline(LARGE, SMALL, card, 10, devices=devices)


@each("draft", [SMALL, None])
def test_the_stated_error_is_in_the_range_of_a_speedup(draft: ModelShape | None) -> None:
    """Verification 4% longer or shorter, draft passes half or twice as long, by hand: independent, so in squares."""
    cost, shape = Roofline(LARGE, draft, CARD, 1000, 8), Chain(3)
    verify, drafting = cost.target_pass(4).best, 3 * cost.draft_pass(1).best
    call, plain = verify + drafting, cost.target_step().best
    ends = [(verify * off + drafting) / call for off in (1 / 1.04, 1.04)]
    ends += [(verify + drafting * off) / call for off in (0.5, 2.0)]
    halves = [max(abs(math.log(end)) for end in ends[i : i + 2]) for i in (0, 2)]
    speedup = cost.speedup(Interval.exact(2.0), shape)
    assert speedup.best == pytest.approx(2 * plain / call, rel=ROUNDING)
    assert math.log(speedup.high / speedup.best) == pytest.approx(math.hypot(*halves))
    assert math.log(speedup.best / speedup.low) == pytest.approx(math.hypot(*halves))
    errors = list(cost.errors())
    assert len(errors) == (1 if draft is None else 2)
    of_ends = [end.call(shape).best / call for pair in errors for end in pair]
    assert of_ends == pytest.approx(ends[: len(of_ends)])
    assert all(end.target_step() == cost.target_step() for pair in errors for end in pair)


def test_the_stated_error_joins_that_of_prompts() -> None:
    """Variances of logarithms add: that of the prompts alone is that of a model of the same times without errors."""
    rng = np.random.default_rng(3)
    texts = [(-rng.exponential(1.0, 40), -rng.exponential(1.0, 40)) for _ in range(12)]
    trace, cost, shape = Trace.from_log_probabilities(texts), Roofline(LARGE, SMALL, CARD, 0), Chain(3)
    times = cost.target_time, cost.draft_time
    affine = [AffineTime(time.weights, 0.0) for time in times if time]  # at batch 1 a pass reads its weights
    given, alone = (predict(trace, TokenVerification(), shape, model).speedup for model in (cost, AffineCost(*affine)))
    assert given is not None
    assert alone is not None
    assert given.best == pytest.approx(alone.best)
    of_ends = [math.log(b.call(shape).best / a.call(shape).best) / 2 for a, b in cost.errors()]
    half, of_prompts = (math.log(each.high / each.low) / 2 for each in (given, alone))
    assert half > 1.5 * of_prompts
    assert half == pytest.approx(math.hypot(of_prompts, *of_ends), rel=0.1), "Student's t widens with few prompts"


def test_at_batch_one_verifying_costs_a_step() -> None:
    """C1's assumption holds under the roofline at batch 1, with c the ratio of what the models read."""
    cost = Roofline(LARGE, SMALL, CARD, context=0)
    c = SMALL.read_bytes / LARGE.read_bytes
    assert cost.speedup(Interval.exact(3.0), Chain(4)).best == pytest.approx(3 / (1 + 4 * c), rel=ROUNDING)


@pytest.mark.parametrize("truth", [(3e-3, 2e-5, 4e-9), (3e-3, 0.0, 4e-9), (0.0, 2e-5, 0.0), (1e3, 1.0, 1e-3)])
def test_the_fit_finds_affine_times(truth: tuple[float, float, float]) -> None:
    """Exactly affine timings, small or large, give their coefficients back."""
    tokens, batch, context = timings(1)
    seconds = truth[0] + truth[1] * batch * tokens + truth[2] * batch * context
    fit = AffineTime.fit(tokens, batch, context, seconds)
    scale = np.array([1.0, (batch * tokens).max(), (batch * context).max()])
    coefficients = np.array([fit.fixed, fit.per_token, fit.per_cached])
    np.testing.assert_allclose(coefficients * scale, truth * scale, rtol=0, atol=1e-10 * seconds.max())
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

BATCHES = np.unique(np.concatenate([np.arange(1, 25), np.geomspace(24, 1e7, 50).astype(int)]))

NEAR = 1e-9
"""A batch this close to break-even, relatively, may round to either side."""

models = st.sampled_from([LARGE, SMALL, ModelShape.dense(2, 512, 2048, 8, 8, 64, vocabulary=32000)])

drafts = st.one_of(st.none(), models)

cards = st.builds(
    lambda peak, bandwidth, overhead, link: Accelerator("any", {"bf16": 10**peak}, 10**bandwidth, overhead, link=link),
    st.floats(12, 16),
    st.floats(10, 13),
    st.sampled_from([0.0, 1e-5, 1e-3, 0.1]),
    st.sampled_from([1e10, 1e12]),
)

contexts = st.one_of(st.just(0), st.floats(0, 18).map(lambda e: int(2**e)))


def paying(cost: Roofline, shape: Shape, tokens: float, full: float) -> tuple[np.ndarray, np.ndarray]:
    """At which of BATCHES the speed-up is above 1 beyond rounding, and at which it is 1 up to rounding: a tie."""
    speedup = np.array([point.speedup for point in batch_table(cost, shape, tokens, BATCHES.tolist(), full)])
    ties = np.abs(speedup - 1) <= ROUNDING
    return (speedup > 1) & ~ties, ties


@theorem
@given(models, drafts, cards, contexts, shapes, st.floats(0, 1), st.floats(0, 1), st.sampled_from([1, 8]))
@example(LARGE, None, Accelerator("any", {"bf16": 1e14}, 1e12), 0, Chain(4), 1.0, 0.0, 1)  # ties beyond break-even
def test_break_even_against_many_batches(
    target: ModelShape,
    draft: ModelShape | None,
    card: Accelerator,
    context: int,
    shape: Shape,
    share: float,
    full: float,
    devices: int,
) -> None:
    """The batches that pay are an interval, and break-even is its upper end; infinite where the last of them pays."""
    cost = Roofline(target, draft, card, context, devices=devices)
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
@given(models, drafts, cards, contexts, shapes, st.floats(0.05, 1), st.sampled_from([0.0, 0.3, 1.0, 2.6]))
@example(LARGE, SMALL, Accelerator("any", {"bf16": 1e15}, 3e12), 0, Chain(4), 0.5, 2.6)  # two tokens read, four compute
def test_at_break_even_the_speedup_is_one(
    target: ModelShape,
    draft: ModelShape | None,
    card: Accelerator,
    context: int,
    shape: Shape,
    share: float,
    full: float,
) -> None:
    """With times written out at the batch itself, not rounded; after a full acceptance a pass is on one token more, of
    a head on what it reads.
    """
    cost = Roofline(target, draft, card, context)
    tokens = 1 + share * shape.depth
    end = break_even_batch(cost, shape, tokens, full)
    assume(end is not None and end < math.inf)
    assert end is not None
    time, small = cost.target_time, cost.draft_time
    drafting = sum(small.seconds(m, end) for m in shape.passes) if small else 0.0
    if small:
        first, fewer = shape.passes[0], math.floor(full)
        some, more = (small.seconds(first + fewer + each, end) for each in (0, 1))
        drafting += some + (full - fewer) * (more - some) - small.seconds(first, end)
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
