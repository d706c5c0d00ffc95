"""The command line on recorded traces: answers, files, exit status; what needs models is in test_models.py."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from spectheory.cli import main
from spectheory.cost import LatencyTable
from spectheory.intervals import Interval
from spectheory.prediction import plan
from spectheory.prediction.best_tree import BestTree
from spectheory.prediction.plan_answer import ranked_rules
from spectheory.reports import prediction_report
from spectheory.reports.table import for_terminal
from spectheory.trace import TextInfo, Trace
from tests.commands import refused
from tests.made_up import race_g


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    rows = 200
    log_target = -rng.exponential(1.0, rows)
    log_draft = np.minimum(0, log_target + rng.normal(0, 0.5, rows))
    columns = {
        "log_target": log_target,
        "log_draft": log_draft,
        "race_g": race_g(rng, log_target, log_draft),
        "target_entropy": np.full(rows, 1.0),
        "target_second_moment": np.full(rows, 2.0),
        "rejection_rank": np.tile(np.full(8, 0.12), (rows, 1)),
    }
    path = tmp_path / "measured" / "trace.parquet"
    Trace(columns, tuple(TextInfo(str(i), 50) for i in range(4)), {"origin": "sampled from the target"}).write(path)
    return path


def test_folder_of_a_trace_and_json(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(trace_file.parent), "--c", "0.1", "--json"]) == 0
    out, err = capsys.readouterr()
    content = json.loads(out)
    assert err == ""
    assert content["best"]["by"] == "speedup"
    # Three rules with chains, and trees for recursive rejection, the one rule whose ranks are recorded.
    assert len(content["predictions"]) == 4 * 16
    assert {p["wanted"] for p in content["predictions"] if p["rule"] == "recursive"} == {
        f"best tree of {k}" for k in range(1, 17)
    }
    assert content["provenance"]["origin"] == "sampled from the target"


def test_figures_and_json_are_written(trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "folder"
    assert main(["predict", str(trace_file), "--c", "0.1", "--k-max", "4", "--out", str(out)]) == 0
    names = {path.name for path in out.iterdir()}
    figures = {f"{name}.{kind}" for name in ("tokens_per_call", "trees", "speedup") for kind in ("png", "svg")}
    assert names == {"prediction.json", *figures}
    assert (out / "speedup.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((out / "prediction.json").read_text())["k"] >= 1


def test_shapes_chosen(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--rule", "recursive", "--shape", "2x2", "--shape", "1,2,1-1", "--shape", "batch", "--k-max", "2"]
    assert main(["predict", str(trace_file), *arguments, "--c", "0.1", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    shapes = [p["shape"] for p in content["predictions"]]
    assert shapes == ["k-ary 2x2", "tree 1 2 1-1", "batch k=1", "batch k=2"]
    assert content["predictions"][1]["paths"] == [[1], [2], [1, 1]]
    assert main(["predict", str(trace_file), *arguments, "--c", "0.1", "--all"]) == 0
    out = capsys.readouterr().out
    assert "trees of k nodes" in out
    assert "B7" not in out


def test_bias_against_tokens(trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = Trace.read(trace_file)
    accepted = np.minimum(1, np.exp(trace.columns["log_draft"] - trace.columns["log_target"]))
    columns = {**trace.columns, "total_variation": np.full(200, 1 - accepted.mean())}
    Trace(columns, trace.texts, trace.provenance).write(trace_file)
    arguments = ["predict", str(trace_file), "--k-max", "3", "--bias", "0", "--bias", "0.5"]
    assert main([*arguments, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    lossless = max(p["tokens_per_call"]["best"] for p in content["predictions"] if p["rule"] == "token")
    none, half = content["bias"]
    assert none["tokens_per_call"]["best"] == pytest.approx(lossless, rel=1e-12)
    assert none["bias"]["best"] == 0
    assert half["bias"]["best"] == pytest.approx((1 - accepted.mean()) / 2, rel=1e-12)
    assert half["tokens_per_call"]["best"] > lossless
    assert half["upper_tokens_per_call"]["best"] > lossless
    assert half["side"] == "lower estimate", "the trace does not say how the target was sampled"
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "Rules that change the text, estimated along texts of the target" in shown
    assert "upper estimate" in shown
    Trace(columns, trace.texts, {**trace.provenance, "settings": {"sampling": {"temperature": 1.0}}}).write(trace_file)
    assert main(arguments) == 0
    assert "upper estimate" not in capsys.readouterr().out
    named = ["predict", str(trace_file), "--k-max", "3", "--rule", "ensemble:0.5"]
    assert main([*named, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert {p["rule"] for p in content["predictions"]} == {"token"}
    assert content["bias"][0]["bias"] == half["bias"]
    assert main(named) == 0
    assert "ensemble:0.5 changes the text. transformers: assistant_ensemble_weight=0.5" in capsys.readouterr().out


def test_trees_of_distinct_candidates_take_the_place_of_iid_ones(
    trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the trace records them; the table still fits 110 columns, and says what is estimated."""
    trace = Trace.read(trace_file)
    columns = {
        **trace.columns,
        "distinct_rank": np.tile([0.5, 0.2, 0.1, 0.05], (200, 1)),
        "race_rank": trace.columns["rejection_rank"],
        "draft_rank": np.ones(200, dtype=int),
    }
    Trace(columns, trace.texts, trace.provenance).write(trace_file)
    assert main(["predict", str(trace_file), "--k-max", "20", "--all"]) == 0
    out = capsys.readouterr().out
    assert "recursive-distinct with several candidates is not exact" in " ".join(out.split())
    trace = Trace.read(trace_file)
    answer = plan(trace, rules=ranked_rules(trace), shapes=[BestTree(20)])
    assert [p.rule.name for p in answer.predictions] == ["race", "recursive-distinct", "topk"]
    assert Console(width=400).measure(for_terminal(prediction_report(answer).pieces[0])).maximum <= 110
    assert main(["predict", str(trace_file), "--rule", "recursive", "--k-max", "2", "--json"]) == 0
    assert {p["rule"] for p in json.loads(capsys.readouterr().out)["predictions"]} == {"recursive"}


