"""Rules that change the text, in a validation: their own law, what they are refused with, and how they are named."""

from __future__ import annotations

import pytest
import torch

from spectheory.distributions import Sampling
from spectheory.drafting import Chain
from spectheory.errors import SettingError
from spectheory.measure import MeasureSettings, ModelPair
from spectheory.measure.decoders import Method, decode
from spectheory.measure.validation import Validation
from spectheory.measure.validation.runs import expected_calls
from spectheory.measure.validation.settings import HeadLimits, settings_for
from spectheory.verification.registry import path_rule
from tests.made_up import each

K, TOKENS = 3, 14
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
    texts = decode(tiny_pair, PROMPTS, Method(name, Chain(K)), tokens=TOKENS, sampling=sampling, seed=3)
    counted = [len(text.calls) for text in texts]

    def expected(law: str, sampling: Sampling) -> list[float]:
        rule = path_rule(law, lossy=True)
        return [
            expected_calls(tiny_pair, ids, text.output_ids, sampling, rule, Chain(K), tokens=TOKENS).calls
            for ids, text in zip(PROMPTS, texts, strict=True)
        ]

    assert expected(name, sampling) == pytest.approx(counted, abs=1e-9)
    assert expected("token", Sampling()) != pytest.approx(counted, abs=1e-9)


def test_what_is_refused() -> None:
    """Heads, trees, and filters that cut tokens of an ensemble's text."""
    with pytest.raises(SettingError, match=r"thresholds.* is asked for with the draft head 'eagle'"):
        settings_for(["thresholds:0.9,0.9"], [Chain(2)], 1.0, HeadLimits("eagle", None, False))
    how = MeasureSettings(sampling=Sampling(top_k=5))
    with pytest.raises(SettingError, match=r"ensemble:0\.5 is asked for with top-k"):
        Validation(("ensemble:0.5",), (Chain(2),), (1.0,), how)
