"""Prompt lookup in a trace: its columns, kept and read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from spectheory.distributions import Sampling
from spectheory.drafting import Chain
from spectheory.errors import SettingError, TraceError
from spectheory.measure import MeasureSettings, ModelPair, measure, teacher_forced
from spectheory.measure.decoders.methods import COPIES
from spectheory.prediction import plan, predict
from spectheory.prompts import Prompt
from spectheory.trace import MEASURED, Trace
from spectheory.verification import LookupMatch
from spectheory.verification.copied import LONGEST_COPY
from tests.measure.lookup_cases import END, PROMPTS, by_hand, text_trace


def test_the_columns_are_those_of_the_text(tiny_pair: ModelPair) -> None:
    for chunk in (1, 256):
        columns = teacher_forced(tiny_pair, PROMPTS[0], PROMPTS[1].repeat(3), Sampling(), chunk=chunk)
        known = by_hand(PROMPTS[0].tolist(), PROMPTS[1].repeat(3).tolist())
        assert {name: columns[name].tolist() for name in known} == known
        assert max(known["lookup_match"]) > 3
    ending = teacher_forced(tiny_pair, PROMPTS[0], PROMPTS[1][2:3].repeat(9), Sampling())
    assert ending["lookup_drafted"][0] < by_hand(PROMPTS[0].tolist(), [1])["lookup_drafted"][0]


def test_texts_that_go_on_are_drafted_for_through_ends(tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also through an end that the output does not have; what is drafted is what the decoder's own drafter does."""
    monkeypatch.setattr(ModelPair, "end_of_text", frozenset({3, 4}))
    prompt, output, k = [1, 0, 3], [1, 0, 1, 0, 4, 0], 3
    lengths, found = np.array([len(output)]), dict[bool, list[int]]()
    for stop in (True, False):
        columns = teacher_forced(tiny_pair, torch.tensor(prompt), torch.tensor(output), Sampling(), stop_at_end=stop)
        found[stop] = LookupMatch().calls_by_drafted(columns, lengths, lengths, k)[0].tolist()
    at, drafted = 0, list[int]()
    while at < len(output):
        draft = COPIES["lookup"](np.array(prompt + output[:at]), min(k, len(output) - at - 1), 3, frozenset()).tolist()
        drafted.append(len(draft))
        at += 1 + next((n for n, token in enumerate(draft) if token != output[at + n]), len(draft))
    assert drafted == [0, 3, 2, 0]
    assert found == {True: [2, 0, 2, 0], False: np.bincount(drafted).tolist()}


@pytest.mark.parametrize("stop", [True, False])
def test_measured_drafts_are_those_of_texts_that_go_on(stop: bool, tiny_pair: ModelPair, tmp_path: Path) -> None:
    prompts = [Prompt(str(i), "", f"t{i} <end> t9 t{i}") for i in range(1, 4)]
    settings = MeasureSettings(Sampling(0.5), tokens=20, stop_at_end=stop)
    trace = measure(tiny_pair, prompts, settings, tmp_path / "trace.parquet")
    start = 0
    for i, length in enumerate(trace.lengths, start=1):
        rows = slice(start, start := start + length)
        text = trace.columns["token"][rows].tolist()
        known = by_hand([i, END, 9, i], text, ends=[END] if stop and END not in text[:-1] else [])
        assert trace.columns["lookup_drafted"][rows].tolist() == known["lookup_drafted"]


# Measured and kept


def test_measured_matches(tiny_pair: ModelPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As read back from the file; what a version without the column measured is neither mixed in nor taken for it."""
    prompts = [Prompt(str(i), "", f"t{i} t9 t{i} t9 t{i}") for i in range(1, 4)]
    settings = MeasureSettings(Sampling(0.5), tokens=20)
    trace = measure(tiny_pair, prompts, settings, tmp_path / "trace.parquet")
    start = 0
    for i, length in enumerate(trace.lengths, start=1):
        text = trace.columns["token"][start : start + length].tolist()
        for name, known in by_hand([i, 9, i, 9, i], text, ends=[END]).items():
            found = trace.columns[name][start : start + length]
            assert (found.dtype, found.tolist()) == (np.int16, known)
        start += length
    ended = np.array([text.ended for text in trace.texts])
    assert trace.most_tokens.tolist() == np.where(ended, 20, trace.lengths).tolist()
    before = tuple(name for name in MEASURED if name != "lookup_drafted")
    monkeypatch.setattr("spectheory.measure.job.MEASURED", before)
    with pytest.raises(TraceError, match="another measurement"):
        measure(tiny_pair, prompts, settings, tmp_path / "trace.parquet")


def test_traces_without_matches(tmp_path: Path) -> None:
    trace = text_trace()
    trace.write(tmp_path / "new.parquet")
    old, matched = (
        Trace({n: c for n, c in trace.columns.items() if n not in less}, trace.texts, trace.provenance)
        for less in (LookupMatch.needs, LookupMatch.needs[1:])
    )
    old.write(tmp_path / "old.parquet")
    read = Trace.read(tmp_path / "new.parquet").columns["lookup_match"]
    assert (read.dtype, read.tolist()) == (np.int16, trace.columns["lookup_match"].tolist())
    with pytest.raises(TraceError, match=r"no lookup_match.*measure again with this version") as caught:
        predict(Trace.read(tmp_path / "old.parquet"), LookupMatch(), Chain(2))
    assert "\n" not in str(caught.value)
    with pytest.raises(TraceError, match=r"has no lookup_drafted.*measure again with this version"):
        predict(matched, LookupMatch(), Chain(2))
    with pytest.raises(SettingError, match=f"chain of {LONGEST_COPY + 1} copied tokens.*up to {LONGEST_COPY}"):
        predict(trace, LookupMatch(), Chain(LONGEST_COPY + 1))
    assert [list(map(str, plan(t).labels)) for t in (old, trace)] == [["token", "block"], ["token", "block", "lookup"]]
