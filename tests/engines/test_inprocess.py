"""Engines in an interpreter of their own: jobs and answers, what a crash leaves, and the form of their models."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spectheory.distributions import Sampling
from spectheory.engines.openvino.running import _OpenVinoEngine
from spectheory.errors import EngineError, SettingError
from spectheory.measure.engines import Job, Models, find_engine
from spectheory.measure.engines.inprocess import InProcess, _end_of_text
from spectheory.measure.engines.validation import _run_job
from spectheory.trace.calls import CALLS_FILE, CallLog
from tests.made_up import each, one_line

PROMPTS = (("a", (1, 2)), ("b", (3,)), ("c", (4, 5)), ("d", (6,)))
END = 50


class Toy(InProcess):
    """The toy engine; `fault` befalls the prompt that ends with `at`."""

    name = "toy"
    package = "numpy"  # any that is there
    remedy = "pip install toy"
    writes = Path(__file__).with_name("toy_model.py")
    runs = Path(__file__).with_name("toy_engine.py")
    fault, at = "none", -1

    def settings(self, job: Job) -> Mapping[str, Any]:
        """What befalls which prompt."""
        return {"fault": self.fault, "at": self.at}


def models(folder: Path, said: str = "", *, names: tuple[str, str] = ("large", "small")) -> Models:
    for name in names:
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "config.json").write_text(json.dumps({"eos_token_id": END, "name": name + said}))
    return Models(*(folder / name for name in names), folder / "work")


def job(**others: Any) -> Job:
    return Job(**{"prompts": PROMPTS, "tokens": 9, "k": 3, "seed": 1, **others})


def test_a_job_becomes_requests_in_order(tmp_path: Path) -> None:
    asked = job()
    log = _run_job(Toy(), asked, models(tmp_path), tmp_path)
    assert [(r.id, r.prompt) for r in log.requests] == list(PROMPTS)
    for (name, prompt), request in zip(PROMPTS, log.requests, strict=True):
        last = END if asked.seed_of(name) % 2 else prompt[-1]
        assert request.output == (prompt[-1],) * 8 + (last,)
        assert (request.accepted, request.calls, request.ended) == ((3, 3), 2, last == END)
        assert request.seconds is not None
    assert {r.ended for r in log.requests} == {True, False}, "the cases tell seeds apart"
    assert (log.k, log.prefill_emits_token, log.provenance["settings"]) == (3, True, {"fault": "none", "at": -1})
    without = _run_job(Toy(), job(k=None), models(tmp_path), tmp_path / "plain")
    assert {r.calls for r in without.requests} == {None}


@each(
    "fault, fragment",
    [
        ("raises", "toy stopped: IndexError: list index out of range; finished requests are kept"),
        ("dies", "toy stopped: a toy engine says hello"),  # the last line it said
        ("tears", "toy stopped: a toy engine says hello"),
    ],
)
def test_a_crash_keeps_what_is_finished_and_a_rerun_goes_on(fault: str, fragment: str, tmp_path: Path) -> None:
    class Failing(Toy):
        at = PROMPTS[2][1][-1]

    Failing.fault = fault
    out = tmp_path / fault
    with pytest.raises(EngineError) as caught:
        _run_job(Failing(), job(), models(tmp_path), out)
    assert fragment in one_line(caught)
    assert [r.id for r in CallLog.read(out / CALLS_FILE).requests] == ["a", "b"]

    class Mended(Failing):
        def requests(self, job: Job, models: Models) -> Any:
            assert [name for name, _ in job.prompts] == ["c", "d"], "finished prompts are not run again"
            self.runs_at, self.at = self.at, -1
            return super().requests(job, models)

    log = _run_job(Mended(), job(), models(tmp_path), out)
    assert log.requests == tuple(
        replace(r, seconds=mine.seconds)
        for r, mine in zip(
            _run_job(Toy(), job(), models(tmp_path), tmp_path / "whole").requests, log.requests, strict=True
        )
    )


def test_a_model_is_written_once_and_appears_when_whole(tmp_path: Path) -> None:
    def written() -> list[str]:
        return sorted(path.name.partition("-")[0] for path in (tmp_path / "work").glob("toy-*/*"))

    with pytest.raises(EngineError) as caught:
        list(Toy().requests(job(), models(tmp_path, " --fail")))
    assert "toy cannot write large in its form: a model of this kind cannot be written" in one_line(caught)
    assert written() == [], "half a model is none"
    list(Toy().requests(job(k=None), models(tmp_path)))
    assert written() == ["large"], "no draft without speculation"
    (made,) = (tmp_path / "work").glob("toy-*/large-*")
    before = (made / "model").stat().st_mtime_ns
    list(Toy().requests(job(), models(tmp_path)))
    assert written() == ["large", "small"]
    assert (made / "model").stat().st_mtime_ns == before
    list(Toy().requests(job(), models(tmp_path, " trained on")))
    assert written() == ["large", "large", "small", "small"], "other weights, another form"


def test_what_ends_a_text(tmp_path: Path) -> None:
    for content, ends in (({}, []), ({"eos_token_id": 3}, [3]), ({"eos_token_id": [3, 4]}, [3, 4])):
        (tmp_path / "config.json").write_text(json.dumps(content))
        assert _end_of_text(tmp_path) == ends
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": 7}))
    assert _end_of_text(tmp_path) == [7], "generation settings go first"


def test_a_program_that_is_no_python_is_one_line(tmp_path: Path) -> None:
    """`true` ends well and says nothing: neither a version nor a model."""
    for name in ("openvino", "vllm"):
        with pytest.raises(SettingError) as caught:
            find_engine(f"{name}=true").version()
        assert f"true says no version: must be a Python with {name}" in one_line(caught)

    class Idle(Toy):
        writes = tmp_path / "nothing.py"

    Idle.writes.touch()
    with pytest.raises(EngineError) as failed:
        list(Idle().requests(job(), models(tmp_path)))
    assert "toy cannot write large in its form: it said nothing" in one_line(failed)


@each(
    "config, fragment",
    [
        ({"model_type": "gpt2"}, "a model of type gpt2"),
        ({"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 2.0}}, "rope type linear"),
        ({"model_type": "llama", "rope_parameters": {"rope_type": "yarn"}}, "rope type yarn"),
        ({"model_type": "llama", "hidden_act": "gelu"}, "the activation gelu"),
        ({"model_type": "mistral", "sliding_window": 4096}, "sliding windows"),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": True}, "sliding windows"),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False}, ""),
        ({"model_type": "mistral", "sliding_window": None, "rope_parameters": None}, ""),
    ],
)
def test_what_openvinos_writer_does_not_know_is_refused(config: dict[str, Any], fragment: str) -> None:
    """Its function is taken out of the script, which only another interpreter can import."""
    script = ast.parse(_OpenVinoEngine.writes.read_text())
    kept: list[ast.stmt] = [
        part
        for part in script.body
        if (isinstance(part, ast.FunctionDef) and part.name == "refusal")
        or (isinstance(part, ast.Assign) and "KINDS" in ast.unparse(part))
    ]
    names: dict[str, Any] = {"Any": Any}
    exec(compile(ast.Module(kept, []), "openvino_model.py", "exec", dont_inherit=True), names)
    said = names["refusal"](config)
    assert said.startswith(fragment) if fragment else said == ""


@each("name, extra", [("openvino", "openvino"), ("onnxruntime", "onnxruntime")])
def test_a_missing_engine_says_how_to_get_it(name: str, extra: str, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # without packages
    bare.chmod(0o755)
    for python in (bare, tmp_path / "nothing"):
        with pytest.raises(SettingError) as caught:
            find_engine(f"{name}={python}").version()
        assert f"pip install 'spectheory[{extra}]'" in one_line(caught)


def test_what_an_engine_cannot_do_is_refused(tmp_path: Path) -> None:
    for engine, asked, fragment in (
        (Toy(), job(drafts="argmax"), "toy drafts no first choices at temperature 1"),
        (find_engine("onnxruntime"), job(sampling=Sampling(min_p=0.1)), "onnxruntime takes no min-p"),
    ):
        with pytest.raises(SettingError) as caught:
            list(engine.requests(asked, models(tmp_path)))
        assert fragment in one_line(caught)
    assert list(Toy().requests(job(drafts="argmax", sampling=Sampling(0)), models(tmp_path)))


def test_settings_are_the_engines_own() -> None:
    openvino = find_engine("openvino").settings(job(sampling=Sampling(0.7, top_k=9)))
    assert (openvino["temperature"], openvino["top_k"], openvino["top_p"]) == (0.7, 9, None)
    onnxruntime = find_engine("onnxruntime")
    assert onnxruntime.settings(job(sampling=Sampling(0))) == {"search": {"do_sample": False}}
    search = onnxruntime.settings(job(sampling=Sampling(0.7, top_p=0.9)))["search"]
    assert search == {"do_sample": True, "temperature": 0.7, "top_k": 0, "top_p": 0.9}, "0 keeps all tokens"
    assert not onnxruntime.prefill_emits_token
