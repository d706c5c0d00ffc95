"""Decoders on real pairs: losslessness with a stated power, and the predicted calls and rounds (§12)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from spectheory.distributions import Sampling
from spectheory.drafting import Chain, KAry, Shape, Tree
from spectheory.measure import ModelPair, load_pair, teacher_forced
from spectheory.measure.columns.noise import text_key
from spectheory.measure.decoders import Decoded, Method, decode
from spectheory.measure.decoders.verifiers import Verifier
from spectheory.measure.reading import Reading
from spectheory.measure.tokens import encode_prompt
from spectheory.pairs import PROMPTS, resolve
from spectheory.prediction.lock_step import rounds_of_batch, unfinished
from spectheory.prediction.paths import TextCalls, calls_of_texts, calls_of_tree, tree_survival
from spectheory.prompts import read_prompts
from spectheory.verification import PATH_RULES, RankRule
from tests.decoders.test_law import p_value, too_generous

FALSE_ALARM = 1e-9
"""Each test refuses a right decoder this often (asymptotically)."""
TEXTS = 600
Floats = NDArray[np.float64]


@pytest.fixture(scope="module")
def builtin() -> ModelPair:
    return load_pair(resolve("builtin:target"), resolve("builtin:draft"), device="cpu")


@pytest.fixture(scope="module")
def prompt(builtin: ModelPair) -> torch.Tensor:
    """The beginning of a prompt after which target and draft differ (TV 0.32)."""
    return encode_prompt(builtin.tokenizer, read_prompts(PROMPTS)[10])[:4]


@pytest.fixture(scope="module")
def laws(builtin: ModelPair, prompt: torch.Tensor) -> list[Floats]:
    """The target's law of the first output token, and of the second whatever the first."""
    reading = Reading(builtin.target, builtin.vocabulary)
    first = reading.read(prompt[None])[0]
    reading.select(torch.zeros(builtin.vocabulary, dtype=torch.int64))
    second = reading.read(torch.arange(builtin.vocabulary)[:, None])[:, 0]
    first, second = (logits.double().softmax(-1).numpy() for logits in (first, second))
    return [first[0], first[0] @ second]


@pytest.mark.parametrize(
    ("method", "verifier"),
    [
        (Method("block", Chain(2)), None),
        pytest.param(Method("recursive-distinct", KAry((2, 2))), None, marks=pytest.mark.evidence),
        (Method("token", Chain(2)), too_generous),
    ],
    ids=["block", "recursive-distinct", "too generous"],
)
def test_output_tokens_follow_the_target(
    method: Method, verifier: Verifier | None, builtin: ModelPair, prompt: torch.Tensor, laws: list[Floats]
) -> None:
    """First and second tokens of 600 texts, in batches of 100: false alarm in 1e-9, sees a total variation of 26%.

    Control: a decoder whose first token is off by 29% is refused.
    """
    decoded = decode(
        builtin, [prompt] * TEXTS, method, tokens=3, seed=1, batch=100, stop_at_end=False, verifier=verifier
    )
    texts = torch.stack([one.output_ids for one in decoded]).numpy()
    values = []
    for tokens, law in zip(texts.T.tolist(), laws, strict=False):
        values.append(p_value([(token,) for token in tokens], {(i,): mass for i, mass in enumerate(law.tolist())}))
    if verifier is None:
        assert min(values) > FALSE_ALARM
    else:
        assert values[0] < FALSE_ALARM


WARM, CUT = Sampling(0.9), Sampling(0.7, top_k=30, top_p=0.9)
PREDICTED: list[tuple[str, Shape, Sampling]] = [
    ("block", Chain(4), WARM),
    ("race", Tree.from_paths([(1,), (2,), (1, 1), (3,), (2, 1), (2, 3)]), WARM),
    ("recursive", KAry((2, 2, 1)), WARM),
    ("recursive-distinct", KAry((2, 2)), WARM),
    ("topk", KAry((3, 2)), CUT),
    ("lookup", Chain(5), WARM),
]
MORE: list[tuple[str, Shape, Sampling]] = [
    ("token", Chain(4), WARM),
    ("block", Chain(3), CUT),
    ("race", Chain(3), WARM),
    ("race", KAry((2, 2)), CUT),
    ("poisson", KAry((3, 2)), WARM),
    ("independent", Chain(2), WARM),
    ("argmax", Chain(2), WARM),
]
"""The rest of the rules, whose laws test_law.py enumerates."""
SIGMA = 6.2
"""|z| of a right prediction exceeds this in 6e-10 of all runs (normal limit; 400 calls or so with a random part)."""


def predicted(
    pair: ModelPair,
    prompts: Sequence[torch.Tensor],
    texts: Sequence[torch.Tensor],
    rule: str,
    shape: Shape,
    sampling: Sampling,
) -> TextCalls:
    """Calls of the very texts by the path theorem, from one teacher-forced pass (§7)."""
    columns = [
        teacher_forced(pair, before, text, sampling, sampled=True, key=text_key(0, i))
        for i, (before, text) in enumerate(zip(prompts, texts, strict=True))
    ]
    together = {name: np.concatenate([one[name] for one in columns]) for name in columns[0]}
    lengths = np.array([len(text) for text in texts])
    path_rule = PATH_RULES[rule]
    if isinstance(path_rule, RankRule) and not isinstance(shape, Chain):
        law = path_rule.rank_law(together, shape.max_rank)
        return calls_of_tree(*tree_survival(law, shape.tree()), lengths, variance=True)
    return calls_of_texts(path_rule.path_survival(together, shape.depth), lengths)


def z_value(counted: int, calls: TextCalls) -> float:
    """Counted less predicted calls in standard deviations; 0 where nothing is random and they agree."""
    off, deviation = counted - float(calls.expected.sum()), math.sqrt(calls.variance.sum())
    return off / deviation if deviation > 1e-3 else 0.0 if abs(off) < 1e-3 else math.copysign(math.inf, off)


TINY_PROMPTS = [torch.tensor([i + 1, i % 7 + 1, 9]) for i in range(20)]


@pytest.mark.parametrize(
    ("rule", "shape", "sampling"),
    [*PREDICTED, *(pytest.param(*each, marks=pytest.mark.evidence) for each in MORE)],
    ids=str,
)
def test_calls_are_the_predicted_ones(rule: str, shape: Shape, sampling: Sampling, tiny_pair: ModelPair) -> None:
    """20 texts of up to 50 tokens; a prediction off by about 8% would be seen. Matching sampled tokens is not random.

    The control is the next test.
    """
    decoded = decode(tiny_pair, TINY_PROMPTS, Method(rule, shape), tokens=50, sampling=sampling, seed=11, batch=20)
    calls = predicted(tiny_pair, TINY_PROMPTS, [one.output_ids for one in decoded], rule, shape, sampling)
    assert abs(z_value(sum(len(one.calls) for one in decoded), calls)) < SIGMA


@pytest.mark.evidence
def test_a_wrong_prediction_is_seen(tiny_pair: ModelPair) -> None:
    """Negative control: the calls of another rule and of another number of drafts."""
    decoded = decode(tiny_pair, TINY_PROMPTS, Method("race", Chain(3)), tokens=50, sampling=WARM, batch=20)
    texts, counted = [one.output_ids for one in decoded], sum(len(one.calls) for one in decoded)
    for rule, k in (("independent", 3), ("race", 1)):
        assert abs(z_value(counted, predicted(tiny_pair, TINY_PROMPTS, texts, rule, Chain(k), WARM))) > SIGMA


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


@pytest.mark.evidence
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
