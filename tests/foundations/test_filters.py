"""`Sampling` against transformers' own logits processors, in their order; min-p at every door."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, LogitsProcessorList

from spectheory.cli import main
from spectheory.cost import ConstantRatio
from spectheory.deployment import Draft, engine_settings, serving_engines
from spectheory.deployment.ranking import rank_drafts
from spectheory.distributions import Sampling
from spectheory.errors import SettingError
from spectheory.measure import MeasureSettings, ModelPair, fingerprint_of_run, measure
from spectheory.measure.assisted import _own_processors
from spectheory.measure.columns.pmf import log_pmf
from spectheory.prompts import Prompt
from spectheory.trace import Trace
from tests.made_up import each

ROWS, TOKENS = 20, 2000
BOUNDARY = 1e-5
"""transformers adds up 2000 probabilities in single precision, each off by 6e-8 of itself, and compares with 1 - p."""
SINGLE = 1e-5
"""Log-probabilities down to -20 in single precision."""

Filter = Callable[[Tensor, Sampling], Tensor]
OURS: dict[str, Filter] = {
    "whole sorts": lambda logits, sampling: sampling.log_pmf(logits),
    "largest entries": log_pmf,
}


def logits_of(kind: str) -> Tensor:
    """Tie-free single-precision logits, the same rounded to bfloat16, or a few values that many tokens share."""
    logits = 3 * torch.randn(ROWS, TOKENS, generator=torch.Generator().manual_seed(3))
    return {"tie-free": logits, "bfloat16": logits.bfloat16().float(), "tied": logits.round()}[kind]


@pytest.fixture(scope="module")
def network() -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, pad_token_id=0
        )
    )


def processors(network: LlamaForCausalLM, sampling: Sampling) -> LogitsProcessorList:
    """What transformers' generation builds from the same settings, in its own order."""
    settings = GenerationConfig(
        do_sample=True,
        temperature=float(sampling.temperature),
        top_k=sampling.top_k or 0,
        top_p=1.0 if sampling.top_p is None else sampling.top_p,
        min_p=sampling.min_p,
    )
    return network._get_logits_processor(
        generation_config=settings, logits_processor=LogitsProcessorList(), device="cpu"
    )


def theirs(network: LlamaForCausalLM, logits: Tensor, sampling: Sampling) -> Tensor:
    kept = processors(network, sampling)(torch.zeros(len(logits), 1, dtype=torch.long), logits)
    return torch.log_softmax(kept, dim=-1)


def at_boundary(logits: Tensor, sampling: Sampling) -> Tensor:
    """Rows in which a cumulative probability is within rounding of top-p."""
    if sampling.top_p is None:
        return torch.zeros(len(logits), dtype=torch.bool)
    scaled = logits.double() / sampling.temperature
    if sampling.top_k is not None:
        scaled = scaled.masked_fill(logits < logits.topk(sampling.top_k).values[:, -1:], -torch.inf)
    cumulative = scaled.softmax(dim=-1).sort(descending=True).values.cumsum(dim=-1)
    return ((cumulative - sampling.top_p).abs() < BOUNDARY).any(dim=-1)


def disagreement(ours: Tensor, expected: Tensor, logits: Tensor, sampling: Sampling) -> str:
    """What differs beyond what transformers leaves open; empty if nothing does."""
    decided = ~at_boundary(logits, sampling)
    assert decided.float().mean() > 0.5, "too few rows to compare"
    ours, expected, logits = ours[decided], expected[decided], logits[decided]
    kept, expected_kept = ours > -torch.inf, expected > -torch.inf
    if not torch.equal(kept.sum(dim=-1), expected_kept.sum(dim=-1)):
        return "the number of tokens kept"
    if not torch.allclose(ours.sort().values, expected.sort().values, atol=SINGLE, rtol=SINGLE):
        return "the probabilities"
    lowest = logits.masked_fill(~expected_kept, torch.inf).amin(dim=-1, keepdim=True)
    different = kept != expected_kept
    open_to_them = logits == lowest if sampling.top_p is not None else torch.zeros_like(different)
    return "which tokens are kept" if bool((different & ~open_to_them).any()) else ""


def settings() -> Iterator[Sampling]:
    choices = itertools.product((1.0, 0.7), (None, 1, 20, 50), (None, 0.5, 0.9), (None, 0.05, 1.0))
    yield from (Sampling(*choice) for choice in choices)


@pytest.mark.parametrize("kind", ["tie-free", "bfloat16", "tied"])
@pytest.mark.parametrize("way", OURS)
def test_filters_are_those_of_transformers(way: str, kind: str, network: LlamaForCausalLM) -> None:
    logits = logits_of(kind)
    for sampling in settings():
        difference = disagreement(OURS[way](logits, sampling), theirs(network, logits, sampling), logits, sampling)
        assert not difference, f"{sampling}: {difference}"


def test_ties_matter_here() -> None:
    """What the comparison rests on: rounded to bfloat16, many rows have a tie at the top-k cut, and none otherwise."""
    for kind, least, most in (("tie-free", 0.0, 0.0), ("bfloat16", 0.2, 1.0), ("tied", 0.8, 1.0)):
        ordered = logits_of(kind).sort(descending=True).values
        assert least <= (ordered[:, 49] == ordered[:, 50]).float().mean() <= most, kind


