"""min-p at every door: options, provenance, fingerprints, traces of other versions, settings for engines."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory.cli import main
from spectheory.cost import ConstantRatio
from spectheory.deployment import Draft, engine_settings, serving_engines
from spectheory.deployment.ranking import rank_drafts
from spectheory.distributions import Sampling
from spectheory.errors import SettingError
from spectheory.measure import MeasureSettings, ModelPair, fingerprint_of_run, measure
from spectheory.prompts import Prompt
from spectheory.trace import Trace

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
