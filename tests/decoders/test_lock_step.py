"""Batches decoded in step: the rounds that our decoder makes are the predicted ones (§12)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from spectheory.distributions import Sampling
from spectheory.drafting import Chain
from spectheory.measure import ModelPair, load_pair, teacher_forced
from spectheory.measure.columns.noise import text_key
from spectheory.measure.decoders import Decoded, Method, decode
from spectheory.measure.tokens import encode_prompt
from spectheory.pairs import PROMPTS, resolve
from spectheory.prediction.lock_step import rounds_of_batch, unfinished
from spectheory.prompts import read_prompts
from spectheory.verification import PATH_RULES

SIGMA = 6.2
"""|z| of a right prediction exceeds this in 6e-10 of all runs (normal limit; ten batches or more)."""


def passes(batch: Sequence[Decoded]) -> int:
    """Rounds of a batch as timed: the texts of one round share its seconds."""
    return len({(call.draft_seconds, call.target_seconds, call.seconds) for one in batch for call in one.calls})


def z_values(
    pair: ModelPair, prompts: Sequence[torch.Tensor], rule: str, k: int, batch: int, tokens: int, sampling: Sampling
) -> tuple[float, float]:
    """Rounds of all batches less the predicted ones, in standard deviations; the same with the mean calls of a text."""
    decoded = decode(pair, prompts, Method(rule, Chain(k)), tokens=tokens, sampling=sampling, seed=5, batch=batch)
    counted, expected, of_means, variance = 0, 0.0, 0.0, 0.0
    for first in range(0, len(prompts), batch):
        texts = decoded[first : first + batch]
        columns = [
            teacher_forced(pair, prompts[first + i], one.output_ids, sampling, sampled=True, key=text_key(5, first + i))
            for i, one in enumerate(texts)
        ]
        together = {name: np.concatenate([one[name] for one in columns]) for name in columns[0]}
        lengths = np.array([len(one.output_ids) for one in texts])
        left = unfinished(PATH_RULES[rule].path_survival(together, k), lengths)
        longer = 1 - np.prod(1 - left, axis=1)  # P(max > t)
        mean = float(rounds_of_batch(left)[1:].sum())
        counted, expected, of_means = (
            counted + passes(texts),
            expected + mean,
            of_means + float(left.sum(axis=0).mean()),
        )
        variance += float((2 * np.arange(len(longer)) + 1) @ longer) - mean**2
    return (counted - expected) / math.sqrt(variance), (counted - of_means) / math.sqrt(variance)


def test_rounds_are_the_predicted_ones(tiny_pair: ModelPair) -> None:
    """10 batches of 10 texts of up to 40 tokens: false alarm in 6e-10. Control: the mean calls of a text."""
    prompts = [torch.tensor([i % 11 + 1, i % 7 + 1, 9]) for i in range(100)]
    right, wrong = z_values(tiny_pair, prompts, "token", 3, 10, 40, Sampling(0.9))
    assert abs(right) < SIGMA
    assert wrong > SIGMA


@pytest.mark.evidence
@pytest.mark.parametrize(("rule", "temperature"), [("token", 1.0), ("block", 1.0), ("token", 0.7)])
def test_rounds_of_the_built_in_pair(rule: str, temperature: float) -> None:
    """12 batches of 8 built-in prompts, 64 tokens each: false alarm in 6e-10; the mean calls of a text are refused."""
    pair = load_pair(resolve("builtin:target"), resolve("builtin:draft"), device="cpu")
    known = [encode_prompt(pair.tokenizer, prompt) for prompt in read_prompts(PROMPTS)]
    prompts = [known[i % len(known)] for i in range(96)]
    right, wrong = z_values(pair, prompts, rule, 4, 8, 64, Sampling(temperature))
    assert abs(right) < SIGMA
    assert wrong > SIGMA