def test_what_an_engine_runs_leads(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The fastest engine with its setting to paste, then what no engine runs; one that is named is answered alone."""
    asked = ["predict", str(trace_file), "--c", "0.1", "--k-max", "3"]
    assert main(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.match(r"Pays: vllm, block verification, k = \d: speed-up \d\.\d\dx$", lines[0])
    assert any(line.startswith("vllm serve ") for line in lines)
    assert main([*asked, "--engine", "transformers"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.match(r"Pays: transformers, token verification, k = \d: speed-up \d\.\d\dx$", lines[0])
    assert any(line.startswith("Theoretical best (no engine below): block verification") for line in lines[:3])
    assert main([*asked, "--engine", "transformers", "--json"]) == 0
    assert [each["engine"] for each in json.loads(capsys.readouterr().out)["engines"]] == ["transformers"]
    assert main([*asked, "--rule", "block"]) == 0
    assert capsys.readouterr().out.startswith("Best: block verification")


def test_output_folder_that_cannot_be_written(
    trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused(["predict", str(trace_file), "--out", str(tmp_path / "file" / "x")], capsys)


def test_latencies_of_short_calls_leave_out_the_speedup(
    trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    second = Interval.exact
    table = LatencyTable({1: second(1.0), 3: second(1.2)}, {1: second(0.1), 2: second(0.2)}, context=8)
    table.write(tmp_path / "short.json")
    assert main(["predict", str(trace_file), "--k-max", "4", "--latency", str(tmp_path / "short.json")]) == 0
    out, err = capsys.readouterr()
    assert "Tokens per target call" in out
    assert "Speed-up over" not in out
    assert "speed-ups are left out: a call verifies 4 tokens" in " ".join(err.split())


def test_a_closed_stdout_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    assert main(["--help"]) == 2
    assert "stdout is closed" in capsys.readouterr().err
