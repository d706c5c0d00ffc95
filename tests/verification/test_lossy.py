"""Rules that change the text: along a text of the target, from columns, and as they are written (Y7)."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from proofs_check.algorithms import enumeration
from proofs_check.library.cases import random_pmf
from proofs_check.theorems.rejections.lossy import RULES, calls, columns_of, tables
from spectheory.cost import ConstantRatio
from spectheory.deployment.engines import lossy_settings
from spectheory.distributions import Sampling
from spectheory.divergences import kl_divergence, total_variation
from spectheory.errors import SettingError, TraceError
from spectheory.prediction import plan, predict
from spectheory.trace import TextInfo, Trace
from spectheory.trace.logits import _columns_of_logits
from spectheory.verification import BiasedVerification, LossyRule
from spectheory.verification.registry import find_rule, path_rule
from tests.made_up import each

ROUNDING = 1e-12
"""Sums of a few dozen float64 products of order one."""
WRITTEN = ("ensemble:0.4", "thresholds:single=0.7,acc=0.6", "typical:epsilon=0.3,delta=0.5", "relaxed:top=2,delta=0.3")


@each("name", ["ensemble", "thresholds"])
def test_weighted_survival_is_unbiased(name: str) -> None:
    """Averaged over target texts it is one call of the engine's algorithm, enumerated; the control counts matches."""
    (position, rule), k, missed = RULES[name], 2, 0.0
    for case in tables(5, ((3, 3),), 6):
        target, draft = (
            {
                prefix: enumeration.normalised(tuple(x + Fraction(1, 9) for x in pmf))
                for prefix, pmf in case[who].items()
            }
            for who in ("target", "draft")
        )
        p, q = target.__getitem__, draft.__getitem__
        law = calls(position, False)(p, q, (), k)
        exact = [float(sum(weight for (_, count), weight in law.items() if count >= i)) for i in (1, 2)]
        low, high, matched = np.zeros(k), np.zeros(k), np.zeros(k)
        for text, chance in enumeration.text_law(p, k).items():
            columns = columns_of(p, q, text)
            low += float(chance) * rule.weighted_survival(columns, k)[0]
            high += float(chance) * rule.weighted_survival_above(columns, k)[0]
            matched += float(chance) * path_rule(rule.beside).path_survival(columns, k)[0]
        np.testing.assert_allclose(low, exact, atol=ROUNDING)
        np.testing.assert_allclose(high, exact, atol=ROUNDING)
        missed = max(missed, float(abs(matched - exact).max()))
    assert missed > 1e-2


@each("name", ["typical", "relaxed"])
def test_survival_where_every_prefix_is_alike(name: str) -> None:
    """There the estimate of rules that write first choices is one call of the algorithm."""
    (position, rule), k, seen = RULES[name], 2, set()
    for seed in range(30):
        rng = random.Random(seed)
        p, q = (random_pmf(rng, 3) for _ in range(2))
        law = calls(position, True)(lambda _, p=p: p, lambda _, q=q: q, (), k)
        exact = [float(sum(weight for (_, count), weight in law.items() if count >= i)) for i in (1, 2)]
        survival = rule.weighted_survival(columns_of(lambda _, p=p: p, lambda _, q=q: q, (0, 1)), k)[0]
        np.testing.assert_allclose(survival, exact, atol=ROUNDING)
        seen.add(tuple(exact))
    assert len(seen) == 2, "accepted and rejected"


@each("name", RULES)
def test_what_a_position_pays(name: str) -> None:
    """TV and KL of the output law from the target, by their definitions; of an ensemble in the mean over its tokens."""
    _, rule = RULES[name]
    for seed in range(20):
        p, q = (rng := np.random.default_rng(seed)).dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
        columns = columns_of(lambda _, p=p: tuple(p), lambda _, q=q: tuple(q), (0, 1, 2, 3))
        law = rule.output_law(p, q)
        paid, nats = rule.changed(columns) @ p, rule.nats(columns) @ p
        if rule.greedy:
            best, output = int(p.argmax()), int(law.argmax())
            assert paid == pytest.approx(float(best != output), abs=ROUNDING)
            assert nats == pytest.approx(float(np.log(p[best] / p[output])), abs=ROUNDING)
        else:
            assert paid == pytest.approx(float(total_variation(law, p)), abs=ROUNDING)
            assert nats == pytest.approx(float(kl_divergence(law, p)), abs=ROUNDING)


