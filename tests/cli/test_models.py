"""The command line with models: the built-in pair measured, stopped, resumed, predicted and checked; bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from spectheory.cli import main
from spectheory.pairs import PROMPTS
from spectheory.trace import Trace
from tests.measure.runner_cases import kept

SHORT = ["--tokens", "12", "--continuations", "1"]


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    """The first six built-in prompts."""
    path = tmp_path / "question.jsonl"
    path.write_text("".join(line + "\n" for line in PROMPTS.read_text().splitlines()[:6]))
    return path


@pytest.fixture
def few(prompts: Path) -> Path:
    """The first three of them."""
    prompts.write_text("".join(prompts.read_text().splitlines(keepends=True)[:3]))
    return prompts


def run(*arguments: str) -> subprocess.Popen[str]:
    """The command line in a process of its own, on one thread."""
    return subprocess.Popen(
        [sys.executable, "-m", "spectheory", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        # A shell that runs this in the background has SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.evidence
@pytest.mark.usefixtures("quick_latencies")
def test_measure_then_predict_then_measure_again(few: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "measured"
    command = ["measure", "--prompts", str(few), "--out", str(out), *SHORT]
    assert main(command) == 0
    assert "acceptance rate 1 - TV" in capsys.readouterr().out
    assert {path.suffix for path in out.iterdir() if path.stem == "measured"} == {".png", ".svg"}
    trace = Trace.read(out / "trace.parquet")
    assert len(trace.texts) == 3
    assert trace.provenance["origin"] == "sampled from the target"
    assert not (out / "trace.parquet.parts").exists()
    assert main(["predict", str(out), "--k-max", "4", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["best"]["by"] == "speedup"
    assert str(tmp_path) not in json.dumps(content), "no path of the machine in the provenance"
    assert main(command) == 0
    assert "resumed: 3 of 3 prompts were finished before" in capsys.readouterr().err


@pytest.mark.evidence
@pytest.mark.usefixtures("quick_latencies")
def test_each_setting_of_sampling_is_measured_as_alone(
    few: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = ["measure", "--prompts", str(few), *SHORT, "--top-p", "0.9", "--better-drafts"]
    assert main([*same, "--temperature", "0", "--temperature", "0.7", "--out", str(tmp_path / "both")]) == 0
    assert "The best chain of token verification, by sampling" in capsys.readouterr().out
    folders = sorted(path.name for path in (tmp_path / "both").iterdir())
    assert folders == ["temperature-0-top-p-0.9", "temperature-0.7-top-p-0.9"]
    assert main([*same, "--temperature", "0.7", "--out", str(tmp_path / "one")]) == 0
    both, one = (Trace.read(tmp_path / folder) for folder in ("both/temperature-0.7-top-p-0.9", "one"))
    assert both.provenance["fingerprint"] == one.provenance["fingerprint"]
    assert all((both.columns[name] == one.columns[name]).all() for name in one.columns)
    assert "renyi" in one.columns


@pytest.mark.evidence
@pytest.mark.usefixtures("quick_latencies")
def test_settings_of_given_texts_share_their_passes(
    few: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [json.loads(line) for line in few.read_text().splitlines()]
    few.write_text("".join(json.dumps(row | {"output": "def sum(a, b): return a"}) + "\n" for row in rows))
    same = ["measure", "--prompts", str(few), "--tokens", "8", "--given-text"]
    assert main([*same, "--temperature", "0.7", "--out", str(tmp_path / "one")]) == 0
    monkeypatch.setattr("spectheory.measure.run.here", None)  # nothing is read for one setting alone
    assert main([*same, "--temperature", "0.7", "--temperature", "1", "--out", str(tmp_path / "both")]) == 0
    said = capsys.readouterr()
    assert "each setting has the same texts and its own latencies" in said.err
    both, one = (Trace.read(tmp_path / folder) for folder in ("both/temperature-0.7", "one"))
    assert both.provenance["fingerprint"] == one.provenance["fingerprint"]
    assert all((both.columns[name] == one.columns[name]).all() for name in one.columns)


@pytest.mark.usefixtures("quick_latencies")
def test_live_prediction_with_check(few: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counted and predicted calls differ by less than 6 standard errors (a normal tail of 2e-9, three times)."""
    out = tmp_path / "out"
    command = ["predict", "--prompts", str(few), "--out", str(out), "--k-max", "3", "--check", *SHORT]
    assert main(command) == 0
    assert "Against transformers' assisted generation" in capsys.readouterr().out
    check = json.loads((out / "prediction.json").read_text())["check"]
    assert [record["k"] for record in check] == [1, 3, 5]
    assert all(abs(record["z"]) < 6 for record in check)
    assert {path.suffix for path in out.iterdir()} == {".json", ".png", ".svg", ".parquet"}


