"""The path theorem against transformers' own assisted generation: target calls counted, not simulated."""

from __future__ import annotations

import dataclasses
import math
import sys
from types import ModuleType

import numpy as np
import pytest
import torch

from spectheory.distributions import Sampling
from spectheory.drafting import Chain, read_stop
from spectheory.drafting.history import Heuristic, MovingThreshold
from spectheory.errors import SettingError, TextError
from spectheory.judging.comparison import compare_calls
from spectheory.measure import (
    ModelPair,
    compare_with_assisted,
    count_assisted_calls,
    generate_plain,
)
from spectheory.measure.assisted import generate
from spectheory.measure.decoders import Method, decode
from spectheory.measure.forward import teacher_forced
from spectheory.measure.validation.runs import expected_calls
from spectheory.pairs import PairSource
from spectheory.prediction import predict
from spectheory.prediction.history import REPLAYS, _by_history
from spectheory.prediction.over_prompts import reach
from spectheory.prompts import Prompt
from spectheory.trace import TextInfo, Trace
from spectheory.verification import BiasedVerification, IndependentMatch, PathRule, TokenVerification


class Drawn(Heuristic):
    """The heuristic, replayed with drawn acceptances."""

    finite = False


BOUND = 5.2
"""|z| of a right prediction exceeds this in 2e-7 of all runs (normal limit; 100 calls or more with a random part each),
so that the five comparisons of this file together raise a false alarm in 1e-6."""
PROMPTS = tuple(Prompt(str(i), "", f"t{i % 60 + 1} t{i % 7 + 1} t9") for i in range(1, 21))
FEW = PROMPTS[:8]


@pytest.mark.parametrize(
    ("sampling", "k"), [(Sampling(), 1), (Sampling(), 4), (Sampling(temperature=0.7, top_k=30, top_p=0.9), 3)], ids=str
)
@pytest.mark.evidence
def test_counted_calls_are_the_predicted_ones(sampling: Sampling, k: int, tiny_pair: ModelPair) -> None:
    """About 700 tokens, standard error about 6 of 400 calls: a prediction off by 8% would be seen.

    Controls: the predictions of another rule and of another number of drafts are refused.
    """
    ids = [torch.tensor([int(t[1:]) for t in prompt.text.split()]) for prompt in PROMPTS]
    texts = count_assisted_calls(tiny_pair, ids, sampling, k=k, tokens=50, seed=10 + k)
    counted = sum(text.calls for text in texts)

    def z(drafts: int, rule: PathRule) -> float:
        read = [(prompt, text.output_ids) for prompt, text in zip(ids, texts, strict=True)]
        laws = [expected_calls(tiny_pair, *each, sampling, rule, Chain(drafts)) for each in read]
        return compare_calls(counted, laws).z

    assert abs(z(k, TokenVerification())) < BOUND
    assert abs(z(k, IndependentMatch())) > BOUND
    assert abs(z(2 if k == 1 else 1, TokenVerification())) > BOUND


def test_records(tiny_pair: ModelPair) -> None:
    runs: list[tuple[int, int]] = []
    records = compare_with_assisted(
        tiny_pair,
        FEW,
        Sampling(temperature=0.8),
        ks=(2,),
        tokens=40,
        seed=1,
        on_progress=lambda done, total: runs.append((done, total)),
    )
    (record,) = records
    assert runs == [(i, 16) for i in range(1, 17)]
    assert abs(record.z) < BOUND
    assert record.tokens_per_call == record.tokens / record.counted
    assert 0 < record.full_share < 1
    assert record.speedup > 0


def test_greedy_calls_are_exact(tiny_pair: ModelPair) -> None:
    """Nothing is random: every call is predicted, and the text is that of plain greedy generation."""
    records = compare_with_assisted(tiny_pair, FEW, Sampling(0), ks=(1, 3), tokens=40)
    for record in records:
        assert record.counted == round(record.low)
        assert record.deviation < 1e-6
        assert record.z == 0
        assert record.tokens == record.plain_tokens
    off = dataclasses.replace(records[0], deviation=0.0, counted=records[0].counted + 1)
    assert off.z == math.inf


