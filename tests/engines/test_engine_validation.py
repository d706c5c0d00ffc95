"""``validate --engine | --server``: engines run, read back and judged; a right one agrees, wrong ones are refuted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from spectheory.cli import main, validate
from spectheory.cli.options import PairOptions
from spectheory.distributions import Sampling
from spectheory.drafting import Chain
from spectheory.measure import ModelPair, load_pair
from spectheory.measure.decoders import Method, decode
from spectheory.measure.engines import Engine, Job, Models
from spectheory.measure.engines.validation import JUDGEMENT_FILE, EngineValidation, validate_engines
from spectheory.pairs import resolve
from spectheory.prompts import Prompt
from spectheory.reports import engines_report
from spectheory.trace.calls import CALLS_FILE, Request
from tests.commands import refused
from tests.engines.stub_server import Stub, running
from tests.made_up import each


class Ours(Engine):
    """Our own decoder as an engine; `fault` changes the requests, `ran` counts them."""

    name = "ours"
    prefill_emits_token = False

    def __init__(self, pair: ModelPair, rule: str = "token", fault: Any = None) -> None:
        super().__init__()
        self.pair, self.rule, self.fault, self.ran = pair, rule, fault, 0

    def version(self) -> str:
        """None of its own."""
        return "0"

    def requests(self, job: Job, models: Models) -> Iterator[Request]:
        """Decode one prompt after another."""
        method = Method(self.rule, Chain(job.k)) if job.k else Method("plain")
        for name, prompt in job.prompts:
            self.ran += 1
            ids = [torch.tensor(prompt)]
            (one,) = decode(self.pair, ids, method, tokens=job.tokens, sampling=job.sampling, seed=job.seed_of(name))
            drafts = {"accepted": tuple(c.accepted for c in one.calls), "drafted": tuple(c.drafted for c in one.calls)}
            made = Request(name, prompt, tuple(one.output_ids.tolist()), **(drafts if job.k else {}))
            yield self.fault(made) if self.fault and job.k else made


TEXTS = tuple(Prompt(str(i), "", f"t{i + 3} t{2 * i + 5} t{i * i + 1}") for i in range(3))


def asked(*temperatures: float) -> EngineValidation:
    return EngineValidation(temperatures, (3,), tokens=60, count=2)


def one_call_more(request: Request) -> Request:
    return replace(request, accepted=(), drafted=(), total_drafted=None, calls=(request.calls or 0) + 1)


def another_token(request: Request) -> Request:
    return replace(request, output=(*request.output[:-1], (request.output[-1] + 1) % 64))


def test_a_right_engine_agrees_and_runs_once(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """False alarms: 1e-3 for the counts of a run and 1e-3 for its text, here with one fixed seed."""
    engine = Ours(tiny_pair)
    validation = validate_engines([engine], tiny_pair, TEXTS, asked(0.0, 1.0), tmp_path)
    report = engines_report(validation)
    assert report.as_dict()["agree"], report.notes
    assert report.headline == "ours 0: 4 runs, all as expected"
    runs = {run["setting"]: run for run in validation["engines"][0]["runs"]}
    assert [(name, run["requests"]) for name, run in runs.items()] == [
        ("T0-plain", 3),
        ("T0-k3", 3),
        ("T1-plain", 6),
        ("T1-k3-sampled", 6),
    ]
    calls = runs["T0-k3"]["counts"]["calls"]
    assert calls["counted"] == round(calls["expected"]["low"]) == round(calls["expected"]["high"])
    for name in runs:
        assert (tmp_path / "ours" / name / CALLS_FILE).exists()
        assert (tmp_path / "ours" / name / JUDGEMENT_FILE).exists() == ("k" in name)
    ran = engine.ran
    again = validate_engines([engine], tiny_pair, TEXTS, asked(0.0, 1.0), tmp_path)
    assert (again, engine.ran) == (validation, ran), "nothing runs twice"


def test_wrong_engines_are_refuted(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """Another rule, one call too many for each request, and another token than the target's first choice."""
    for fault, temperature, rule, where in (
        (None, 1.0, "independent", "counts"),
        (one_call_more, 0.0, "token", "counts"),
        (another_token, 0.0, "token", "output"),
    ):
        engine = Ours(tiny_pair, rule, fault)
        validation = validate_engines([engine], tiny_pair, TEXTS, asked(temperature), tmp_path / f"{fault}-{rule}")
        plain, run = validation["engines"][0]["runs"]
        assert plain["output"]["right"]
        assert {"counts": run["counts"]["fits"], "output": run["output"]["right"]}[where] is False, fault
        report = engines_report(validation)
        assert not report.as_dict()["agree"]
        assert report.headline.endswith("1 not as expected")
        assert any("its calls refute" in note for note in report.notes) == (where == "counts")
        left = "ours, T0-k3: 3 of 3 texts leave those of plain decoding by more than rounding explains: text '"
        assert any(note.startswith(left) for note in report.notes) == (where == "output")


