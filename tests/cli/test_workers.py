"""``--workers`` and ``--scheduler`` of measure and predict: what is refused, said and kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spectheory.cli import loading
from spectheory.cli.loading import _runner_of, _source_of, settings_of
from spectheory.cli.options import MeasuringOptions, PairOptions, TextOptions
from spectheory.measure import Progress, measure
from spectheory.pairs import PROMPTS
from spectheory.prompts import read_prompts
from tests.commands import refused
from tests.measure.runner_cases import assert_equal_bytes, kept


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--workers 0", "--workers is 0: must be in 1..1024"),
        ("--workers 2000", "--workers is 2000"),
        ("--workers 2 --scheduler tcp://127.0.0.1:9", "--workers and --scheduler are both given"),
        ("--workers 2 --device-map auto", "--workers and --device-map are both given"),
        ("--workers 2 --threads 4096", "--threads is 4096: each of 2 workers has"),
    ],
)
@pytest.mark.parametrize("command", ["measure", "predict"])
def test_what_is_refused(
    command: str, given: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused([command, "--out", tmp_path, *given.split()], capsys)


def test_what_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(loading, "processors", lambda: 2)
    monkeypatch.setattr(loading, "local_workers", lambda load, devices, threads: started.append(devices))
    pair = PairOptions(device="cpu")
    _runner_of(MeasuringOptions(), pair, 3)
    assert started == []
    for asked, said in ((2, ""), (3, "3 workers share 2 cores\n"), (9, "3 workers are started, one for each prompt\n")):
        _runner_of(MeasuringOptions(workers=asked), pair, 3)
        assert started.pop() == ["cpu"] * min(asked, 3)
        err = capsys.readouterr().err
        assert err.startswith(said)
        assert bool(err) == (asked > 2)


def test_another_folder_finds_the_same_models(
    tiny_folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny_folders[0].parent)
    source = _source_of(PairOptions(target="./target", draft="builtin:draft", device="cpu")).absolute()
    assert (source.target, source.draft) == (str(tiny_folders[0]), "builtin:draft")


@pytest.mark.evidence
def test_an_interrupt_ends_all_workers_and_keeps_what_is_finished(tmp_path: Path) -> None:
    """Ctrl-C, then SIGKILL of the program alone; the rest here: the same trace as without workers."""
    prompts, out = tmp_path / "prompts.jsonl", tmp_path / "two" / "trace.parquet"
    prompts.write_text("\n".join(PROMPTS.read_text().splitlines()[:12]))
    options = ["--prompts", prompts, "--out", out.parent, "--device", "cpu", "--threads", "1", "--workers", "2"]
    for how, status in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
        before = len(kept(out))
        run = subprocess.Popen(
            [sys.executable, "-m", "spectheory", "measure", *map(str, options)],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        while len(kept(out)) < before + 2:
            assert run.poll() is None, run.communicate()[1]
            time.sleep(0.05)
        send = os.killpg if how is signal.SIGINT else os.kill  # Ctrl-C goes to the workers too
        send(run.pid, how)
        _, said = run.communicate(timeout=60)  # it ends when the workers, which hold its stderr, have ended
        assert run.returncode == status, said
        assert "Traceback" not in said
    pair, settings = _source_of(PairOptions(device="cpu")).load(), settings_of(TextOptions())
    left = len(kept(out))
    seen: list[Progress] = []
    resumed = measure(pair, read_prompts(prompts), settings, out, on_progress=seen.append)
    assert 4 <= left == seen[0].resumed < 12
    assert_equal_bytes(resumed, measure(pair, read_prompts(prompts), settings, tmp_path / "one.parquet"))
