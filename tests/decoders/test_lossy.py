"""Rules that change the text, decoded: every outcome of every draw, their calls given the text (Y7), refusals."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
import torch

from spectheory.distributions import Sampling
from spectheory.drafting import Chain
from spectheory.errors import SettingError
from spectheory.measure import MeasureSettings, ModelPair
from spectheory.measure.decoders import Method, decode
from spectheory.measure.decoders.methods import check_temperature
from spectheory.measure.validation import Validation
from spectheory.measure.validation.runs import expected_calls
from spectheory.measure.validation.settings import _HeadLimits, _settings_for
from spectheory.prediction.paths import calls_of_texts
from spectheory.trace.logits import _columns_of_logits
from spectheory.verification import PathRule, TokenVerification
from spectheory.verification.registry import path_rule
from tests.decoders.test_law import EXACT, along, outcomes
from tests.made_up import each

RULES = ("ensemble:0.4", "thresholds:single=0.7,acc=0.6", "typical:epsilon=0.3,delta=0.5", "relaxed:top=2,delta=0.3")
TOKENS, ENDS = 3, frozenset({0})
SEEDS = ((1, 2), (3, 4), (5, 6), (7, 8))


def expected(rule: PathRule, k: int, text: tuple[int, ...], seeds: tuple[int, int]) -> float:
    """Calls given a text, from its columns."""
    p, q = along(text, seeds)
    with np.errstate(divide="ignore"):
        columns = _columns_of_logits(np.log(p), np.log(q), np.array(text), Sampling(), "a text")
    ended = {"ended": len(text) < TOKENS} if not rule.lossless else {}
    survival = rule.path_survival(columns, k, **ended)
    return float(calls_of_texts(survival, np.array([len(text)])).expected[0])


@pytest.mark.parametrize("name", RULES)
def test_calls_given_the_rules_own_text(name: str) -> None:
    """Texts that end by themselves and by their length; the law of token verification is another."""
    off, k = [], 2
    for seeds in SEEDS:
        mass: dict[tuple[int, ...], float] = defaultdict(float)
        calls: dict[tuple[int, ...], float] = defaultdict(float)
        for text, count, weight in outcomes(Method(name, Chain(k)), TOKENS, ENDS, seeds=seeds):
            mass[text] += weight
            calls[text] += weight * count
        assert sum(mass.values()) == pytest.approx(1.0, abs=EXACT)
        for text in (text for text, weight in mass.items() if weight > 0):
            counted = calls[text] / mass[text]
            assert expected(path_rule(name, lossy=True), k, text, seeds) == pytest.approx(counted, abs=EXACT)
            off.append(abs(expected(TokenVerification(), k, text, seeds) - counted))
    assert max(off) > 1e-2


def test_temperature_zero() -> None:
    """Only relaxed acceptance replaces greedy decoding; the others are other rules there."""
    for name in RULES:
        for temperature in (0.0, 1.0):
            if name.startswith("relaxed") == (temperature == 0):
                check_temperature(path_rule(name, lossy=True), temperature)
            else:
                with pytest.raises(SettingError, match="at temperature"):
                    check_temperature(path_rule(name, lossy=True), temperature)


CHAIN, LONG = 3, 14
PROMPTS = [torch.tensor([1, 2, 3]), torch.tensor([7, 5, 30]), torch.tensor([40, 2, 9])]


@each(
    "name, temperature",
    [
        ("thresholds:single=0.2,acc=0.4", 1.0),
        ("typical:epsilon=0.05,delta=0.5", 1.0),
        ("relaxed:top=3,delta=0.05", 0.0),
    ],
)
def test_calls_of_first_choices_are_certain_given_their_texts(
    name: str, temperature: float, tiny_pair: ModelPair
) -> None:
    """Nothing is random given such a text: counted calls are those expected, and not those of token verification."""
    sampling = Sampling(temperature=temperature)
    texts = decode(tiny_pair, PROMPTS, Method(name, Chain(CHAIN)), tokens=LONG, sampling=sampling, seed=3)
    counted = [len(text.calls) for text in texts]

    def expected(law: str, sampling: Sampling) -> list[float]:
        rule = path_rule(law, lossy=True)
        return [
            expected_calls(tiny_pair, ids, text.output_ids, sampling, rule, Chain(CHAIN), tokens=LONG).calls
            for ids, text in zip(PROMPTS, texts, strict=True)
        ]

    assert expected(name, sampling) == pytest.approx(counted, abs=1e-9)
    assert expected("token", Sampling()) != pytest.approx(counted, abs=1e-9)


def test_what_is_refused() -> None:
    """Heads, trees, and filters that cut tokens of an ensemble's text."""
    with pytest.raises(SettingError, match=r"thresholds.* is asked for with the draft head 'eagle'"):
        _settings_for(["thresholds:0.9,0.9"], [Chain(2)], 1.0, _HeadLimits("eagle", None, False))
    how = MeasureSettings(sampling=Sampling(top_k=5))
    with pytest.raises(SettingError, match=r"ensemble:0\.5 is asked for with top-k"):
        Validation(("ensemble:0.5",), (Chain(2),), (1.0,), how)
