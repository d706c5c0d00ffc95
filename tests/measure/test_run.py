"""Whole measurements: what a trace holds, and that stopping at any moment loses and changes nothing."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import spectheory.measure.job as measure_texts
from spectheory.distributions import Sampling
from spectheory.errors import ModelError, SettingError, TextError, TraceError
from spectheory.measure import MeasureSettings, ModelPair, Progress, fingerprint_of_run, measure
from spectheory.measure.job import measurement_of
from spectheory.measure.machine import _most_threads
from spectheory.measure.run import run_together
from spectheory.prompts import Prompt
from spectheory.trace import MEASURED, Trace
from spectheory.trace.parquet import parts_of
from tests.measure.runner_cases import assert_equal_bytes, kept
from tests.toy_heads import with_head

PROMPTS = tuple(Prompt(f"q{i}", "even" if i % 2 == 0 else "odd", f"t{i} t{i + 1} t7") for i in range(1, 7))
SETTINGS = MeasureSettings(tokens=25, count=2, seed=3)


@pytest.fixture(scope="module")
def whole(tiny_pair: ModelPair, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """The trace of an uninterrupted measurement."""
    return measure(tiny_pair, PROMPTS, SETTINGS, tmp_path_factory.mktemp("whole") / "trace.parquet")


def test_what_a_trace_holds(whole: Trace) -> None:
    assert set(whole.columns) == set(MEASURED)
    assert [text.id for text in whole.texts[:3]] == ["q1#1", "q1#2", "q2#1"]
    assert [text.category for text in whole.texts[:3]] == ["odd", "odd", "even"]
    assert whole.texts[1].prompt == "q1"
    assert all(text.prompt_tokens for text in whole.texts)
    starts = np.concatenate([[0], np.cumsum(whole.lengths)])
    for text, start, end in zip(whole.texts, starts[:-1], starts[1:], strict=True):
        tokens = whole.columns["token"][start:end]
        assert text.ended == (tokens[-1] == 0)
        assert text.ended or text.tokens == 25
    provenance = whole.provenance
    assert provenance["origin"] == "sampled from the target"
    assert provenance["target"]["name"] == "target"
    assert provenance["settings"]["seed"] == 3
    assert provenance["prompts"]["count"] == 6
    assert {"torch", "transformers", "numpy", "spectheory"} <= set(provenance["versions"])
    shared = {name: value for name, value in provenance.items() if name != "sources"}
    assert "/tmp" not in json.dumps(shared), "paths stand in one place, which answers leave out"


def test_interrupted_and_resumed_is_the_same(tiny_pair: ModelPair, whole: Trace, tmp_path: Path) -> None:
    out = tmp_path / "trace.parquet"
    seen: list[Progress] = []

    def stop(progress: Progress) -> None:
        if progress.done == 2 + progress.resumed:
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            measure(tiny_pair, PROMPTS, SETTINGS, out, on_progress=stop)
        assert not out.exists()
    resumed = measure(tiny_pair, PROMPTS, SETTINGS, out, on_progress=seen.append)
    assert_equal_bytes(resumed, whole)
    assert seen == [Progress(4, 6, 4), Progress(5, 6, 4), Progress(6, 6, 4)]
    assert [path.name for path in tmp_path.iterdir()] == ["trace.parquet"]
    assert_equal_bytes(Trace.read(out), whole)


@pytest.mark.evidence
def test_killed_and_resumed_is_the_same(
    tiny_pair: ModelPair, tiny_folders: tuple[Path, Path], whole: Trace, tmp_path: Path
) -> None:
    """SIGKILL while texts are made; half a row at the end is not taken for a finished prompt."""
    out = tmp_path / "trace.parquet"
    code = f"""