@each(
    "written, fragment",
    [
        ("ensemble:1.5", "the weight is 1.5"),
        ("ensemble", "it has the settings weight"),
        ("thresholds:single=0", "it has the settings single, acc"),
        ("thresholds:single=0,acc=1", "the threshold single is 0"),
        ("typical:0.1,2", "delta is 2"),
        ("relaxed:top=1.5,delta=0.1", "top is 1.5"),
        ("relaxed:top=ten,delta=0.1", "it has the settings top, delta"),
        ("relaxed:top=3,delta=0.1,more=1", "it has the settings top, delta"),
    ],
)
def test_what_is_refused(written: str, fragment: str) -> None:
    """In one line that says what to write."""
    with pytest.raises(SettingError, match=fragment):
        find_rule(written)


def a_trace(temperature: float = 1.0, *, choices: bool = True) -> Trace:
    """Two short texts of random pmfs."""
    rng, parts = np.random.default_rng(4), []
    for name in "ab":
        target, draft = rng.normal(size=(2, 12, 4))
        tokens = np.array([rng.choice(4, p=row / row.sum()) for row in np.exp(target)])
        parts.append(_columns_of_logits(target, draft, tokens, Sampling(), name))
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if not choices:
        whole = {name: values for name, values in whole.items() if not name.startswith("choice")}
    sampling = {"temperature": temperature, "top_k": None, "top_p": None}
    texts = (TextInfo("a", 12), TextInfo("b", 12))
    return Trace(whole, texts, {"settings": {"sampling": sampling, "tokens": 12}})


def test_a_plan_names_them_beside_the_lossless_rule() -> None:
    """They are no predictions and never the best; the lossless rule stands beside them, with as many drafts."""
    answer = plan(a_trace(), ConstantRatio(0.1), rules=["ensemble:0.4", "thresholds:0.9,0.9"], k_max=3)
    assert {p.rule.name for p in answer.predictions} == {"token", "argmax"}
    assert all(p.rule.lossless for p in answer.predictions)
    assert [point.rule.name for point in answer.bias] == ["ensemble:0.4", "thresholds:single=0.9,acc=0.9"]
    for point in answer.bias:
        best = max(answer.of(point.rule.beside), key=lambda p: p.gain)
        assert point.k == best.shape.nodes
        assert point.tokens_per_call.best > best.tokens_per_call.best
        assert "changes the text" in point.name
        assert point.nats is not None


def test_lossless_settings_predict_the_lossless_rule() -> None:
    """Thresholds of 1 are argmax, and weight 1 is token verification; both cost nothing."""
    for written in ("ensemble:1", "thresholds:1,1"):
        (point,) = plan(a_trace(), rules=[written], k_max=2).bias
        assert isinstance(point.rule, LossyRule)
        lossless = predict(a_trace(), point.rule.beside, plan(a_trace(), k_max=2, trees=False).best.shape)
        assert point.bias.best == pytest.approx(0.0, abs=ROUNDING)
        assert point.nats is not None
        assert point.nats.best == pytest.approx(0.0, abs=ROUNDING)
        assert point.k == lossless.shape.nodes


def test_a_weight_that_transformers_refuses_is_not_pasted() -> None:
    """It takes weights between 0 and 1; 0 writes the draft's own text."""
    GenerationConfig = pytest.importorskip("transformers").GenerationConfig
    with pytest.raises(ValueError, match="open interval"):
        GenerationConfig(assistant_ensemble_weight=0.0)
    lines = lossy_settings([BiasedVerification(1.0), BiasedVerification(0.5)])
    assert ["assistant_ensemble_weight" in line for line in lines] == [False, True]


def test_a_trace_with_half_of_the_moments_is_predicted() -> None:
    """The idealised values need both moments of the surprisal; typical acceptance reads the first."""
    trace = a_trace()
    fewer = {name: values for name, values in trace.columns.items() if name != "target_second_moment"}
    assert len(fewer) == len(trace.columns) - 1
    cut = plan(replace(trace, columns=fewer), rules=[WRITTEN[2]], k_max=2)
    assert cut.bias == plan(trace, rules=[WRITTEN[2]], k_max=2).bias


def test_what_a_trace_lacks() -> None:
    """Old traces, other temperatures, and questions that only lossless rules answer."""
    with pytest.raises(TraceError, match="no choice_target, choice_top, choice_rank"):
        plan(a_trace(choices=False), rules=["thresholds:0.9,0.9"])
    with pytest.raises(SettingError, match=r"relaxed.* at temperature 1: it replaces greedy decoding"):
        plan(a_trace(), rules=[WRITTEN[3]])
    with pytest.raises(SettingError, match="it changes the text"):
        predict(a_trace(), WRITTEN[0], plan(a_trace(), k_max=2, trees=False).best.shape)