def test_wrong_filters_would_be_seen(network: LlamaForCausalLM) -> None:
    """Negative controls: ties cut at the lowest index, min-p before top-p, top-p before top-k, temperature last."""
    logits = logits_of("bfloat16")

    def refused(sampling: Sampling, kept: Tensor, temperature: float = 1.0) -> bool:
        wrong = torch.log_softmax(logits.masked_fill(~kept, -torch.inf) / temperature, dim=-1)
        return bool(disagreement(wrong, theirs(network, logits, sampling), logits, sampling))

    def kept_by(*steps: Sampling) -> Tensor:
        left = logits
        for step in steps:
            left = theirs(network, left, step)
        return left > -torch.inf

    first = logits.sort(descending=True, stable=True).indices[:, :50]
    assert refused(Sampling(top_k=50), torch.zeros_like(logits, dtype=torch.bool).scatter(1, first, True))
    assert refused(Sampling(top_p=0.9, min_p=0.05), kept_by(Sampling(min_p=0.05), Sampling(top_p=0.9)))
    assert refused(Sampling(top_k=50, top_p=0.9), kept_by(Sampling(top_p=0.9), Sampling(top_k=50)))
    assert refused(Sampling(0.7, top_p=0.9), kept_by(Sampling(top_p=0.9)), temperature=0.7)
    assert not refused(Sampling(top_k=50, top_p=0.9), kept_by(Sampling(top_k=50), Sampling(top_p=0.9)))


@each("sampling", [Sampling(), Sampling(0.7), *settings()])
def test_own_processors_are_what_generation_builds(sampling: Sampling, network: LlamaForCausalLM) -> None:
    ours, built = _own_processors(sampling), processors(network, sampling)
    assert [(type(each), vars(each)) for each in ours] == [(type(each), vars(each)) for each in built]


def test_greedy_has_no_processors() -> None:
    assert _own_processors(Sampling(0, top_k=5)) == []


PROMPTS = (Prompt("a", "", "t1 t2"), Prompt("b", "", "t3 t4"))


def trace_with(**sampling: Any) -> Trace:
    plain = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40)] * 2)
    return dataclasses.replace(plain, provenance={"settings": {"sampling": {"temperature": 1.0} | sampling}})


def engines_of(trace: Trace) -> dict[str, str]:
    settings_of_engines = engine_settings([Draft("small", trace, ConstantRatio(0.1))], k_max=4, nodes=4)
    return {settings.engine: settings.paste for settings in settings_of_engines}


def test_measured_and_recorded(tiny_pair: ModelPair, tmp_path: Path) -> None:
    settings = MeasureSettings(Sampling(0.8, min_p=0.3), tokens=12, count=1)
    trace = measure(tiny_pair, PROMPTS, settings, tmp_path / "trace.parquet")
    assert trace.provenance["settings"]["sampling"]["min_p"] == 0.3
    assert trace.sampling == settings.sampling
    assert (trace.columns["log_draft"] == -np.inf).any()


def test_it_decides_the_fingerprint(tiny_pair: ModelPair) -> None:
    marks = {
        fingerprint_of_run(tiny_pair, PROMPTS, MeasureSettings(Sampling(min_p=min_p), 9)) for min_p in (None, 0.1, 0.2)
    }
    assert len(marks) == 3


@pytest.mark.parametrize("command", ["measure", "predict", "validate"])
def test_commands_take_it(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A value out of range reaches `Sampling`, before any model is loaded."""
    assert main([command, "--min-p", "1.5", "--out", str(tmp_path / "out")]) == 2
    assert "min-p is 1.5: must be in [0, 1]" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("temperature", [1.0, 0.0])
def test_engines_without_it_have_no_settings(temperature: float) -> None:
    """Greedy decoding has no use for it."""
    plain, none, cut = (
        engines_of(trace_with(temperature=temperature, **m)) for m in ({}, {"min_p": 0.0}, {"min_p": 0.1})
    )
    able = {engine.name for engine in serving_engines() if engine.takes_min_p}
    assert set(plain) == set(none) > able & set(plain)
    assert set(cut) == (set(plain) & able if temperature else set(plain))
    assert ("min_p=0.1" in cut["transformers"]) == (temperature > 0)


def test_traces_of_versions_without_it() -> None:
    """They drew without min-p, and rank beside newer traces that leave it out."""
    before, now = trace_with(top_k=None, top_p=0.9), trace_with(top_k=None, top_p=0.9, min_p=None)
    assert before.sampling == now.sampling == Sampling(top_p=0.9)
    cost = ConstantRatio(0.1)
    assert rank_drafts([Draft("a", before, cost), Draft("b", now, cost)], k_max=2).best
    with pytest.raises(SettingError, match="differ in sampling"):
        rank_drafts([Draft("a", before, cost), Draft("b", trace_with(top_p=0.9, min_p=0.1), cost)])


@pytest.mark.parametrize("provenance", [{}, {"settings": None}, {"settings": {"sampling": {"top_k": 5}}}])
def test_traces_that_do_not_say(provenance: dict[str, Any]) -> None:
    assert dataclasses.replace(trace_with(), provenance=provenance).sampling is None
