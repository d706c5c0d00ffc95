"""``spectheory plan`` on recorded traces: answers and files."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path
from typing import Any

import pytest

from spectheory.cli import console, main
from spectheory.cost import ConstantRatio, LatencyTable
from spectheory.deployment import Draft, plan, serving_engines
from spectheory.drafting import read_stop
from spectheory.reports import deployment_report
from spectheory.trace import Trace
from tests.cli.plan_cases import CONFIG, asked, latencies, measured
from tests.made_up import each

SAMPLING = [engine for engine in serving_engines() if engine.name != "openvino"]
"""Engines with settings above temperature 0."""


def test_json_has_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = asked([str(measured(tmp_path / "small")), "--k-max", "4", "--nodes-max", "8"], capsys)
    assert {
        *("rule", "shape", "draft", "tokens_per_call", "speedup", "runner_up", "break_even", "limits", "batches"),
        *("engines", "provenance", "verdict", "told_apart", "candidates", "drafts", "headline", "notes"),
    } <= set(content)
    assert set(content["speedup"]) == {"low", "best", "high", "kind"}  # type: ignore[call-overload]
    candidates = content["candidates"]
    assert isinstance(candidates, list)
    # Chains of token, block and race; trees of recursive rejection and of first choices.
    kinds = {(c["rule"], c["kind"]) for c in candidates}
    chains = {(name, "chain") for name in ("token", "block", "race")}
    assert kinds == chains | {("recursive", "tree"), ("topk", "tree")}
    gains = [c["speedup"]["best"] for c in candidates]
    assert gains == sorted(gains, reverse=True)
    assert content["batches"] is None
    limits = content["limits"]
    assert isinstance(limits, dict)
    names = [distance["name"] for distance in limits["distances"]]
    assert sum(name.startswith("B7") for name in names) == 1, "of the fastest chain where the best is a tree"
    assert {"B6", "B2'", "T1"} <= set(names)
    engines = [(e["engine"], e["version"]) for e in content["engines"]]  # type: ignore[attr-defined]
    assert engines == [(engine.name, engine.version) for engine in SAMPLING]


def test_drafts_are_ranked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same acceptance at three costs."""
    folders = {name: measured(tmp_path / name, draft=c) for name, c in (("b", 0.3), ("c", 0.6), ("a", 0.05))}
    arguments = [f"--trace={name}={folder}" for name, folder in folders.items()]
    content = asked([*arguments, "--nodes-max", "4", "--k-max", "4"], capsys)
    assert [d["draft"] for d in content["drafts"]] == ["a", "b", "c"]  # type: ignore[attr-defined]
    assert content["draft"] == "a"
    assert set(content["provenance"]) == {"a", "b", "c"}  # type: ignore[call-overload]


def test_a_losing_pair_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = measured(tmp_path / "dear", spread=2.0)
    command = [str(folder), "--c", "2", "--nodes-max", "4"]
    content = asked(command, capsys)
    assert content["verdict"] == "do not speculate"
    headline, needs = str(content["headline"]), content["break_even"]
    assert headline.startswith("Do not speculate; best: ")
    assert isinstance(needs, dict)
    assert needs["draft_ratio"] == pytest.approx(2.0)
    assert f"a draft pass of {needs['draft_ratio_needed']:.2f} target steps" in headline
    assert main(["plan", *command]) == 0
    assert capsys.readouterr().out.startswith("Do not speculate; best: ")
    assert main(["plan", *command, "--all"]) == 0
    assert "Does not pay under this engine's rule" in capsys.readouterr().out


