"""The command line on recorded traces: answers, bad input, exit status. What needs models is in test_cli_models.py."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from spectheory.cli import main
from spectheory.cost import ConstantRatio, LatencyTable
from spectheory.deployment import deployable
from spectheory.drafting import Batch, Chain, KAry, Tree
from spectheory.intervals import Interval
from spectheory.prediction import plan
from spectheory.prediction.best_tree import BestTree
from spectheory.prediction.plan_answer import ranked_rules
from spectheory.reports import prediction_report
from spectheory.reports.table import for_terminal
from spectheory.trace import METADATA_KEY, TextInfo, Trace
from tests.commands import refused
from tests.made_up import each, race_g


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


def test_table_headline_and_notes(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(trace_file), "--c", "0.1", "--k-max", "3", "--all"]) == 0
    out, _ = capsys.readouterr()
    for piece in ("Tokens per target call", "Speed-up over plain decoding", "token", "block", "race", "Pays:", "B6"):
        assert piece in out


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


def test_log_probabilities_need_no_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_text('{"target": [-1, -0.5], "draft": [-2, -0.1]}\n{"target": [-1], "draft": [-2]}\n')
    assert main(["predict", "--logprobs", str(file), "--k-max", "2", "--all"]) == 0
    assert "Absent, as they need full pmfs" in capsys.readouterr().out.replace("\n", " ")


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
    assert "with over-acceptance, calls" in shown
    assert "upper estimate" in shown
    Trace(columns, trace.texts, {**trace.provenance, "settings": {"sampling": {"temperature": 1.0}}}).write(trace_file)
    assert main(arguments) == 0
    assert "upper estimate" not in capsys.readouterr().out


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


@each(
    "options, asked",
    [
        ([], {}),
        (["--c", "0.1"], {"cost": ConstantRatio(0.1)}),
        (["--c", "0"], {"cost": ConstantRatio(0.0)}),
        (["--c", "2", "--k-max", "3"], {"cost": ConstantRatio(2.0), "k_max": 3}),
        (["--k-max", "1"], {"k_max": 1}),
        (["--k-max", "40"], {"k_max": 40}),
        (["--k-max", "5", "--rule", "token", "--rule", "race"], {"k_max": 5, "rules": ["token", "race"]}),
        (["--rule", "block"], {"rules": ["block"]}),
        (["--rule", "race"], {"rules": ["race"]}),
        (["--rule", "recursive", "--k-max", "4"], {"rules": ["recursive"], "k_max": 4}),
        (["--shape", "chain", "--k-max", "2"], {"shapes": [Chain(1), Chain(2)]}),
        (["--shape", "2x2", "--rule", "recursive"], {"shapes": [KAry((2, 2))], "rules": ["recursive"]}),
        (["--shape", "2x2"], {"shapes": [KAry((2, 2))]}),
        (["--shape", "2x1x1", "--c", "0.1"], {"shapes": [KAry((2, 1, 1))], "cost": ConstantRatio(0.1)}),
        (["--shape", "1,2,1-1"], {"shapes": [Tree.from_paths([(1,), (2,), (1, 1)])]}),
        (["--shape", "tree", "--k-max", "3"], {"shapes": [BestTree(1), BestTree(2), BestTree(3)]}),
        (["--shape", "batch", "--k-max", "2"], {"shapes": [Batch(1), Batch(2)]}),
        (["--shape", "2x2", "--shape", "batch", "--k-max", "1"], {"shapes": [KAry((2, 2)), Batch(1)]}),
        (["--prefill-token"], {"prefill_emits_token": True}),
        (["--c", "0.2", "--prefill-token"], {"cost": ConstantRatio(0.2), "prefill_emits_token": True}),
        (
            ["--prefill-token", "--rule", "token", "--k-max", "2"],
            {"prefill_emits_token": True, "rules": ["token"], "k_max": 2},
        ),
    ],
)
def test_python_answers_what_the_command_answers(
    options: list[str], asked: dict[str, Any], trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(trace_file), *options, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    trace = Trace.read(trace_file)
    answer = plan(trace, **asked)
    engines = () if {"rules", "shapes"} & asked.keys() else deployable(answer, trace)
    assert bool(engines) == (asked.keys() <= {"cost", "k_max", "prefill_emits_token"} and "cost" in asked)
    assert content == json.loads(json.dumps(prediction_report(answer, engines=engines).as_dict()))


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--k-max", "0"], "--k-max is 0: must be >= 1"),
        (["--k-max", "x"], "--k-max"),
        (["--rule", "magic"], "rule 'magic' is unknown: there are token, block"),
        (["--rule", "greedy"], "rule 'greedy' cannot be predicted"),
        (["--c", "-1"], "c is -1: must be >= 0"),
        (["--check"], "--check is given with a recorded trace"),
        (["--latency", "absent.json"], "absent.json is not a latency table"),
        (["--c", "1", "--latency", "x"], "--c and --latency are both given"),
        (["--logprobs", "x"], "a trace and --logprobs are both given"),
        (["--acceptance", "0.8"], "a trace and --acceptance are both given"),
        (["--counted-k", "4"], "a trace and --acceptance are both given"),
        (["--nonsense"], "nonsense"),
        (["--temperature", "0.5"], "--temperature given with a recorded trace"),
        (["--target", "x", "--top-p", "7"], "--target, --top-p given with a recorded trace"),
        (["--seed", "1"], "--seed given with a recorded trace: they only affect measuring, and this trace is already"),
        (["--k-max", "2000000"], "--k-max is 2000000"),
        (["--c", "1e308"], "c is 1e+308: must be >= 0 and below 1e+100"),
        (["--c", "inf"], "c is inf: must be >= 0 and below 1e+100"),
        (["--shape", "star"], "shape 'star' is unknown: there are chain, batch, tree"),
        (["--shape", "1,1-1-1"], "path 1-1-1 has no parent"),
        (["--shape", "2x0"], "branching is 0"),
        (["--rule", "token", "--shape", "2x2"], "token verification is asked for k-ary 2x2"),
        (["--rule", "race", "--shape", "2x2"], "the trace has no race_rank"),
        (["--engine", "foo"], "--engine is 'foo': must be one of transformers, vllm"),
        (["--bias", "1.5"], "bias share is 1.5"),
        (["--bias", "0.5"], "the trace has no total_variation"),
    ],
)
def test_bad_options(trace_file: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in refused(["predict", str(trace_file), *arguments], capsys)


def test_bad_traces(trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is missing" in refused(["predict", str(tmp_path / "absent.parquet")], capsys)
    assert "holds no trace.parquet" in refused(["predict", str(tmp_path)], capsys)
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(trace_file.read_bytes()[:-100])
    assert "truncated" in refused(["predict", str(torn)], capsys)
    table = pq.read_table(trace_file)
    header = json.loads(table.schema.metadata[METADATA_KEY])
    other = tmp_path / "other.parquet"
    pq.write_table(table.replace_schema_metadata({METADATA_KEY: json.dumps({**header, "schema": 99})}), other)
    assert "trace schema 99" in refused(["predict", str(other)], capsys)
    pq.write_table(table.replace_schema_metadata({}), other)
    assert "no trace" in refused(["predict", str(other)], capsys)


def test_output_folder_that_cannot_be_written(
    trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused(["predict", str(trace_file), "--out", str(tmp_path / "file" / "x")], capsys)


def test_a_folder_in_the_way_of_an_output_file(
    trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out" / "prediction.json").mkdir(parents=True)
    assert main(["predict", str(trace_file), "--out", str(tmp_path / "out")]) == 2
    assert "prediction.json cannot be written" in capsys.readouterr().err


def test_brackets_in_a_path_are_no_markup(trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(trace_file), "--k-max", "1", "--out", str(tmp_path / "a[bold]b")]) == 0
    assert "a[bold]b" in capsys.readouterr().err.replace("\n", "")


@pytest.mark.parametrize("seconds", ["0.0", "-1.0", "Infinity", '"x"'])
def test_bad_latencies(trace_file: Path, seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    entry = f'{{"low": {seconds}, "best": {seconds}, "high": {seconds}, "kind": "exact"}}'
    file = trace_file.with_name("bad.json")
    file.write_text(
        f'{{"schema": 1, "context": 1, "provenance": {{}}, "target": {{"1": {entry}}}, '
        f'"draft": {{"1": {entry}, "2": {entry}}}}}'
    )
    assert "not a latency table" in refused(["predict", str(trace_file), "--latency", str(file)], capsys)


def test_no_command_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "predict" in capsys.readouterr().out
    assert "unknown" in refused(["unknown"], capsys)
    assert "--out" in refused(["measure"], capsys)


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
