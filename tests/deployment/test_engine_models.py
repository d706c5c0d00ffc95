"""Models in settings for engines: by the path or id they were loaded from, with revision and type; code that runs."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spectheory.cli import main
from spectheory.deployment import Draft, EngineSettings, engine_settings
from spectheory.measure import ModelPair
from spectheory.measure.job import MeasureSettings
from spectheory.measure.run import measure
from spectheory.prompts import Prompt
from spectheory.trace import Trace
from tests.toy_drafts import table, text_trace


def recorded(**provenance: Any) -> Trace:
    """A trace of texts with these facts of its models."""
    trace = text_trace(4, 0.7)
    return replace(trace, provenance={**trace.provenance, **provenance})


def of_engines(trace: Trace) -> dict[str, EngineSettings]:
    """The settings of each engine, with the draft model."""
    every = engine_settings([Draft("small", trace, table())], k_max=4, nodes=4)
    return {settings.engine: settings for settings in every if settings.candidate.prediction.rule.uses_draft}


SOURCES = {"target": "/models/my large", "draft": "org/small"}
FOLDER = {"name": "my large", "revision": None, "dtype": "bfloat16"}
ON_HUB = {"name": "org/small", "revision": "f1e2", "dtype": "bfloat16"}


def test_sources_revisions_and_types_are_pasted() -> None:
    engines = of_engines(recorded(sources=SOURCES, target=FOLDER, draft=ON_HUB))
    assert engines["vllm"].paste.startswith("vllm serve '/models/my large' --dtype bfloat16 --speculative-config ")
    assert engines["vllm"].options["model"] == "org/small"
    assert engines["vllm"].options["revision"] == "f1e2"
    sglang = engines["sglang"].paste
    assert "--model-path '/models/my large' --dtype bfloat16 " in sglang
    assert "--speculative-draft-model-path org/small --speculative-draft-model-revision f1e2 " in sglang
    assert "-m 'my large.gguf' -md small.gguf " in engines["llama.cpp"].paste
    for name, settings in engines.items():
        assert "/path/to" not in settings.paste, name
        assert not any("Replace" in line or "type of both" in line for line in settings.remarks), name


@pytest.mark.parametrize("draft", ["float32", None])
def test_a_draft_of_another_type_is_remarked(draft: str | None) -> None:
    engines = of_engines(recorded(sources=SOURCES, target=FOLDER, draft={**ON_HUB, "dtype": draft}))
    for name in ("vllm", "sglang"):
        assert any("loaded in the target's" in line for line in engines[name].remarks) == (draft is not None)


def test_old_traces_have_a_placeholder() -> None:
    engines = of_engines(recorded(target={"name": "large"}, draft={"name": "org/small"}))
    for name in ("transformers", "vllm", "sglang", "tensorrt-llm"):
        assert "/path/to/large" in engines[name].paste, name
        assert "org/small" in engines[name].paste, name
        assert engines[name].remarks[-1] == "Replace /path/to/large: the trace does not record it."
    assert "Replace" not in " ".join(engines["llama.cpp"].remarks)


def test_answers_leave_the_paths_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The trace keeps them and the lines to paste show them; provenance in JSON does not."""
    recorded(sources=SOURCES, target=FOLDER, draft=ON_HUB).write(tmp_path / "trace.parquet")
    for command in (["predict", "--c", "0.1", "--json"], ["plan", "--c", "0.1", "--nodes-max", "1", "--json"]):
        assert main([command[0], str(tmp_path), *command[1:], "--k-max", "2"]) == 0
        content = json.loads(capsys.readouterr().out)
        engines = content.pop("engines", [])
        assert SOURCES["target"] not in json.dumps(content)
        assert any(SOURCES["target"] in each["paste"] for each in engines)


def measured(pair: ModelPair, folder: Path) -> Trace:
    prompts = [Prompt(str(i), "", "t1 t2 t3") for i in range(2)]
    return measure(pair, prompts, MeasureSettings(tokens=8), folder / "trace.parquet")


