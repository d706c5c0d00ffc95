"""Requests under load against a server played out step by step; lock-step batches by hand and by every length."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from spectheory.cost import ACCELERATORS, Accelerator, AffineCost, AffineTime, ConstantRatio, ModelShape, Roofline
from spectheory.deployment import ChainCalls, Load, LoadPoint, best_lengths, lock_step_lengths, under_load
from spectheory.deployment.batches import every_length
from spectheory.drafting import Chain
from spectheory.errors import SettingError
from spectheory.prediction.lock_step import unfinished
from spectheory.prediction.paths import calls_of_texts
from spectheory.trace import TextInfo, Trace
from spectheory.verification import TokenVerification
from tests.cost.roofline_cases import LARGE, attention_of
from tests.cost.test_roofline import SMALL
from tests.made_up import columns, each, trace

CARD = Accelerator("linked", {"bf16": 9e14}, 3e12, overhead=1e-3, memory=12e9, link=9e11)
COST = Roofline(LARGE, SMALL, CARD, context=0, devices=2)
CHAINS = [ChainCalls(Chain(k), 1 + k * 0.5, 0.2) for k in (1, 2, 4)]
EVERY = [ChainCalls(), *CHAINS]
ROUNDING = 1e-9


def played(batch: int, calls: int, further: int, prompt: float, call: float, requests: int) -> tuple[float, float]:
    """Seconds per further token of a request, and tokens per second, of a server with so many places.

    Places hold requests at different calls. In each step every place makes one call; then ended requests leave, one
    after the other, and each new one's prompt is read while all others wait.
    """
    clock, ended = 0.0, []
    left = [max(1, calls * (place + 1) // batch) for place in range(batch)]
    began = [0.0] * batch
    while len(ended) < requests:
        clock += call
        for place in range(batch):
            left[place] -= 1
            if not left[place]:
                ended.append((clock, clock - began[place]))
                clock += prompt
                left[place], began[place] = calls, clock
    settled = ended[len(ended) // 2 :]
    (first, _), (last, _) = settled[0], settled[-1]
    mean = sum(seconds for _, seconds in settled) / len(settled)
    return mean / further, (len(settled) - 1) * (further + 1) / (last - first)


def test_plain_decoding_keeps_no_draft_in_memory() -> None:
    """The largest batch of plain decoding is that of a server without a draft."""
    load = Load(prompt_tokens=700, output_tokens=61, tpot=1000)
    tight = replace(COST, devices=1, accelerator=replace(CARD, memory=20e9))
    beside, alone = (under_load(CHAINS, cost, load).targets[0] for cost in (tight, replace(tight, draft=None)))
    assert beside.k == alone.k == 0
    assert beside.batch == alone.batch > under_load(CHAINS, tight, load).targets[1].batch


@each("batch", [1, 4, 30])
@each("chain", EVERY)
def test_times_are_those_of_a_server_played_out(chain: ChainCalls, batch: int) -> None:
    """60 further tokens are a whole number of calls of every chain. Ends of the played span: 1 in 100 requests."""
    load = Load(batches=[batch], prompt_tokens=700, output_tokens=61)
    cost = replace(COST, context=730, batch=batch)
    answer = under_load([chain] if chain.k else [], COST, load)
    (best,) = answer.requests
    point = best if best.k == chain.k else targeted(chain, batch)
    prompt = cost.prompt_pass(700, drafted=chain.drafted)
    per_token, per_second = played(batch, round(60 / chain.tokens), 60, prompt, chain.seconds(cost), 100 * batch)
    assert point.tpot == pytest.approx(1e3 * per_token, rel=0.01)
    assert point.tokens_per_second == pytest.approx(per_second, rel=0.01)
    assert point.ttft == pytest.approx(1e3 * (prompt + chain.seconds(cost)))
    assert point.prompt_share == pytest.approx(prompt * point.requests_per_second)  # type: ignore[operator]


def targeted(chain: ChainCalls, batch: int) -> LoadPoint:
    """The point of a chain at a batch, by a memory that holds no more."""
    each = 730 * sum(2 * n * one.kv_heads * one.head_dim * 2 for n, one in map(attention_of, (LARGE, SMALL))) / 2
    memory = (LARGE.weight_bytes + SMALL.weight_bytes) / 2 + (batch + 0.5) * each
    full = replace(COST, accelerator=replace(CARD, memory=memory))
    answer = under_load([chain], full, Load(prompt_tokens=700, output_tokens=61, tpot=1e6))
    (point,) = (point for point in answer.targets if point.k == chain.k)
    assert point.batch == batch
    return point


def test_waiting_for_prompts_of_others_matters() -> None:
    """The control: without the B - 1 prompts of others a time would be off by more than the tolerance above."""
    cost, chain = replace(COST, context=730, batch=30), CHAINS[1]
    waited = targeted(chain, 30).tpot
    assert waited > 1.1 * 1e3 * chain.seconds(cost) / chain.tokens


@each("tpot, ttft", [(12.0, None), (8.0, 40.0), (30.0, 60.0), (None, 45.0), (1e-3, None), (None, 1e8)])
def test_the_largest_concurrency_is_that_of_a_search_through_all(tpot: float | None, ttft: float | None) -> None:
    lengths = {"prompt_tokens": 500, "output_tokens": 201}
    answer = under_load(CHAINS, COST, Load(**lengths, tpot=tpot, ttft=ttft))  # type: ignore[arg-type]
    at = replace(COST, context=600)
    limits = {"tpot": math.inf if tpot is None else tpot, "ttft": math.inf if ttft is None else ttft}
    expected = {}
    for chain in EVERY:
        meeting, before = 0, 0.0
        for batch in range(1, int((at if chain.k else replace(at, draft=None)).room) + 1):
            cost = replace(at, batch=batch)
            prompt, call = cost.prompt_pass(500, drafted=chain.drafted), chain.seconds(cost)
            decoding = 200 / chain.tokens * call
            per_token, first = (batch - 1) * prompt / 200 + decoding / 200, prompt + call
            per_second = batch * 201 / (batch * prompt + decoding)
            assert per_second > before * (1 - ROUNDING), "tokens per second grow with the batch"
            before = per_second
            if 1e3 * per_token <= limits["tpot"] and 1e3 * first <= limits["ttft"]:
                meeting = batch
        if meeting:
            expected[chain.k] = meeting
    assert {point.k: point.batch for point in answer.targets} == expected
    if answer.goodput is not None:
        assert answer.goodput.tokens_per_second == max(point.tokens_per_second for point in answer.targets)
    assert (answer.goodput is None) == (not expected)


def test_without_lengths_a_time_per_token_is_that_of_a_call() -> None:
    answer = under_load(CHAINS, COST, Load(contexts=[2048], tpot=10))
    for point in answer.targets:
        chain = next(chain for chain in EVERY if chain.k == point.k)
        step = chain.seconds(replace(COST, context=2048, batch=point.batch)) / chain.tokens
        assert point.tpot == pytest.approx(1e3 * step)
        assert point.tokens_per_second == pytest.approx(point.batch / step)
        assert (point.ttft, point.prompt_share, point.requests_per_second) == (None, None, None)
    assert not answer.requests


def test_prompts_lower_what_speculation_brings() -> None:
    """The end-to-end speed-up falls to 1 and below with the share of prompts: the draft reads them too."""
    gains = []
    for output in (8001, 801, 21):
        answer = under_load(CHAINS, COST, Load(batches=[1], prompt_tokens=4000, output_tokens=output, tpot=1e6))
        (longest,) = (point for point in answer.targets if point.k == 4)
        gains.append((longest.prompt_share, longest.speedup))
    assert gains == sorted(gains, key=lambda pair: (pair[0], -pair[1]))
    assert gains[0][1] > 1.15 > 1 > gains[-1][1]


def test_batches_that_do_not_fit_are_marked() -> None:
    answer = under_load(CHAINS, COST, Load(batches=[1, 10**5], contexts=[4096]))
    assert [choice.fits for choice in answer.batches] == [True, False]
    with_lengths = under_load(CHAINS, COST, Load(batches=[1, 10**5], prompt_tokens=4000, output_tokens=192))
    assert [point.batch for point in with_lengths.requests] == [1]
    huge = replace(COST, accelerator=replace(CARD, memory=1e9))
    assert under_load(CHAINS, huge, Load(tpot=1e6)).targets == []


def test_a_head_reads_what_was_accepted() -> None:
    """Its first pass is on accepted + 1 tokens, which counts where it computes."""
    head = replace(SMALL, fusion=1)
    cost = Roofline(LARGE, head, ACCELERATORS["L4"], context=100, batch=4000)
    chain = ChainCalls(Chain(3), tokens=3.0, full=0.4)
    passes = cost.draft_pass(3).best + 2 * cost.draft_pass(1).best
    assert chain.seconds(cost) == pytest.approx(cost.target_pass(4).best + passes)


@each(
    "given, words",
    [
        ({"tpot": 0}, "tpot is 0"),
        ({"tpot": "fast"}, "tpot is 'fast'"),
        ({"ttft": 5}, "ttft is given alone"),
        ({"output_tokens": 5}, "output_tokens is given alone"),
        ({"prompt_tokens": 5, "output_tokens": 1}, "output_tokens is 1"),
        ({"prompt_tokens": 0, "output_tokens": 9}, "prompt_tokens is 0"),
        ({"prompt_tokens": 5, "output_tokens": 9, "contexts": [5]}, "contexts is given with lengths"),
        ({"batches": 5}, "batches is 5"),
        ({"batches": [0]}, "batches is 0"),
        ({"contexts": [-1]}, "contexts is -1"),
    ],
)
def test_a_load_out_of_range(given: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        Load(**given)


AFFINE = AffineCost(AffineTime(0.02, 0.001, 1e-6), AffineTime(0.002, 0.0001, 1e-7), context=100)
RULE, KS = TokenVerification(), range(1, 5)


def by_hand(texts: Trace, k: int, batch: int, context: int) -> float:
    """Mean seconds over all batches that can be drawn: a round has a fixed time and one for each live text."""
    survival = RULE.path_survival(texts.columns, k) if k else np.zeros((len(texts), 1))
    left = unfinished(survival, texts.lengths)
    calls = calls_of_texts(survival, texts.lengths)
    full = float(calls.full.sum() / calls.expected.sum())
    target, draft = (k + 1, 1) if k else (1, 0)
    fixed = 0.02 + 0.002 * k
    each = 0.001 * target + 1e-6 * context + k * (0.0001 * draft + 1e-7 * context) + full * 0.0001 * bool(k)
    total = 0.0
    for chosen in product(range(len(texts.texts)), repeat=batch):
        gone = np.prod(1 - left[:, chosen], axis=1)
        total += float(fixed * (1 - gone).sum() + each * left[:, chosen].sum())
    return total / len(texts.texts) ** batch


@pytest.mark.parametrize("context", [0, 4000])
def test_seconds_of_batches_by_hand(context: int) -> None:
    """Rounds of every batch of three texts, one of each draw, with times that are affine in live texts."""
    texts = trace(12, 20, 16)
    choices = lock_step_lengths(texts, RULE, AFFINE, ks=KS, batches=[1, 3], contexts=[context])
    for choice in choices:
        seconds = {k: by_hand(texts, k, choice.batch, context) for k in (0, *KS)}
        best = min(seconds, key=lambda k: seconds[k])
        assert choice.k == best
        assert math.isclose(choice.speedup, seconds[0] / seconds[best], rel_tol=ROUNDING)
        assert math.isclose(choice.tokens_per_second, choice.batch * 16 / seconds[best], rel_tol=ROUNDING)


def test_one_text_is_a_batch_of_continuous_batching() -> None:
    """A batch of one waits for none; larger ones give fewer tokens per second than continuous batching."""
    texts = trace(30, 30, 30, 12)
    together = lock_step_lengths(texts, RULE, AFFINE, ks=KS, batches=[1, 8, 64], contexts=[100])
    continuous = best_lengths(texts, RULE, AFFINE, k_max=4, batches=[1, 8, 64])
    assert together[0].waiting == pytest.approx(1.0)
    assert together[0].k == continuous[0].k
    assert together[0].speedup == pytest.approx(continuous[0].speedup, rel=ROUNDING)
    for one, other in zip(together[1:], continuous[1:], strict=True):
        assert one.waiting > 1.05
        assert one.tokens_per_second < 0.99 * other.tokens_per_second


def test_the_token_of_the_prompt_s_pass_is_left_out() -> None:
    """As if each text were one token shorter, and its first call started at its second token."""
    texts = trace(12, 20, 16)
    kept = np.ones(len(texts), bool)
    kept[np.cumsum(texts.lengths) - texts.lengths] = False
    shorter = Trace({n: c[kept] for n, c in texts.columns.items()}, tuple(TextInfo(str(n), n) for n in (11, 19, 15)))
    whole = lock_step_lengths(texts, RULE, AFFINE, ks=KS, batches=[4], contexts=[0], prefill_emits_token=True)
    assert [(c.k, round(c.rounds, 9), round(c.tokens_per_second, 6)) for c in whole] == [
        (c.k, round(c.rounds, 9), round(c.tokens_per_second, 6))
        for c in lock_step_lengths(shorter, RULE, AFFINE, ks=KS, batches=[4], contexts=[0])
    ]


def test_a_head_reads_what_was_accepted_in_lock_step() -> None:
    """A batch of one is one of continuous batching for heads too; passes on four tokens compute longer than they read.
    Control: as a draft model, whose first pass is on two tokens at most, the same draft is faster.
    """
    texts = Trace.from_log_probabilities([([-1.0] * 60, [-1.05] * 60)] * 2)
    shape = ModelShape.dense(2, 4096, 14336, heads=32, kv_heads=8, head_dim=128, vocabulary=128256)
    small = ModelShape.dense(1, 2048, 8192, heads=32, kv_heads=8, head_dim=64, vocabulary=128256, tied=True, fusion=1)
    slow = replace(ACCELERATORS["H100-SXM"], peak={"bf16": 1e13})
    chosen = []
    for draft in (small, replace(small, fusion=0)):
        cost = Roofline(shape, draft, slow, context=100)
        (together,) = lock_step_lengths(texts, RULE, cost, ks=[3], batches=[1], contexts=[100])
        continuous = every_length(texts, RULE, cost, k_max=3, batches=[1], contexts=[100])[0]
        least = max((continuous[0], continuous[3]), key=lambda choice: choice.speedup)
        assert together.k == least.k == 3
        assert together.speedup == pytest.approx(least.speedup, rel=ROUNDING)
        chosen.append(together.speedup)
    assert chosen[1] > 1.01 * chosen[0]


def test_texts_of_the_prompt_s_token_alone_have_no_choice() -> None:
    assert (
        lock_step_lengths(trace(1, 1), RULE, AFFINE, ks=KS, batches=[2], contexts=[0], prefill_emits_token=True) == []
    )


def test_plain_decoding_where_drafts_are_dear() -> None:
    texts = Trace(columns(40), (TextInfo("a", 25), TextInfo("b", 15)))
    dear = AffineCost(AffineTime(0.02, 0.001), AffineTime(0.05, 0.001))
    (choice,) = lock_step_lengths(texts, RULE, dear, ks=KS, batches=[4], contexts=[0])
    assert (choice.k, choice.speedup) == (0, 1.0)
    assert choice.rounds == pytest.approx(25 - 10 * 0.5**4)


def test_a_cost_of_one_batch_is_refused() -> None:
    with pytest.raises(SettingError, match="one batch size"):
        lock_step_lengths(trace(10), RULE, ConstantRatio(0.1), ks=KS, batches=[1], contexts=[0])  # type: ignore[arg-type]