@pytest.mark.evidence
def test_the_heuristic_of_transformers() -> None:
    """Its own loop moves k by every call, from 2 in each text, on the built-in pair. At temperature 0 every call is
    predicted; else |t| of the sum is below 6, with the deviation of 32 replays (false alarms: 1e-6). Controls: a k that
    stays 2 needs other calls.
    """
    pair = PairSource("builtin:target", "builtin:distilled").load()
    prompts = ["def read(self):\n", "import os\n\nclass ", "for name in sorted(", "    return [x for x in "]
    ids = [torch.tensor(pair.tokenizer(text).input_ids) for text in prompts]
    policies = [kind(most=120, first=2) for kind in (Heuristic, Drawn)]
    for sampling in (Sampling(0), Sampling()):
        seeds = np.random.SeedSequence(3).spawn(len(ids))
        texts = [
            generate(pair, each, sampling, 2, 120, seed, num_assistant_tokens_schedule="heuristic_transient")
            for each, seed in zip(ids, seeds, strict=True)
        ]
        read = [
            teacher_forced(pair, each, text.output_ids, sampling, race=False, sampled=True, name="text")
            for each, text in zip(ids, texts, strict=True)
        ]
        infos = tuple(TextInfo(str(i), len(text.output_ids)) for i, text in enumerate(texts))
        trace = Trace({name: np.concatenate([each[name] for each in read]) for name in read[0]}, infos)
        exact, drawn = (_by_history(trace, TokenVerification(), policy) for policy in policies)
        tokens, fixed = (
            len(trace) / each.tokens_per_call.best for each in (exact.prediction, predict(trace, "token", Chain(2)))
        )
        counted = sum(text.calls for text in texts)
        if sampling.temperature == 0:
            assert counted == pytest.approx(tokens, abs=1e-6)
            assert abs(counted - fixed) > 5
        else:
            spread = drawn.error / reach(REPLAYS - 1) * math.sqrt(REPLAYS) * tokens**2 / len(trace)
            assert abs(counted - tokens) < 6 * spread < abs(counted - fixed)


@pytest.mark.evidence
def test_the_moving_threshold_of_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own loop moves the threshold by every call, with the curve of scikit-learn in its place written out; at
    temperature 0 on the built-in pair every call is predicted. Control: a threshold that stays needs other calls.
    """
    metrics = ModuleType("sklearn.metrics")
    metrics.roc_curve = roc_curve  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sklearn", ModuleType("sklearn"))
    monkeypatch.setitem(sys.modules, "sklearn.metrics", metrics)
    pair = PairSource("builtin:target", "builtin:distilled").load()
    prompts = ["def read(self):\n", "import os\n\nclass ", "for name in sorted(", "    return [x for x in "]
    ids = [torch.tensor(pair.tokenizer(text).input_ids) for text in prompts]
    stop, seed = read_stop("token<0.4"), np.random.SeedSequence(3)
    texts = [generate(pair, each, Sampling(0), 20, 120, seed, stop=stop, moving=True) for each in ids]
    read = [
        teacher_forced(pair, each, text.output_ids, Sampling(0), race=False, sampled=True, name="text")
        for each, text in zip(ids, texts, strict=True)
    ]
    infos = tuple(TextInfo(str(i), len(text.output_ids)) for i, text in enumerate(texts))
    known = {"settings": {"sampling": {"temperature": 0.0}, "tokens": 120}}
    trace = Trace({name: np.concatenate([each[name] for each in read]) for name in read[0]}, infos, known)
    moved = _by_history(trace, TokenVerification(), MovingThreshold(most=20)).prediction
    stays = predict(trace, "token", Chain(20, stop=stop))
    counted, drafted = sum(text.calls for text in texts), sum(text.drafted for text in texts)
    assert counted == pytest.approx(len(trace) / moved.tokens_per_call.best, abs=1e-6)
    assert abs(counted - len(trace) / stays.tokens_per_call.best) > 1
    assert moved.drafted is not None
    assert moved.drafted.low <= drafted / counted <= moved.drafted.high


def roc_curve(matches: list[int], probabilities: list[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shares of wrong and of right ones at or above every threshold, from infinity down, without those on a line."""
    right, values = np.array(matches, dtype=bool), np.array(probabilities)
    points = [(0, 0, np.inf)]
    points += [
        (int((values[~right] >= at).sum()), int((values[right] >= at).sum()), at) for at in sorted({*values})[::-1]
    ]
    inner = [
        b
        for a, b, c in zip(points[1:], points[2:], points[3:], strict=False)
        if (b[0] - a[0], b[1] - a[1]) != (c[0] - b[0], c[1] - b[1])
    ]
    wrong, hits, thresholds = zip(*[*points[:2], *inner, *points[-1:]], strict=True)
    return np.array(wrong) / wrong[-1], np.array(hits) / hits[-1], np.array(thresholds)