def test_measured_sources_and_pasted_code_that_runs(
    tiny_pair: ModelPair, tiny_folders: tuple[Path, Path], tmp_path: Path
) -> None:
    """Transformers' lines load the models from where they were, and generate with as many drafts as planned."""
    trace = measured(tiny_pair, tmp_path)
    assert trace.provenance["sources"] == dict(zip(("target", "draft"), map(str, tiny_folders), strict=True))
    every = engine_settings([Draft("small", trace, table())], k_max=4, nodes=4)
    drafted, looked_up = (settings for settings in every if settings.engine == "transformers")
    scope: dict[str, Any] = {"inputs": tiny_pair.tokenizer("t1 t2 t3 t1 t2", return_tensors="pt")}
    for settings in (drafted, looked_up):
        loading, generating = settings.paste.rsplit("\n", 1)
        exec(loading, scope)
        text = eval(generating.replace("inputs, ", "inputs, max_new_tokens=6, "), scope)
        assert 5 < text.shape[1] <= 11
    assert str(scope["target"].dtype) == "torch.float32"
    assert scope["draft"].generation_config.num_assistant_tokens == drafted.candidate.prediction.shape.nodes


def test_tensorrt_code_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """On stand-ins that keep what they are called with."""
    arguments: dict[str, Any] = {}
    monkeypatch.setitem(sys.modules, "tensorrt_llm", SimpleNamespace(LLM=lambda **options: arguments.update(options)))
    config = SimpleNamespace(DraftTargetDecodingConfig=lambda **options: options)
    monkeypatch.setitem(sys.modules, "tensorrt_llm.llmapi", config)
    settings = of_engines(recorded(sources=SOURCES, target=FOLDER, draft=ON_HUB))["tensorrt-llm"]
    exec(settings.paste, {})
    assert arguments == {"model": SOURCES["target"], "dtype": "bfloat16", "speculative_config": settings.options}
    assert settings.options["speculative_model"] == "org/small"


def test_onnxruntime_code_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It joins the configurations of both models; the calls are on stand-ins."""
    for name in ("target", "draft"):
        (tmp_path / name).mkdir()
        config = {"model": {"decoder": {"filename": "model.onnx", "of": name}}}
        (tmp_path / name / "genai_config.json").write_text(json.dumps(config))
    arguments: dict[str, Any] = {}
    params = SimpleNamespace(
        set_search_options=lambda **given: arguments.update(given),
        set_speculative_options=lambda **given: arguments.update(given),
    )
    module = SimpleNamespace(Model=lambda folder: folder, GeneratorParams=lambda model: params)
    monkeypatch.setitem(sys.modules, "onnxruntime_genai", module)
    monkeypatch.chdir(tmp_path)
    settings = of_engines(recorded(sources=SOURCES, target=FOLDER, draft=ON_HUB))["onnxruntime"]
    exec(settings.paste, {})
    assert arguments == {**settings.options["search"], **settings.options["speculative"]}
    model = json.loads((tmp_path / "genai_config.json").read_text())["model"]
    assert model["decoder"] == {"filename": "target/model.onnx", "of": "target"}
    assert model["draft"] == {"filename": "draft/model.onnx", "of": "draft"}
    assert "-i '/models/my large' -o target -p bf16" in " ".join(settings.remarks)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_openvino_code_runs(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On stand-ins that keep what they are called with; float32 is asked for where the trace has it."""
    arguments: dict[str, Any] = {}
    pipeline = SimpleNamespace(generate=lambda prompt, **given: arguments.update(given))
    loaded: list[Any] = []
    module = SimpleNamespace(
        draft_model=lambda *where, **device: (*where, device),
        LLMPipeline=lambda *where, **options: loaded.extend([where, options]) or pipeline,
    )
    monkeypatch.setitem(sys.modules, "openvino_genai", module)
    models = {"target": {**FOLDER, "dtype": dtype}, "draft": {**ON_HUB, "dtype": dtype}}
    trace = text_trace(4, 0.7, temperature=0.0)
    trace = replace(trace, provenance={**trace.provenance, "sources": SOURCES, **models})
    settings = of_engines(trace)["openvino"]
    exec(settings.paste, {"prompt": "x"})
    assert arguments == settings.options
    exact = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"} if dtype == "float32" else {}
    assert loaded == [("my large-openvino", "CPU"), {"draft_model": ("small-openvino", "CPU", exact), **exact}]
    assert any("8 bits" in line for line in settings.remarks) == (not exact)