import sys, time
from pathlib import Path
import torch
torch.set_num_threads(1)
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_run import PROMPTS, SETTINGS
from spectheory.measure import load_pair, measure
pair = load_pair({str(tiny_folders[0])!r}, {str(tiny_folders[1])!r}, device="cpu")
measure(pair, PROMPTS, SETTINGS, Path({str(out)!r}), on_progress=lambda _: time.sleep(0.5))
"""
    process = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 300
    while len(kept(out)) < 2 and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    finished, parts = kept(out), parts_of(out)
    assert 2 <= len(finished) < 6
    with parts.open("ab") as file:
        file.write(parts.read_bytes().splitlines()[-1][:100])
    seen: list[Progress] = []
    resumed = measure(tiny_pair, PROMPTS, SETTINGS, out, on_progress=seen.append)
    assert seen[0] == Progress(len(finished), 6, len(finished))
    assert_equal_bytes(resumed, whole)
    assert not parts.exists()


@pytest.mark.evidence
def test_a_resumed_measurement_has_the_threads_that_it_began_with(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """As after a full disk: meanwhile others use the cores, and torch would sum in another order."""

    def stop(progress: Progress) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    before, out, said = torch.get_num_threads(), tmp_path / "trace.parquet", list[str]()
    if _most_threads() < 2:
        pytest.skip("needs two cores")
    try:
        torch.set_num_threads(2)
        with pytest.raises(KeyboardInterrupt):
            measure(tiny_pair, PROMPTS, SETTINGS, out, batch=1, on_progress=stop)
        torch.set_num_threads(1)
        measure(tiny_pair, PROMPTS, SETTINGS, out, batch=1, on_remark=said.append)
        assert torch.get_num_threads() == 2
        assert said[0] == "torch runs on 2 threads (as asked): so this measurement began"
    finally:
        torch.set_num_threads(before)


def test_a_finished_trace_is_returned_as_it_is(tiny_pair: ModelPair, tmp_path: Path) -> None:
    out, settings = tmp_path / "trace.parquet", dataclasses.replace(SETTINGS, tokens=3)
    first = measure(tiny_pair, PROMPTS[:2], settings, out)
    written = out.stat().st_mtime_ns
    parts_of(out).touch()  # as a kill between writing and clearing up leaves it
    seen: list[Progress] = []
    again = measure(tiny_pair, PROMPTS[:2], settings, out, on_progress=seen.append)
    assert_equal_bytes(first, again)
    assert out.stat().st_mtime_ns == written
    assert seen == [Progress(2, 2, 2)]
    assert [path.name for path in tmp_path.iterdir()] == ["trace.parquet"]
    with pytest.raises(TraceError, match="trace of another measurement"):
        measure(tiny_pair, PROMPTS[:2], dataclasses.replace(settings, seed=4), out)


@pytest.mark.parametrize("change", [{"seed": 4}, {"tokens": 26}, {"sampling": Sampling(0.9)}])
def test_parts_of_other_settings_are_refused(change: dict[str, object], tiny_pair: ModelPair, tmp_path: Path) -> None:
    def stop(progress: Progress) -> None:
        if progress.done == 1:
            raise KeyboardInterrupt

    out, settings = tmp_path / "trace.parquet", dataclasses.replace(SETTINGS, tokens=3)
    with pytest.raises(KeyboardInterrupt):
        measure(tiny_pair, PROMPTS[:2], settings, out, on_progress=stop)
    with pytest.raises(TraceError, match="other settings"):
        measure(tiny_pair, PROMPTS[:2], dataclasses.replace(settings, **change), out)
    swapped = dataclasses.replace(tiny_pair, target=tiny_pair.draft, draft=tiny_pair.target)
    with pytest.raises(TraceError, match="other settings"):
        measure(swapped, PROMPTS[:2], settings, out)


@pytest.mark.parametrize("sampling", [Sampling(0), Sampling(top_k=5), Sampling(0.8, top_p=0.6)], ids=str)
def test_cut_settings(sampling: Sampling, tiny_pair: ModelPair, tmp_path: Path) -> None:
    trace = measure(
        tiny_pair, PROMPTS[:3], dataclasses.replace(SETTINGS, sampling=sampling), tmp_path / "trace.parquet"
    )
    assert (trace.columns["target_rank"] <= (5 if sampling.top_k else 64)).all()
    assert (trace.columns["log_draft"] == -np.inf).any()


def test_given_text(tiny_pair: ModelPair, tmp_path: Path) -> None:
    settings = MeasureSettings(tokens=4, given_text=True)
    prompts = (Prompt("a", "", "t1 t2", "t3 t4 t5"), Prompt("b", "", "t1", "t9 t8 t7 t6 t5 t4"))
    trace = measure(tiny_pair, prompts, settings, tmp_path / "trace.parquet")
    assert trace.columns["token"].tolist() == [3, 4, 5, 9, 8, 7, 6]
    assert trace.provenance["origin"] == "given"
    with pytest.raises(TextError, match="prompt 'q1' has no 'output'"):
        measure(tiny_pair, PROMPTS, settings, tmp_path / "other.parquet")
    with pytest.raises(TextError, match=r"text 'a', token 1 .* probability 0"):
        measure(tiny_pair, prompts, dataclasses.replace(settings, sampling=Sampling(0)), tmp_path / "other.parquet")


@pytest.mark.parametrize("head", [False, True])
def test_given_texts_are_read_once_for_all_settings(head: bool, tiny_pair: ModelPair, tmp_path: Path) -> None:
    """Each setting has the bytes of its measurement alone, also where an earlier run finished a prompt of one."""
    pair = with_head(tiny_pair) if head else tiny_pair
    prompts = [Prompt(f"q{i}", "", f"t{i} t2", output="t1 t2 t3") for i in range(1, 4)]
    every = [Sampling(0.7), Sampling(), Sampling(1.5)]
    settings = [MeasureSettings(sampling, tokens=4, given_text=True, seed=5, grown="2x2x1") for sampling in every]
    alone, passes = [], []
    hook = pair.target.network.register_forward_pre_hook(lambda *_: passes.append(1))
    for i, each in enumerate(settings):
        alone.append(measure(pair, prompts, each, tmp_path / f"alone-{i}"))
    single, passes[:] = len(passes), []

    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    jobs = {tmp_path / f"{i}": measurement_of(pair, prompts, each) for i, each in enumerate(settings)}
    with pytest.raises(KeyboardInterrupt):
        measure(pair, prompts, settings[1], tmp_path / "1", on_progress=stop)
    passes[:] = []
    traces = run_together(jobs)
    hook.remove()
    assert 3 * len(passes) == single
    for trace, expected, out in zip(traces, alone, jobs, strict=True):
        assert_equal_bytes(trace, expected)
        assert_equal_bytes(Trace.read(out), expected)
    assert traces[0].columns["log_target"].tolist() != traces[1].columns["log_target"].tolist(), "the control"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2", "alone-0", "alone-1", "alone-2"]


def test_bad_input_is_named_before_any_work(tiny_pair: ModelPair, tmp_path: Path) -> None:
    out = tmp_path / "trace.parquet"
    with pytest.raises(TextError, match="there is no prompt"):
        measure(tiny_pair, (), SETTINGS, out)
    long = Prompt("long", "", " ".join(["t1"] * 120))
    with pytest.raises(TextError, match=r"prompt 'long' has 120 tokens and 25 follow: .* 128; use --tokens 8"):
        measure(tiny_pair, (*PROMPTS, long), SETTINGS, out)
    with pytest.raises(TextError, match="shorten the prompt"):
        measure(tiny_pair, (Prompt("long", "", " ".join(["t1"] * 130)),), SETTINGS, out)
    with pytest.raises(ModelError, match="no chat template"):
        measure(tiny_pair, PROMPTS, dataclasses.replace(SETTINGS, chat_template=True), out)
    assert list(tmp_path.iterdir()) == []


def test_chat_template(tiny_folders: tuple[Path, Path], tiny_pair: ModelPair) -> None:
    from spectheory.measure.tokens import encode_prompt

    class Chatty:
        chat_template = "{{ messages }}"

        def __call__(self, *arguments: object, **options: object) -> object:
            return tiny_pair.tokenizer(*arguments, **options)

        def apply_chat_template(self, turns: list[dict[str, str]], **_: object) -> str:
            return f"t60 {turns[0]['content']} t61"

    ids = encode_prompt(Chatty(), Prompt("a", "", "t1 t2"), chat_template=True)
    assert ids.tolist() == [60, 1, 2, 61]


@pytest.mark.parametrize("change", [{"tokens": 0}, {"count": 0}, {"seed": -1}, {"chunk": 0}, {"given_text": True}])
def test_settings_are_checked(change: dict[str, int]) -> None:
    with pytest.raises(SettingError):
        dataclasses.replace(SETTINGS, **change)


def test_the_fingerprint_follows_the_token_ids_and_not_the_chunk(
    tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another tokenizer gives other ids; the chunk moves roundings alone, so a smaller one resumes the same run."""
    settings = MeasureSettings(tokens=3)
    first = fingerprint_of_run(tiny_pair, PROMPTS[:2], settings)
    assert fingerprint_of_run(tiny_pair, PROMPTS[:2], dataclasses.replace(settings, chunk=8)) == first
    fewer = dataclasses.replace(tiny_pair, vocabulary=tiny_pair.vocabulary - 1)
    assert fingerprint_of_run(fewer, PROMPTS[:2], settings) != first, "other ids could be decoded"
    encode = measure_texts.encode_prompt
    monkeypatch.setattr(measure_texts, "encode_prompt", lambda *a, **k: encode(*a, **k).flip(0))
    assert fingerprint_of_run(tiny_pair, PROMPTS[:2], settings) != first
