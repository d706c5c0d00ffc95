"""``spectheory plan`` on recorded traces: answers, files, bad input."""

from __future__ import annotations

import json
import math
import platform
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory.cli import main
from spectheory.cli.options import PairOptions, TextOptions
from spectheory.cost import ACCELERATORS, LatencyTable
from spectheory.deployment.engines import ENGINES
from spectheory.intervals import Interval
from spectheory.trace import TextInfo, Trace
from tests.made_up import race_g

SIZES = (1, 2, 4, 8, 16, 32, 33)
CONFIG = {
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
}
ON_H200 = ["TRACE", "--hardware", "H200", "--target-architecture", "CONFIG", "--draft-architecture", "CONFIG"]


def measured(folder: Path, *, spread: float = 0.5, draft: float = 0.1, temperature: float = 1.0) -> Path:
    """A folder as ``spectheory measure`` leaves it."""
    rng = np.random.default_rng(0)
    rows = 200
    log_target = -rng.exponential(1.0, rows)
    log_draft = np.minimum(0, log_target + rng.normal(0, spread, rows))
    accepted = np.minimum(1, np.exp(log_draft - log_target))
    columns = {
        "log_target": log_target,
        "log_draft": log_draft,
        "race_g": race_g(rng, log_target, log_draft),
        "rejection_rank": np.stack([accepted * (1 - accepted) ** r for r in range(8)], axis=1),
        "draft_rank": rng.geometric(0.6, rows),
        "greedy_agreement": accepted > 0.8,
        "target_entropy": np.full(rows, 1.0),
        "target_second_moment": np.full(rows, 2.0),
    }
    provenance = {
        "target": {"name": "large", "fingerprint": "f"},
        "draft": {"name": folder.name},
        "settings": {"sampling": {"temperature": temperature, "top_k": None, "top_p": None}},
        "origin": "sampled from the target",
    }
    Trace(columns, tuple(TextInfo(str(i), 50) for i in range(4)), provenance).write(folder / "trace.parquet")
    latencies(folder / "latency.json", draft)
    return folder