def test_number_of_drafts_is_constant(tiny_pair: ModelPair) -> None:
    """The target sees the token before the drafts and k of them in each call, fewer only where the text ends."""
    widths: list[int] = []
    hook = tiny_pair.target.network.register_forward_pre_hook(
        lambda _, __, options: widths.append(options["input_ids"].shape[1]), with_kwargs=True
    )
    try:
        (text,) = count_assisted_calls(tiny_pair, [torch.tensor([5, 9, 11])], Sampling(), k=4, tokens=100, seed=7)
    finally:
        hook.remove()
    assert widths[0] <= 3 + 4
    assert max(widths[1:]) == 5
    assert len(widths) == text.calls
    ends = text.output_ids[-1] == 0
    assert ends or len(text.output_ids) == 100
    assert np.mean(np.array(widths[1:]) == 5) > 0.7


def test_settings_of_the_models_do_not_matter(tiny_pair: ModelPair) -> None:
    """A pair's own files may ask for another temperature, top-k or penalty; here `Sampling` alone decides."""
    ids = [torch.tensor([5, 9, 11])]
    before = count_assisted_calls(tiny_pair, ids, Sampling(), k=3, tokens=40, seed=8)
    settings = tiny_pair.target.network.generation_config
    kept = settings.to_dict()
    settings.update(temperature=0.01, top_k=1, do_sample=True, repetition_penalty=5.0, max_length=5)
    try:
        after = count_assisted_calls(tiny_pair, ids, Sampling(), k=3, tokens=40, seed=8)
        assert tiny_pair.target.network.generation_config is settings
    finally:
        settings.update(**kept)
    assert torch.equal(before[0].output_ids, after[0].output_ids)
    assert before[0].calls == after[0].calls


def test_seeds_and_the_global_generator(tiny_pair: ModelPair) -> None:
    ids = [torch.tensor([5, 9, 11])] * 2
    state = torch.random.get_rng_state()
    first, second = generate_plain(tiny_pair, ids, Sampling(), tokens=30, seed=9)
    (again, _) = generate_plain(tiny_pair, ids, Sampling(), tokens=30, seed=9)
    assert torch.equal(state, torch.random.get_rng_state())
    assert torch.equal(first.output_ids, again.output_ids)
    assert not torch.equal(first.output_ids, second.output_ids)
    assert first.calls == len(first.output_ids)


def test_bad_settings(tiny_pair: ModelPair) -> None:
    ids = [torch.tensor([1])]
    with pytest.raises(SettingError, match="k is 0"):
        count_assisted_calls(tiny_pair, ids, Sampling(), k=0, tokens=5, seed=0)
    with pytest.raises(SettingError, match="tokens is 0"):
        generate_plain(tiny_pair, ids, Sampling(), tokens=0, seed=0)
    with pytest.raises(TextError, match="there is no prompt"):
        generate_plain(tiny_pair, [], Sampling(), tokens=5, seed=0)
    with pytest.raises(TextError, match="the models take 128"):
        generate_plain(tiny_pair, ids, Sampling(), tokens=128, seed=0)


@pytest.mark.evidence
def test_calls_of_an_ensemble_are_those_given_its_text(tiny_pair: ModelPair) -> None:
    """An ensemble of weight 0.4 by transformers, and by our decoder: counted calls against their exact law given the
    texts (Y7), a false alarm in 1e-6 each. Control, on the same texts: that of token verification.
    """
    rule, k, tokens, alarm = BiasedVerification(0.6), 3, 50, 1e-6
    ids = [torch.tensor([int(t[1:]) for t in prompt.text.split()]) for prompt in PROMPTS]
    seeds = np.random.SeedSequence(31).spawn(len(ids))
    judged = [
        generate(tiny_pair, each, Sampling(), k, tokens, seed, assistant_ensemble_weight=0.4)
        for each, seed in zip(ids, seeds, strict=True)
    ]
    ours = decode(tiny_pair, ids, Method(rule.name, Chain(k)), tokens=tokens, seed=32)
    for counted, texts in (
        (sum(text.calls for text in judged), [text.output_ids for text in judged]),
        (sum(len(text.calls) for text in ours), [text.output_ids for text in ours]),
    ):

        def p_value(law: PathRule, counted: int = counted, texts: list[torch.Tensor] = texts) -> float:
            each = [
                expected_calls(tiny_pair, prompt, text, Sampling(), law, Chain(k), tokens=tokens)
                for prompt, text in zip(ids, texts, strict=True)
            ]
            return compare_calls(counted, each).p

        assert p_value(rule) > alarm
        assert p_value(TokenVerification()) < alarm
