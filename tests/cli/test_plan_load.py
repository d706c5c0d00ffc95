"""``spectheory plan --hardware`` under load: every kind of evidence, targets, and what the first lines warn of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spectheory.cli import main
from spectheory.cost import ACCELERATORS, ModelShape, Roofline
from spectheory.cost.head_config import MARK
from spectheory.deployment import Draft, Load, plan
from spectheory.pairs import resolve
from spectheory.trace import Trace
from spectheory.trace.counters import Counters
from spectheory.trace.reading import read_any
from tests.cli.plan_cases import CONFIG, asked, measured
from tests.commands import refused
from tests.toy_server import affine, sweep
from tests.trace.counter_cases import SAMPLES

HEAD = {
    "speculators_model_type": "eagle3",
    "draft_vocab_size": 32000,
    "transformer_layer_config": {**CONFIG, "num_hidden_layers": 1},
}


@pytest.fixture
def on(tmp_path: Path) -> list[str]:
    """Arguments of a roofline."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"max_position_embeddings": 8192}))
    return ["--hardware", "h100-sxm", f"--target-architecture={tmp_path}", "--batch", "32", "--context", "4096"]


def drafted(folder: Path, config: dict[str, Any]) -> str:
    file = folder / f"draft{len(config)}.json"
    file.write_text(json.dumps(config))
    return f"--draft-architecture={file}"