def latencies(path: Path, draft: float = 0.1, **hardware: str) -> None:
    exact = Interval.exact
    LatencyTable(
        {m: exact(1 + 0.02 * m) for m in SIZES},
        {m: exact(draft * (1 + 0.01 * m)) for m in SIZES},
        64,
        {"hardware": hardware},
    ).write(path)


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run bad input; check status 2, one line on stderr, nothing on stdout; return the line."""
    status = main(arguments)
    out, err = capsys.readouterr()
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1, err
    assert err.startswith("spectheory: ")
    return err


def asked(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert main(["plan", *arguments, "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_plan_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = measured(tmp_path / "small")
    assert main(["plan", str(folder), "--k-max", "4", "--nodes-max", "8"]) == 0
    out, err = capsys.readouterr()
    words = " ".join(out.split())
    for piece in ("by speed-up", "as fast as plain decoding", "Limits and idealised values at", "engine's own rule"):
        assert piece in words
    for piece in ("Speculate: draft small", "runner-up", "Latencies are of batch 1 and context 64"):
        assert piece in words
    (line,) = [line for line in out.splitlines() if line.startswith("vllm serve")]
    assert line.endswith("}'"), "lines to be pasted are not wrapped"
    assert line.startswith("vllm serve /path/to/large --speculative-config")
    assert "Replace /path/to/large and /path/to/small: the trace does not record them." in words
    assert "An engine's k may differ from the best k above" in words
    assert all(f" {engine.name} {engine.version} " in words for engine in ENGINES), "facts are of a version"
    assert err == ""


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
    assert sum(name.startswith("1 call") for name in names) == 1, "of the fastest chain where the best is a tree"
    assert {"B6", "B2'", "T1"} <= set(names)
    engines = [(e["engine"], e["version"]) for e in content["engines"]]  # type: ignore[attr-defined]
    assert engines == [(engine.name, engine.version) for engine in ENGINES]


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
    content = asked([str(folder), "--c", "2"], capsys)
    assert content["verdict"] == "do not speculate"
    headline, needs = str(content["headline"]), content["break_even"]
    assert headline.startswith("Do not speculate: ")
    assert isinstance(needs, dict)
    assert needs["draft_ratio"] == pytest.approx(2.0)
    assert f"a draft pass of {needs['draft_ratio_needed']:.3f} target steps" in headline
    assert main(["plan", str(folder), "--c", "2"]) == 0
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
    assert {path.name for path in out.iterdir()} == {
        *("plan.json", "plan.png", "plan.svg", "batches.png", "batches.svg")
    }
    assert json.loads((out / "plan.json").read_text()) == content
    one = asked([*arguments, "--batch", "64", "--nodes-max", "1"], capsys)
    assert one["speedup"]["best"] < content["speedup"]["best"]  # type: ignore[index]
    assert main(["plan", *arguments, "--nodes-max", "1"]) == 0
    assert "L = 4096" in capsys.readouterr().out


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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"context": "long"}, "context is 'long'"),
        ({"provenance": ["here"]}, "provenance is ['here']"),
        (
            {"target": {"1": {"low": 1e308, "best": 1e308, "high": 1e308, "kind": "exact"}}},
            "latency on 1 tokens is 1e+308",
        ),
        ({"target": {"1": {"low": math.nan, "best": 1.0, "high": 1.0, "kind": "exact"}}}, "low <= best <= high"),
        ({"schema": 9}, "schema 9"),
    ],
)
def test_a_bad_latency_table_is_one_line(
    change: dict[str, Any], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = measured(tmp_path / "small")
    content = json.loads((folder / "latency.json").read_text())
    (folder / "latency.json").write_text(json.dumps(content | change))
    line = refused(["plan", str(folder)], capsys)
    assert words in line
    assert "not a latency table" in line


def test_a_foreign_provenance_says_nothing_of_the_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = measured(tmp_path / "small")
    content = json.loads((folder / "latency.json").read_text())
    (folder / "latency.json").write_text(json.dumps(content | {"provenance": {"hardware": "old"}}))
    assert main(["plan", str(folder), "--k-max", "2", "--nodes-max", "1", "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_log_probabilities_with_a_byte_order_mark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_text('{"target": [-1, -1], "draft": [-1, -2]}\r\n' * 2, encoding="utf-8-sig", newline="")
    assert asked(["--logprobs", str(file), "--c", "0.1"], capsys)["rule"] == "token"


def test_no_value_vanishes_on_a_narrow_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the draft is called, brackets included; the speed-ups of the wide table are all in the narrow one."""
    folder = measured(tmp_path / "small")
    command = ["plan", "--trace", f"[/the] draft with a long name={folder}", "--nodes-max", "4"]
    speedups = []
    for width in (200, 60):
        monkeypatch.setattr("spectheory.cli.plan.answers.width", width)
        monkeypatch.setattr("spectheory.cli.answer.answers.width", width)
        assert main(command) == 0
        table, *_ = capsys.readouterr().out.split("Where the best")
        assert "[/the]" in table
        speedups.append(re.findall(r"\d\.\d\d±\d\.\d\dx", table))
    assert len(speedups[0]) > 3
    assert speedups[0] == speedups[1]


class Measured:
    """A loaded pair whose measurement is there already."""

    fingerprint = "f"

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def load(cls, pair: PairOptions, text: TextOptions) -> Measured:
        """Remember which draft."""
        return cls(pair.draft.rpartition(":")[2])

    def require_room(self, longest: int) -> None:
        """The longest call asked for."""
        assert longest == 9

    def trace(self, path: Path) -> Trace:
        """Leave the whole folder."""
        return Trace.read(measured(path.parent) / path.name)

    def latencies(self, path: Path, *, longest: int) -> None:
        """The draft is cheaper than the distilled one."""
        latencies(path, {"draft": 0.05, "distilled": 0.2}[self.name])


