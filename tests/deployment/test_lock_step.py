"""The best chain of lock-step batches: seconds of whole batches by hand, and beside continuous batching."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from spectheory.cost import ACCELERATORS, AffineCost, AffineTime, ConstantRatio, ModelShape, Roofline
from spectheory.deployment import best_lengths, lock_step_lengths
from spectheory.deployment.batches import every_length
from spectheory.errors import SettingError
from spectheory.prediction.lock_step import unfinished
from spectheory.prediction.paths import calls_of_texts
from spectheory.trace import TextInfo, Trace
from spectheory.verification import TokenVerification
from tests.made_up import columns, trace

COST = AffineCost(AffineTime(0.02, 0.001, 1e-6), AffineTime(0.002, 0.0001, 1e-7), context=100)
RULE, KS = TokenVerification(), range(1, 5)
ROUNDING = 1e-9


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
    choices = lock_step_lengths(texts, RULE, COST, ks=KS, batches=[1, 3], contexts=[context])
    for choice in choices:
        seconds = {k: by_hand(texts, k, choice.batch, context) for k in (0, *KS)}
        best = min(seconds, key=lambda k: seconds[k])
        assert choice.k == best
        assert math.isclose(choice.speedup, seconds[0] / seconds[best], rel_tol=ROUNDING)
        assert math.isclose(choice.tokens_per_second, choice.batch * 16 / seconds[best], rel_tol=ROUNDING)


def test_one_text_is_a_batch_of_continuous_batching() -> None:
    """A batch of one waits for none; larger ones give fewer tokens per second than continuous batching."""
    texts = trace(30, 30, 30, 12)
    together = lock_step_lengths(texts, RULE, COST, ks=KS, batches=[1, 8, 64], contexts=[100])
    continuous = best_lengths(texts, RULE, COST, k_max=4, batches=[1, 8, 64])
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
    whole = lock_step_lengths(texts, RULE, COST, ks=KS, batches=[4], contexts=[0], prefill_emits_token=True)
    assert [(c.k, round(c.rounds, 9), round(c.tokens_per_second, 6)) for c in whole] == [
        (c.k, round(c.rounds, 9), round(c.tokens_per_second, 6))
        for c in lock_step_lengths(shorter, RULE, COST, ks=KS, batches=[4], contexts=[0])
    ]


def test_a_head_reads_what_was_accepted() -> None:
    """A batch of one is one of continuous batching for heads too; passes on four tokens compute longer than they read.
    Control: as a draft model, whose first pass is on two tokens at most, the same draft is faster.
    """
    texts = Trace.from_log_probabilities([([-1.0] * 60, [-1.05] * 60)] * 2)
    shape = ModelShape(2, 4096, 14336, heads=32, kv_heads=8, head_dim=128, vocabulary=128256)
    small = ModelShape(1, 2048, 8192, heads=32, kv_heads=8, head_dim=64, vocabulary=128256, tied=True, fusion=1)
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
    assert lock_step_lengths(trace(1, 1), RULE, COST, ks=KS, batches=[2], contexts=[0], prefill_emits_token=True) == []


def test_plain_decoding_where_drafts_are_dear() -> None:
    texts = Trace(columns(40), (TextInfo("a", 25), TextInfo("b", 15)))
    dear = AffineCost(AffineTime(0.02, 0.001), AffineTime(0.05, 0.001))
    (choice,) = lock_step_lengths(texts, RULE, dear, ks=KS, batches=[4], contexts=[0])
    assert (choice.k, choice.speedup) == (0, 1.0)
    assert choice.rounds == pytest.approx(25 - 10 * 0.5**4)


def test_a_cost_of_one_batch_is_refused() -> None:
    with pytest.raises(SettingError, match="one batch size"):
        lock_step_lengths(trace(10), RULE, ConstantRatio(0.1), ks=KS, batches=[1], contexts=[0])  # type: ignore[arg-type]
