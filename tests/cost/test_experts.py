"""C3, C4, C7: times of mixtures of experts, latent attention and layers with a state, written out and played out."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory import Interval
from spectheory.cost import (
    ModelShape,
    Roofline,
    RooflineTime,
    Routing,
    batch_table,
    break_even_batch,
    distinct_experts,
    knee_batch,
)
from spectheory.cost.layers import Attention, Experts, Indexer, LatentAttention, Mlp, Recurrence
from spectheory.cost.roofline import ExpertTime
from spectheory.deployment.experts import expert_reading
from spectheory.drafting import Chain
from spectheory.errors import SettingError, TraceError
from tests.cost.roofline_cases import CARD
from tests.made_up import each

ATTENTION = Attention(heads=32, kv_heads=4, head_dim=128)
PARTS = ((48, ATTENTION), (48, Experts(experts=128, chosen=8, intermediate=768)))
MIXTURE = ModelShape(2048, 151936, PARTS)
"""The sizes of Qwen3-30B-A3B."""
DRAFT = ModelShape.dense(28, 1024, 3072, heads=16, kv_heads=8, head_dim=128, vocabulary=151936, tied=True)
ROUNDING = 1e-12
FACTS = json.loads((Path(__file__).parent / "published_targets.json").read_text(encoding="utf-8"))


def test_bytes_of_a_pass_by_hand() -> None:
    """Attention, router, norms and output matrix once; of 128 experts those that tokens touch."""
    attention = 2048 * 128 * (2 * 32 + 2 * 4)
    shared = 48 * (attention + 2048 * 128 + 2 * 2048) + 2048 + 151936 * 2048
    expert = 48 * 3 * 2048 * 768
    touched = 128 * (1 - (1 - 8 / 128) ** 5)
    five = MIXTURE.pass_bytes(5)
    assert five.low == 2 * (shared + 8 * expert) == MIXTURE.pass_bytes(1).best
    assert five.high == pytest.approx(2 * (shared + touched * expert), rel=ROUNDING)
    assert (five.kind, MIXTURE.pass_bytes(1).kind, MIXTURE.pass_bytes(2, 8).kind) == ("bound", "exact", "estimate")
    assert MIXTURE.weight_bytes == 2 * (shared + 128 * expert + 151936 * 2048)
    assert MIXTURE.multiplied == shared - (97 * 2048) + 8 * expert, "norms are added"
    several = distinct_experts(128, 8, 5, 3)
    assert [several.low, several.high] == pytest.approx([128 * (1 - (15 / 16) ** count) for count in (3, 15)])
    assert DRAFT.pass_bytes(1) == DRAFT.pass_bytes(500) == Interval.exact(DRAFT.read_bytes)


def simulated(experts: int, chosen: int, tokens: int, skew: float, trials: int) -> np.ndarray:
    """Distinct experts of independent tokens, whose experts are the largest of skewed scores with Gumbel noise."""
    rng = np.random.default_rng(7)
    scores = skew * np.linspace(0, 1, experts) + rng.gumbel(size=(trials, tokens, experts))
    routes = np.argpartition(scores, -chosen, axis=-1)[..., -chosen:]
    return np.array([len(np.unique(trial)) for trial in routes])


def test_bounds_against_simulated_routes() -> None:
    """Uniform routes reach the upper bound, skewed ones stay below; six sigma, a false alarm below 1e-8."""
    high = distinct_experts(64, 6, 5).high
    even, skewed = (simulated(64, 6, 5, skew, 4000) for skew in (0.0, 6.0))
    error = 6 * even.std() / math.sqrt(len(even))
    assert abs(even.mean() - high) < error
    assert 6 < skewed.mean() < high - error, "the smallest difference that is seen is the error"


def test_parts_by_hand() -> None:
    latent = LatentAttention(heads=128, q_rank=1536, kv_rank=512, nope=128, rope=64, value=128)
    by_matrix = [7168 * 1536, 1536 * 128 * 192, 7168 * 576, 512 * 128 * 256, 128 * 128 * 7168]
    assert latent.weights(7168) == sum(by_matrix)
    assert (latent.cached, latent.attended, latent.attended_in_prompt) == (576, 2 * 128 * (576 + 512), 2 * 128 * 320)
    sparse = ModelShape(64, 9, ((2, replace(latent, selected=100)), (2, Indexer(heads=2, width=16))))
    assert sparse.cache_read(1000) == 2 * 2 * (576 * 100 + 16 * 1000)
    assert sparse.cache_bytes(1000) == 2 * 2 * (576 + 16) * 1000
    attended = 2 * (2 * 128 * (576 + 512) * 100 + 2 * 2 * 16 * 1000)
    assert sparse.operations_per_token(1000) - sparse.operations_per_token(0) == attended
    assert sparse.cache_bytes(1000, 4) == sparse.cache_bytes(1000), "every device keeps a latent cache whole"
    mixed = ModelShape(
        64, 9, ((3, replace(ATTENTION, window=50)), (1, ATTENTION), (2, Recurrence(5, numbers=8, last=6)))
    )
    assert mixed.cache_bytes(1000) == 2 * 2 * 4 * 128 * (3 * 50 + 1000) + 2 * (4 * 8 + 2 * 6)
    pairs = sum(min(at + 0.5, 50.0) if at < 50 else 50.0 for at in range(1000))
    assert replace(ATTENTION, window=50).pairs(1000) == pytest.approx(pairs)


@each("batch", [1, 3, 40])
@each("tokens", [1, 5])
@each("alike", [0.0, 0.5, 1.0])
def test_times_of_a_mixture_by_hand(batch: int, tokens: int, alike: float) -> None:
    time = RooflineTime.of(MIXTURE, CARD, 1000, alike=alike)
    apart, same = (128 * (1 - (1 - 1 / 16) ** count) for count in (tokens * batch, batch))
    expert = 48 * 3 * 2048 * 768 * 2 / CARD.bandwidth
    read = MIXTURE.read_bytes / CARD.bandwidth + (alike * same + (1 - alike) * apart) * expert
    read += batch * 1000 * 48 * 2 * 4 * 128 * 2 / CARD.bandwidth
    done = batch * tokens * (2 * MIXTURE.multiplied + 48 * 4 * 32 * 128 * 1000) / CARD.peak["bf16"]
    assert time.seconds(tokens, batch) == pytest.approx(max(read, done), rel=1e-11)


def test_a_rejection_goes_back_to_a_copy_of_the_state() -> None:
    """Of every verified token one is written: by hand, in seconds."""
    hybrid = ModelShape(2048, 9, ((36, Recurrence(10**7, numbers=32 * 128 * 128)), (12, ATTENTION)))
    time = RooflineTime.of(hybrid, CARD, 0)
    state = 36 * 4 * 32 * 128 * 128 / CARD.bandwidth
    assert time.seconds(5) - time.seconds(1) == pytest.approx(4 * state)
    assert time.cache == pytest.approx(state), "and one is read"


def test_a_prompt_reads_the_experts_of_its_tokens() -> None:
    """Short against the card: reading decides, of independent tokens; a log of short texts does not matter."""
    few = 3
    expert = 48 * 3 * 2048 * 768 * 2
    read = (MIXTURE.read_bytes + 128 * (1 - (1 - 1 / 16) ** few) * expert) / CARD.bandwidth
    for log in (None, log_of(2)):
        assert Roofline(MIXTURE, None, CARD, 0, routing=log).prompt_pass(few) == pytest.approx(read)


@each("places", [2, 4, 8])
def test_the_busiest_device_of_whole_experts(places: int) -> None:
    """The mean maximum over devices of uniform routes, simulated, is below the bound and above an even split."""
    rng = np.random.default_rng(places)
    for tokens in (1, 4, 32):
        most = []
        for _ in range(400):
            hit = np.zeros(64, bool)
            for _ in range(tokens):
                hit[rng.choice(64, 6, replace=False)] = True
            most.append(hit.reshape(places, -1).sum(axis=1).max())
        found = ExpertTime(64, 6, 1.0, places=places, alike=0.0).reading(tokens, 1)
        even = ExpertTime(64, 6, 1.0, devices=places, alike=0.0).reading(tokens, 1)
        error = 6 * np.std(most) / 20  # a false alarm below 1e-8
        assert even - error <= np.mean(most) <= found + error
        assert found <= 64 / places


def test_whole_experts_take_longer_than_parts_of_each() -> None:
    linked = replace(CARD, link=9e11)
    part, whole = (
        Roofline(MIXTURE, None, linked, 100, devices=4, expert_parallel=flag).target_step().best
        for flag in (False, True)
    )
    assert part < whole < 4 * part


def log_of(tokens: int, layers: int = 48, seed: int = 0, repeat: float = 0.0) -> Routing:
    """A log of one text whose tokens keep the route of the one before with probability `repeat`."""
    rng = np.random.default_rng(seed)
    routes = rng.permuted(np.tile(np.arange(128), (tokens, layers, 1)), axis=-1)[..., :8]
    for at in range(1, tokens):
        if rng.random() < repeat:
            routes[at] = routes[at - 1]
    return Routing([routes], 128)


def test_a_log_decides_in_place_of_bounds() -> None:
    kept, fresh = log_of(200, repeat=0.8), log_of(200)
    speedups = {
        name: Roofline(MIXTURE, DRAFT, CARD, 512, routing=log).speedup(Interval.exact(3.0), Chain(3))
        for name, log in (("none", None), ("kept", kept), ("fresh", fresh))
    }
    assert speedups["kept"].best > speedups["none"].best > speedups["fresh"].best
    ends = {Roofline(MIXTURE, DRAFT, CARD, 512, routing=log).errors() for log in (kept,)}
    assert [len([*one]) for one in ends] == [2]
    assert len([*Roofline(MIXTURE, DRAFT, CARD, 512).errors()]) == 3
    reading = expert_reading(Roofline(MIXTURE, DRAFT, CARD, 512, routing=fresh), 4)
    assert reading is not None
    assert reading.distinct == Interval.exact(fresh.distinct(4))
    assert reading.ratio.best == pytest.approx(MIXTURE.pass_bytes(4, 1, fresh).best / MIXTURE.pass_bytes(1).best)


@each("tokens", [1.3, 1.7, 2.2, 3.0])
@each("draft", [None, DRAFT])
@each("log", [None, log_of(60)])
def test_break_even_with_experts_batch_by_batch(tokens: float, draft: ModelShape | None, log: Routing | None) -> None:
    """The last of all batches that pays is below the end, and the next does not pay."""
    cost = Roofline(MIXTURE, draft, CARD, 100, routing=log)
    batches = [*range(1, 60), *np.unique(np.geomspace(60, 4000, 300).astype(int)).tolist()]
    pays = [point.batch for point in batch_table(cost, Chain(3), tokens, batches) if point.speedup > 1]
    end = break_even_batch(cost, Chain(3), tokens)
    if end is None:
        assert not pays
    else:
        assert math.isfinite(end)
        assert max(pays, default=1) <= end * (1 + 1e-9)
        beyond = [batch for batch in batches if batch > end]
        assert not set(beyond) & set(pays)
        at = batch_table(cost, Chain(3), tokens, [math.floor(end), math.floor(end) + 1])
        assert at[0].speedup >= 1 - 1e-3
        assert at[1].speedup <= 1 + 1e-9


def test_small_batches_may_not_pay_where_larger_ones_do() -> None:
    """Why the end is searched: small batches read more experts to verify than for a plain step, large ones read all."""
    cost = Roofline(MIXTURE, None, CARD, 100)
    points = batch_table(cost, Chain(7), 2.0, [1, 4, 64])
    assert [point.speedup > 1 for point in points] == [False, False, True]
    assert break_even_batch(cost, Chain(7), 2.0) > 64  # type: ignore[operator]


@each("k", [1, 3, 8])
def test_the_knee_with_experts(k: int) -> None:
    cost = Roofline(MIXTURE, None, CARD, 100)
    at, time = knee_batch(cost, Chain(k)), cost.target_time
    assert time.reading(k + 1, at) == pytest.approx(at * (k + 1) * time.token, rel=1e-9)
    assert time.reading(k + 1, at / 2) > at / 2 * (k + 1) * time.token


def test_what_a_log_does_not_fit() -> None:
    with pytest.raises(SettingError, match="48 layers with 128 experts, 8 of each token: the target has no experts"):
        Roofline(DRAFT, None, CARD, 1, routing=log_of(4))
    with pytest.raises(SettingError, match="5 tokens are verified together: the longest text of the routing log has 4"):
        Roofline(MIXTURE, None, CARD, 1, routing=log_of(4)).target_pass(5)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ([], "the routing log has no texts"),
        ([[[[0, 0]]]], "an expert twice"),
        ([[[[0, 9]]]], "has expert 9"),
        ([[[[0.5, 1]]]], "needs whole numbers"),
        ([[[[0, 1]]], [[[0, 1], [0, 1]]]], "the same layers and r"),
    ],
)
def test_logs_that_are_none(texts: Any, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        Routing(texts, 4)


def test_formats_of_the_config() -> None:
    base = {"num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4}
    base |= {"vocab_size": 50, "num_local_experts": 4, "num_experts_per_tok": 2}
    for said, weights, experts in (
        ({"quant_method": "mxfp4"}, 2.0, 4.25 / 8),
        ({"quant_method": "fp8", "fmt": "e4m3"}, 1.0, 1.0),
        ({"quant_method": "awq", "bits": 4}, 0.5, 0.5),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 1.0, 1.0),
    ):
        shape = ModelShape.from_config(base | {"quantization_config": said})
        assert (shape.bytes_per_weight, shape.bytes_per_expert, shape.bytes_per_output) == (weights, experts, 2.0)
    assert (
        ModelShape.from_config(base | {"quantization_config": {"quant_method": "fp8"}}, weights="bf16").bytes_per_expert
        == 2
    )
    with pytest.raises(SettingError, match="known formats are fp32, bf16"):
        ModelShape.from_config(base | {"quantization_config": {"quant_method": "vptq"}})
    assert Mlp(intermediate=3).weights(5) == 45


STRANGE: tuple[Any, ...] = (None, 0, -1, 1.5, "x", [], {}, [7], [None], True, 10**400, math.nan)


def test_strange_configs_are_refused_in_one_line() -> None:
    """Every field of every published configuration, replaced by what it should not be."""
    said = 0
    for fact in FACTS.values():
        for name, value in itertools.product(fact["config"], STRANGE):
            with contextlib.suppress(SettingError):
                ModelShape.from_config(fact["config"] | {name: value})
                continue
            said += 1
    assert said > 500