@pytest.mark.evidence
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_measurement_loses_nothing(stop: signal.Signals, prompts: Path, tmp_path: Path) -> None:
    """Ctrl-C or kill -9 after the second prompt; the rerun resumes, says so, and equals an unbroken run.

    Reruns are those of predict with a given ratio, which makes the same trace and times no passes.
    """
    options = ["--prompts", str(prompts), "--tokens", "40", "--continuations", "1"]
    command = ["predict", *options, "--c", "0.1", "--k-max", "1"]
    out = tmp_path / "stopped"
    process = run("measure", *options, "--out", str(out))
    deadline = time.monotonic() + 120
    while len(kept(out / "trace.parquet")) < 2 and process.poll() is None:
        assert time.monotonic() < deadline, "two prompts take seconds"
        time.sleep(0.01)
    process.send_signal(stop)
    _, err = process.communicate(timeout=60)
    finished = len(kept(out / "trace.parquet"))
    assert 2 <= finished < 6
    if stop == signal.SIGINT:
        assert process.returncode == 130
        assert "interrupted" in err
        assert "Traceback" not in err
    again = run(*command, "--out", str(out))
    _, err = again.communicate(timeout=120)
    assert again.returncode == 0, err
    assert f"resumed: {finished} of 6" in err
    whole = run(*command, "--out", str(tmp_path / "whole"))
    whole.communicate(timeout=120)
    resumed, unbroken = (Trace.read(tmp_path / name / "trace.parquet") for name in ("stopped", "whole"))
    for name, column in unbroken.columns.items():
        assert np.array_equal(resumed.columns[name], column), name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--temperature", "-1"], "temperature is -1: must be >= 0"),
        (["--top-p", "0"], "top-p is 0"),
        (["--top-k", "0"], "top-k is 0"),
        (["--tokens", "0"], "tokens is 0"),
        (["--continuations", "0"], "--continuations is 0: must be in 1..1024"),
        (["--continuations", "100000000"], "--continuations is 100000000: must be in 1..1024"),
        (["--batch", "0"], "--batch is 0: must be in 1..1024"),
        (["--chunk", "0"], "chunk is 0"),
        (["--tokens", "1000"], "256"),
        (["--target", "builtin:huge"], "built-in model 'huge' does not exist"),
        (["--target", "./absent"], "does not exist"),
        (["--draft", "./absent"], "does not exist"),
        (["--device", "tpu"], "device is 'tpu'"),
        (["--dtype", "int3"], "int3"),
        (["--prompts", "absent.jsonl"], "absent.jsonl is missing"),
        (["--given-text"], "output"),
        (["--k-max", "500"], "a call verifies 501 tokens: the models' window is 256"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", "--out", str(tmp_path / "out"), *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert len([line for line in err.splitlines() if line.startswith("spectheory: ")]) == 1
    assert "Traceback" not in err


def test_bad_prompt_file_names_the_line(prompts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompts.write_text(prompts.read_text() + '{"question_id": 99}\n')
    assert main(["measure", "--prompts", str(prompts), "--out", str(tmp_path / "x")]) == 2
    assert "line 7" in capsys.readouterr().err


def test_half_written_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "half"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    assert main(["measure", "--draft", str(folder), "--out", str(tmp_path / "x")]) == 2
    assert "lacks" in capsys.readouterr().err