def test_hardware_plans_batches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = measured(tmp_path / "small"), tmp_path / "out"
    large, small = tmp_path / "large", tmp_path / "small.json"
    large.mkdir()
    (large / "config.json").write_text(json.dumps(CONFIG))
    small.write_text(json.dumps({"text_config": {**CONFIG, "num_hidden_layers": 4}}))
    arguments = [str(folder), "--hardware", "H100-SXM", f"--target-architecture={large}"]
    arguments += [f"--draft-architecture={small}", "--context", "256", "--context", "4096", "--k-max", "5"]
    content = asked([*arguments, "--nodes-max", "1", "--out", str(out)], capsys)
    batches = content["batches"]
    assert isinstance(batches, dict)
    points = [(c["context"], c["batch"]) for c in batches["choices"]]
    assert points == [(context, 2**i) for context in (256, 4096) for i in range(9)]
    assert [(c["context"], c["batch"]) for c in batches["lock_step"]] == points
    for together, apart in zip(batches["lock_step"], batches["choices"], strict=True):
        assert (together["tokens_per_second"] < apart["tokens_per_second"] * 0.99) == (together["batch"] > 1)
        assert (together["waiting"] > 1.01) == (together["batch"] > 1)
    assert {path.name for path in out.iterdir()} == {
        *("plan.json", "plan.png", "plan.svg", "batches.png", "batches.svg")
    }
    assert json.loads((out / "plan.json").read_text()) == content
    one = asked([*arguments, "--batch", "64", "--nodes-max", "1"], capsys)
    assert one["speedup"]["best"] < content["speedup"]["best"]  # type: ignore[index]
    assert main(["plan", *arguments, "--nodes-max", "1"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "context 4096" in words
    assert "in lock-step" not in words
    assert main(["plan", *arguments, "--nodes-max", "1", "--all"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "in lock-step: best k" in words
    assert "Batches of more than 4 texts repeat texts of the trace" in words
    assert main(["plan", *arguments, "--nodes-max", "1", "--batch", "1", "--batch", "5000", "--all"]) == 0
    out = capsys.readouterr().out
    assert "Batches of more than" not in out
    assert "Lock-step is planned up to 1024 texts." in out


def test_log_probabilities_and_greedy_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_text('{"target": [-1, -0.5], "draft": [-2, -0.1]}\n{"target": [-1], "draft": [-2]}\n')
    content = asked(["--logprobs", str(file), "--c", "0.1", "--k-max", "2"], capsys)
    assert content["rule"] in ("token", "block")
    greedy = asked([str(measured(tmp_path / "small", temperature=0.0))], capsys)
    assert {c["kind"] for c in greedy["candidates"]} == {"chain"}  # type: ignore[attr-defined]
    assert any("Greedy decoding" in note for note in greedy["notes"])  # type: ignore[attr-defined]


def test_latencies_of_another_machine_are_remarked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = measured(tmp_path / "small")
    here = f"{platform.system()} {platform.machine()}"
    latencies(folder / "latency.json", system=here, cpu="Abacus 9")
    assert main(["plan", str(folder), "--k-max", "2", "--nodes-max", "1", "--json"]) == 0
    out, err = capsys.readouterr()
    assert "of another machine: measured on Abacus 9" in err
    json.loads(out)
    latencies(folder / "latency.json", system=here)
    assert main(["plan", str(folder), "--k-max", "2", "--nodes-max", "1", "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_latencies_of_other_models_are_remarked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = measured(tmp_path / "small")
    for fingerprint, remarked in (("f", False), ("g", True)):
        content = json.loads((folder / "latency.json").read_text())
        content["provenance"] = {"target": {"name": "huge", "fingerprint": fingerprint}, "draft": {"name": "small"}}
        (folder / "latency.json").write_text(json.dumps(content))
        assert main(["plan", str(folder), "--k-max", "2", "--nodes-max", "1", "--json"]) == 0
        assert ("latency.json is of other models than the trace: target huge;" in capsys.readouterr().err) == remarked


def test_a_foreign_provenance_says_nothing_of_the_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = measured(tmp_path / "small")
    content = json.loads((folder / "latency.json").read_text())
    (folder / "latency.json").write_text(json.dumps(content | {"provenance": {"hardware": "old"}}))
    assert main(["plan", str(folder), "--k-max", "2", "--nodes-max", "1", "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_no_value_vanishes_on_a_narrow_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the draft is called, brackets included; the speed-ups of the wide table are all in the narrow one."""
    folder = measured(tmp_path / "small")
    command = ["plan", "--trace", f"[/the] draft with a long name={folder}", "--nodes-max", "4", "--all"]
    speedups = []
    for width in (200, 60):
        monkeypatch.setattr(console.answers, "_width", width)  # its property `width` would not be restored to None
        assert main(command) == 0
        table, *_ = capsys.readouterr().out.split("Where the best")
        assert "[/the]" in table
        speedups.append(re.findall(r"\d\.\d\d±\d\.\d\dx", table))
    assert len(speedups[0]) > 3
    assert speedups[0] == speedups[1]


SMALL = ["--k-max", "4", "--nodes-max", "4"]
FEW = {"k_max": 4, "nodes": 4}


@each(
    "options, question",
    [
        ([], {}),
        (["--nodes-max", "1"], {"nodes": 1}),
        (["--k-max", "6", "--nodes-max", "8"], {"k_max": 6, "nodes": 8}),
        (["--passes-alone", *SMALL], {"passes_alone": True, **FEW}),
        (["--rule", "token"], {"rules": ["token"]}),
        (["--rule", "token", "--rule", "race"], {"rules": ["token", "race"]}),
        (["--rule", "argmax", "--k-max", "2"], {"rules": ["argmax"], "k_max": 2}),
        (["--stop", "token<0.4", *SMALL], {"stops": [read_stop("token<0.4")], **FEW}),
        (["--stop", "token<0.4", "--rule", "token"], {"stops": [read_stop("token<0.4")], "rules": ["token"]}),
        (["--c", "0.1", *SMALL], {"cost": ConstantRatio(0.1), **FEW}),
        (["--c", "0.9", "--nodes-max", "1"], {"cost": ConstantRatio(0.9), "nodes": 1}),
    ],
)
def test_python_plans_what_the_command_plans(
    options: list[str], question: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same question in Python gives the same JSON, field by field."""
    folder = measured(tmp_path)
    shown = asked([str(folder), *options], capsys)
    settings = {"cost": LatencyTable.read(folder / "latency.json"), **question}
    answer = plan([Draft(folder.name, Trace.read(folder), settings.pop("cost"))], **settings)
    assert shown == json.loads(json.dumps(deployment_report(answer).as_dict()))