def shown(arguments: Sequence[object], capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main(["plan", *map(str, arguments)]) == 0
    return capsys.readouterr().out.splitlines()


def test_counts_of_an_engine(tmp_path: Path, on: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Speed-ups by hand: tokens per call, of a roofline at that batch; free drafts are said to be."""
    log = tmp_path / "counts.json"
    Counters(calls=4000, drafted=8000, accepted=3600, survival=(0.6, 0.3), k=2).write(log)
    small = drafted(tmp_path, {**CONFIG, "num_hidden_layers": 4})
    free, dear = (asked([str(log), *on, *more], capsys) for more in ([], [small]))
    models = [ModelShape.from_config(c) for c in (CONFIG, {**CONFIG, "num_hidden_layers": 4})]
    cost = Roofline(models[0], models[1], ACCELERATORS["H100-SXM"], context=4096, batch=32)
    step, verify, one, two = (
        each.best for each in (cost.target_step(), cost.target_pass(3), cost.draft_pass(1), cost.draft_pass(2))
    )
    expected = {"free": 1.9 * step / verify, "dear": 1.9 * step / (verify + 2 * one + 0.3 * (two - one))}
    for name, answer in (("free", free), ("dear", dear)):
        (row,) = (row for row in answer["rows"] if row["k"] == 2)  # type: ignore[attr-defined]
        assert row["speedup"]["best"] == pytest.approx(expected[name])
        (choice,) = answer["batches"]  # type: ignore[misc]
        assert (choice["batch"], choice["context"]) == (32, 4096)
    lines = shown([log, *on], capsys)
    assert "if drafts are free: k = " in lines[0]
    assert any("name the draft: --draft-architecture" in line for line in lines[:3])
    assert "with the roofline's error" in " ".join(lines[:3])
    lines = shown([log, *on, "--rule", "lookup"], capsys)
    assert not any("drafts are free" in line for line in lines), "lookup has no draft model"
    assert "Best k by batch and context" in " ".join(shown([SAMPLES / "vllm_metrics.txt", *on], capsys))


def test_recorded_lengths(tmp_path: Path, on: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from spectheory.cli.logs import SamplesOptions, run_samples

    run_samples(SamplesOptions(out=tmp_path / "samples"))
    capsys.readouterr()
    log = tmp_path / "samples" / "specdecode_bench.jsonl"
    small = drafted(tmp_path, {**CONFIG, "num_hidden_layers": 4})
    assert main(["plan", str(log), *on, "--k-max", "3", "--json"]) == 0
    out, err = capsys.readouterr()
    assert "left out, as the costs of their passes are unknown: draft; give --draft-architecture" in err
    assert "draft" not in {one["rule"] for one in json.loads(out)["candidates"]}
    both = asked([str(log), *on, small, "--k-max", "3"], capsys)
    assert {"ngram", "draft"} <= {one["rule"] for one in both["candidates"]}  # type: ignore[attr-defined]


def test_heads(tmp_path: Path, on: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    folder = measured(tmp_path / "head")
    trace = read_any(folder)
    trace.provenance["draft"]["kind"] = "eagle3"  # type: ignore[index]
    trace.write(folder / "trace.parquet")
    answer = asked([str(folder), *on, drafted(tmp_path, HEAD), "--nodes-max", "1", "--k-max", "3"], capsys)
    assert answer["draft_kind"] == "eagle3"
    assert answer["batches"] is not None
    assert "warnings" not in answer, "sizes of a head are not compared"


def test_a_trace_of_the_named_pair_has_no_warning(capsys: pytest.CaptureFixture[str]) -> None:
    """The draft's sizes are by default those of the model that was measured."""
    target = ["--hardware", "L4", "--target-architecture", resolve("builtin:target"), "--context", "128"]
    few = ["--k-max", "2", "--nodes-max", "1", "--rule", "token", "--batch", "1"]
    default = asked(["builtin:", *target, *few], capsys)
    named = asked(["builtin:", *target, "--draft-architecture", resolve("builtin:distilled"), *few], capsys)
    assert default["speedup"] == named["speedup"]
    assert "warnings" not in default
    other = asked(["builtin:", *target, "--draft-architecture", resolve("builtin:target"), *few], capsys)
    assert other["warnings"] == ["trace of another draft: 0.6642M parameters; here 5.412M"]
    one, two = (resolve(f"builtin:{name}") for name in ("draft", "target"))
    exchanged = asked(
        ["builtin:", *target[:2], "--target-architecture", one, "--draft-architecture", two, *few], capsys
    )
    said: Any = exchanged["warnings"]
    assert "draft and target have 5.412M and 0.6642M parameters: are they exchanged?" in said


def test_a_trace_of_another_pair_is_said_first(on: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--k-max", "2", "--nodes-max", "1", "--rule", "token", "--context", "16384"]
    lines = shown(["builtin:", *on[:-2], *few], capsys)
    assert lines[0] == "Does not fit into memory: batch 32 at context 16384"
    assert lines[1] == "Trace of another target: 512 outputs, 5.412M parameters; here 128256, 8030M"
    assert lines[2] == "The draft is the trace's, 0.6642M parameters: see --draft-architecture"
    assert lines[3] == "Context 16384 exceeds the 8192 tokens that the target was trained for"
    assert not [line for line in lines if line.startswith(("Pays", "May pay", "To run it", "Do not"))]
    smaller = shown(["builtin:", *on[:-4], *few, "--batch", "1,32"], capsys)
    assert smaller[0] == lines[0], "settings are for the first"
    assert [line for line in smaller if line.startswith("To run it")]
    longest = shown(["builtin:", "--hardware", "L4", "--target-architecture", resolve("builtin:target"), *few], capsys)
    assert longest[0] == "Context 16384 exceeds the 256 tokens that the target was trained for", "as the trace says"


def test_targets_and_goodput(tmp_path: Path, on: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The command answers what the function does, and says it first."""
    folder, small = measured(tmp_path / "small"), {**CONFIG, "num_hidden_layers": 4}
    arguments = [str(folder), *on[:-2], drafted(tmp_path, small), "--k-max", "3", "--nodes-max", "1", "--devices", "2"]
    arguments += ["--weights", "fp8", "--draft-weights", "bf16", "--kv-cache", "fp8", "--prompt-tokens", "800"]
    arguments += ["--output-tokens", "400", "--tpot", "20", "--ttft", "80", "--link-latency", "1e-6"]
    content = asked(arguments, capsys)
    config = CONFIG | {"max_position_embeddings": 8192}
    models = (
        ModelShape.from_config(config, weights="fp8", kv_cache="fp8"),
        ModelShape.from_config(small, kv_cache="fp8"),
    )
    card = ACCELERATORS["H100-SXM"]
    linked = type(card)(**{**vars(card), "link_latency": 1e-6})
    cost = Roofline(*models, linked, context=1000, batch=32, dtype="fp8", devices=2, draft_dtype="bf16")
    load = Load(batches=[32], prompt_tokens=800, output_tokens=400, tpot=20, ttft=80)
    answer = plan([Draft("small", read_any(folder), cost)], k_max=3, nodes=1, load=load)
    assert answer.load is not None
    assert [vars(point) for point in answer.load.targets] == content["targets"]
    assert [vars(point) for point in answer.load.requests] == content["requests"]
    goodput = answer.load.goodput
    assert goodput is not None
    lines = shown(arguments, capsys)
    assert len(lines) <= 24
    assert lines[2].startswith(f"Goodput: k = {goodput.k}, {goodput.tokens_per_second:.0f} tokens/s at concurrency")
    assert "Within 20 ms per token and 80 ms to the first: the largest concurrency" in lines
    impossible = shown([*arguments, "--tpot", "0.001"], capsys)
    assert any(line.startswith("Out of reach: 0.001 ms per token (at least ") for line in impossible[:3])


def test_a_timed_server_within_a_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the fit: the largest concurrency of its range, and tokens per second there."""
    folder = sweep(tmp_path, affine(8e-3, 2e-4, 0, 4e-4, 6e-4, 2.5e-4, 0), (0, 1, 3), survival=(0.8, 0.6, 0.4))
    content = asked(["--bench", str(folder), "--tpot", "9"], capsys)
    points: Any = content["targets"]
    assert [point["k"] for point in points] == [0, 1, 2, 3]
    for point in points:
        assert point["tpot"] <= 9
        assert point["tokens_per_second"] == pytest.approx(1e3 * point["batch"] / point["tpot"])
    fit: Any = content["fit"]
    plain = fit["terms"]["a step"] + fit["terms"]["a sequence"] * points[0]["batch"]
    assert points[0]["tpot"] == pytest.approx(1e3 * plain, rel=0.05), "and a cached token, which is nearly free here"
    assert "--devices given without --hardware" in refused(["plan", "--bench", str(folder), "--devices", "2"], capsys)


def test_mtp_modules_cost_a_layer_of_their_model(
    tmp_path: Path, on: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the config is the model's, as in the format of speculators; a draft model of that config is all of it."""
    folder = measured(tmp_path / "measured")
    trace = Trace.read(folder / "trace.parquet")
    whole, own = drafted(tmp_path, CONFIG), drafted(tmp_path, {MARK: "mtp", "transformer_layer_config": CONFIG})
    speedups = []
    for kind, config in ((None, whole), ("mtp", whole), ("mtp", own)):
        draft = {**trace.provenance["draft"], **({"kind": kind} if kind else {})}
        replace(trace, provenance={**trace.provenance, "draft": draft}).write(folder / "trace.parquet")
        answer: Any = asked([str(folder), *on, config, "--k-max", "3", "--nodes-max", "1"], capsys)
        speedups.append(answer["speedup"]["best"])
    assert speedups[0] < 1 < speedups[1] == speedups[2]
