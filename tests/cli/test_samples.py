"""What ships to try the commands on: the recorded trace is the measured one, every log is read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.training.sample_trace import LEFT_OUT, WHOLE
from spectheory.cli import main
from spectheory.trace import Trace, read_evidence
from spectheory.trace.samples import PAIR, sample_logs
from tests.commands import refused


def test_the_recorded_trace_is_the_measured_one() -> None:
    shipped, whole = Trace.read(PAIR).in_memory(), Trace.read(WHOLE).in_memory()
    assert shipped.texts == whole.texts
    assert set(shipped.columns) == {*whole.columns, "renyi"} - {*LEFT_OUT}
    same = {*shipped.columns} - {"renyi"}
    assert all(np.array_equal(shipped.columns[name], whole.columns[name]) for name in same)
    divergences = np.column_stack([shipped.columns["renyi"], shipped.columns["kl"]])
    assert (np.diff(divergences, axis=1) > -1e-5).all(), "Renyi divergences grow with their order, and end at the KL"
    assert (PAIR / "latency.json").read_bytes() == (WHOLE / "latency.json").read_bytes()
    assert sum(file.stat().st_size for file in PAIR.iterdir()) < 700_000


def test_the_name_stands_for_the_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "builtin:", "--rule", "token", "--k-max", "2", "--json"]) == 0
    named = json.loads(capsys.readouterr().out)
    assert main(["predict", str(PAIR), "--rule", "token", "--k-max", "2", "--json"]) == 0
    assert named == json.loads(capsys.readouterr().out)
    assert named["speedup"] is not None


def test_samples_are_listed_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["samples", "--out", str(tmp_path / "s"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer["logs"]) == {log.name for log in sample_logs()}
    assert all(Path(path).exists() for path in answer["written"])
    assert all(read_evidence(tmp_path / "s" / name) for name in answer["logs"])
    (tmp_path / "file").touch()
    assert "cannot be written" in refused(["samples", "--out", tmp_path / "file"], capsys)