def test_without_a_trace_the_built_in_drafts_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spectheory.cli.measure.Session", Measured)
    content = asked(["--k-max", "8", "--nodes-max", "4", "--out", str(tmp_path)], capsys)
    assert [d["draft"] for d in content["drafts"]] == ["draft", "distilled"]  # type: ignore[attr-defined]
    assert (tmp_path / "distilled" / "trace.parquet").exists()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert asked(["--k-max", "8", "--nodes-max", "4"], capsys)["draft"] == "draft"
    assert (tmp_path / "cache" / "spectheory" / "f" / "trace.parquet").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["TRACE", "--k-max", "0"], "--k-max is 0"),
        (["TRACE", "--nodes-max", "0"], "--nodes-max is 0"),
        (["TRACE", "--rule", "typical"], "rule 'typical' is unknown"),
        (["TRACE", "--c", "-1"], "c is -1"),
        (["TRACE", "--c", "0.1", "--latency", "TRACE/latency.json"], "one source of costs"),
        (["TRACE", "--batch", "8"], "--batch given without --hardware"),
        (["TRACE", "--hardware", "Z80"], "accelerator 'Z80' is unknown"),
        (["TRACE", "--hardware", "L4"], "--target-architecture"),
        (["TRACE", "--hardware", "L4", "--target-architecture", "no", "--draft-architecture", "no"], "cannot be read"),
        (["TRACE", "--latency", "no.json"], "not a latency table"),
        (["no-such-folder"], "is missing"),
        (["--trace", "TRACE"], "needs NAME=FOLDER"),
        (["--trace", "a\nb=TRACE"], "--trace is named 'a\\nb'"),
        (["--trace", "\x1b[2J=TRACE"], "--trace is named '\\x1b[2J'"),
        (["TRACE", "--hardware", ""], "accelerator '' is unknown"),
        (["--trace", "a=TRACE", "--trace", "a=TRACE"], "names must differ"),
        (["--trace", "a=TRACE", "--trace", "b=OTHER"], "differ in sampling"),
        (["--trace", "a=TRACE", "--trace", "b=TRACE", "--c", "0.1"], "costs of its own"),
        (["TRACE", "--logprobs", "texts.jsonl"], "one source"),
        (["BARE"], "the costs of bare are unknown"),
        (["TRACE", "--c", "1e300"], "--c is 1e+300: at most 1000"),
        ([*ON_H200, "--batch", "0"], "--batch is 0: must be in 1..1000000"),
        ([*ON_H200, "--context", "9" * 400], "must be in 0..1000000000"),
        ([*ON_H200, "--weight-bytes", "nan"], "--weight-bytes is nan: must be in 0.1..8"),
        ([*ON_H200, "--overhead", "1e308"], "must be in 0..1000 seconds"),
        ([*ON_H200, "--target-architecture", "TRACE/latency.json"], "the config has no num_hidden_layers"),
        ([*ON_H200, "--target-architecture", "LIST"], "cannot be read (no JSON object)"),
        (["TRACE", "--c", "fast"], "valid number"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = {"TRACE": measured(tmp_path / "small"), "OTHER": measured(tmp_path / "other", temperature=0.5)}
    folders["BARE"] = measured(tmp_path / "bare")
    (folders["BARE"] / "latency.json").unlink()
    folders |= {"CONFIG": tmp_path / "config.json", "LIST": tmp_path / "list.json"}
    folders["CONFIG"].write_text(json.dumps(CONFIG))
    folders["LIST"].write_text("[1]")
    for name, folder in folders.items():
        arguments = [argument.replace(name, str(folder)) for argument in arguments]
    assert words in refused(["plan", *arguments], capsys)


def test_accelerators_are_named_in_the_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(["plan", str(measured(tmp_path / "small")), "--hardware", "none"], capsys)
    assert all(name in line for name in ACCELERATORS)


@pytest.mark.parametrize("command", ["predict", "plan"])
def test_default_rules_are_those_that_the_trace_has(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = measured(tmp_path / "measured")
    trace = Trace.read(folder)
    columns = {name: column for name, column in trace.columns.items() if name != "race_g"}
    columns["race_rank"] = columns["rejection_rank"]
    Trace(columns, trace.texts, trace.provenance).write(folder / "trace.parquet")
    assert main([command, str(folder), "--json"]) == 0
    shown = capsys.readouterr().out
    assert '"recursive"' in shown
    assert '"race"' not in shown