def test_a_text_that_the_settings_exclude_is_a_verdict(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """The engine was told the settings, so a token outside them is its fault and no bad input."""
    cut = replace(asked(1.0), sampling=Sampling(1.0, top_k=1))
    report = engines_report(validate_engines([Ours(tiny_pair, fault=another_token)], tiny_pair, TEXTS, cut, tmp_path))
    assert report.headline == "ours 0: 2 runs, 1 not as expected"
    assert [run["output"]["right"] for run in report.as_dict()["engines"][0]["runs"]] == [True, False]
    (note,) = report.notes
    assert note.startswith("ours, T1-k3-sampled: its output is impossible under these settings: text '0', token ")


def test_a_server_is_judged_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The stub's texts are no model's: the status is that of a disagreement."""
    with running(Stub()) as url:
        command = ["validate", "--server", url, "--first", "2", "--tokens", "12", "--continuations", "1"]
        command += ["--temperature", "1", "--out", str(tmp_path)]
        assert main(command) == 1
        shown = capsys.readouterr().out
        assert main([*command, "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert shown.startswith("Calls and output: 1 run, 1 not as expected\nserver vllm 1.2.3\n")
    assert "WRONG" in shown
    assert max(map(len, shown.splitlines()[:4])) <= 80, "the table fits a narrow terminal"
    assert json.loads((tmp_path / "engines.json").read_text()) == answer
    assert str(tmp_path) not in json.dumps(answer)
    assert [run["setting"] for run in answer["engines"][0]["runs"]] == ["T1-k3"]


def test_questions_that_make_no_sense_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nothing = str(tmp_path / "nothing")
    for given, fragment in (
        (["--engine", "vllm", "--rule", "block"], "--rule and an engine are given"),
        (["--engine", "tgi"], "engine 'tgi' is unknown"),
        (["--engine", f"llama.cpp={nothing}"], "which is not there"),
        (["--server", "http://127.0.0.1:9"], "cannot be reached"),
        (["--engine", "vllm", "--k", "0"], "--k is 0"),
        (["--engine", "vllm", "--tokens", "0"], "--tokens is 0"),
        (["--engine", "vllm", "--dtype", "bfloat16"], "engines are started in float32"),
        (["--server", ""], "no server is named"),
        (["--server", "localhost:8000"], "is no URL"),
    ):
        assert fragment in refused(["validate", *given, "--out", tmp_path / "out"], capsys)
    with running(Stub(metrics=False)) as url:  # its answers have the counts, but nothing says k before them
        command = ["validate", "--server", url, "--first", "1", "--tokens", "8", "--out", str(tmp_path / "out")]
        assert main(command) == 2
        assert main([*command, "--k", "3", "--continuations", "1", "--temperature", "1"]) == 1
    assert "does not say how many tokens it drafts" in capsys.readouterr().err


@each("started, dtype", [(True, "float32"), (False, "auto")])
def test_output_is_read_in_the_engines_precision(started: bool, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines are started in float32, whatever the pair was saved in; what a server computes in is not known."""
    asked_for: list[PairOptions] = []

    def loaded(options: PairOptions) -> ModelPair:
        asked_for.append(options)
        return load_pair(*(resolve(f"builtin:{name}") for name in ("draft", "draft")), dtype=options.dtype)

    monkeypatch.setattr(validate, "load_named", loaded)
    validate._read_alike(PairOptions(), started)
    assert [options.dtype for options in asked_for] == [dtype]
