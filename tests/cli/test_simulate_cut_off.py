"""`spectheory simulate` when it is interrupted or killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simulations.experiments.results import read_results
from simulations.sweeps import making
from simulations.verdicts import predictions
from simulations.verdicts.predictions import Predicted
from spectheory.cli import main
from spectheory.cli.interrupts import PATIENCE
from tests.cli.simulate_cases import FEW, PAIR


@pytest.mark.evidence
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_its_batches_and_leaves_no_process(sent: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    command = ["simulate", "race-dense", *PAIR, "--trials", "1000000000", "--batch-size", "20000"]
    command += ["--out", str(tmp_path)]
    run = begun("-m", "spectheory", *command)
    for _ in range(600):
        if path.exists() and path.stat().st_size > 3000:
            break
        time.sleep(0.1)
    run.send_signal(sent)
    out, err = run.communicate(timeout=60)
    assert (run.returncode, out) == (130, ""), err
    assert "interrupted" in err
    results = read_results(path)
    assert results.remarks == []
    assert any(results.batches.values())


ENDLESS = ("race", *PAIR, "--trials", "10", "--batch-size", str(10**12), "--workers", "1")

SLOW_TRIAL = """
import sys
from simulations.experiments import tasks
from simulations import simulators
from spectheory.cli import main
race = tasks.registered("race")
endless = lambda parameters, trials, state: print("begun", file=sys.stderr) or race.run(parameters, 10**12, state)
tasks._registered["race"] = race._replace(run=endless)
sys.exit(main(sys.argv[1:]))
"""

GRACE_OF_AN_HOUR = """
import sys
from simulations.experiments import collect
from spectheory.cli import main
collect.GRACE = 3600
sys.exit(main(sys.argv[1:]))
"""


def begun(*command: str) -> subprocess.Popen[str]:
    """A process that takes interruptions, also where this one was started without."""
    return subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def computing(run: subprocess.Popen[str]) -> int:
    """A worker of the run, as soon as it has computed for a second: a process of the server that forks workers."""
    for _ in range(600):
        for server in children(run.pid):
            for worker in children(server):
                words = Path(f"/proc/{worker}/stat").read_text().rpartition(") ")[2].split()
                if int(words[11]) > os.sysconf("SC_CLK_TCK"):
                    return worker
        time.sleep(0.1)
    run.kill()
    raise AssertionError(f"no worker computes: {run.communicate()[1]}")


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.evidence
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
@pytest.mark.parametrize("sent", [(signal.SIGINT,), (signal.SIGTERM,), (signal.SIGINT, signal.SIGINT)])
def test_a_batch_that_does_not_end_is_cut_off(sent: tuple[signal.Signals, ...]) -> None:
    """After a grace; a second interruption that comes soon is the first. The worker is gone, and nothing was kept."""
    run = begun("-m", "spectheory", "simulate", *ENDLESS)
    worker = computing(run)
    for each in sent:
        run.send_signal(each)
        time.sleep(PATIENCE / 4)
    out, err = run.communicate(timeout=60)
    assert (run.returncode, out) == (130, "")
    assert err.endswith("spectheory: interrupted; nothing was kept (--out FOLDER keeps finished batches)\n")
    assert not alive(worker)


@pytest.mark.evidence
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
def test_a_later_interruption_ends_a_run_at_once() -> None:
    """However long the grace for a running batch is: here an hour."""
    run = begun("-c", GRACE_OF_AN_HOUR, "simulate", *ENDLESS)
    worker = computing(run)
    run.send_signal(signal.SIGINT)
    time.sleep(PATIENCE + 1)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert (run.returncode, out) == (130, "")
    assert "spectheory: interrupted again; ended at once\n" in err
    assert not alive(worker)


@pytest.mark.evidence
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
def test_a_kill_ends_a_worker_that_computes() -> None:
    run = begun("-m", "spectheory", "simulate", *ENDLESS)
    worker = computing(run)
    run.kill()
    run.communicate(timeout=60)  # the worker holds the other end
    assert not alive(worker)


def test_a_first_trial_that_does_not_end_is_cut_off(tmp_path: Path) -> None:
    """By either signal, one without a folder for results and one with it, side by side."""
    runs = {}
    for sent, results in ((signal.SIGINT, False), (signal.SIGTERM, True)):
        kept = ("--out", str(tmp_path / sent.name)) if results else ()
        runs[sent, results] = begun("-c", SLOW_TRIAL, "simulate", "race", *PAIR, *kept)
    for run in runs.values():
        assert run.stderr is not None
        assert run.stderr.readline() == "begun\n"
    time.sleep(1)
    for (sent, _), run in runs.items():
        run.send_signal(sent)
    for case, run in runs.items():
        out, err = run.communicate(timeout=60)
        assert (run.returncode, out) == (130, ""), case
        assert err == "spectheory: interrupted; " + (
            "if files were written, the same command goes on from them\n"
            if case[1]
            else "nothing was kept (--out FOLDER keeps finished batches)\n"
        ), case


def test_a_request_to_terminate_is_an_interruption_wherever_it_comes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """While theory is computed, and while figures are drawn again."""
    before = signal.getsignal(signal.SIGTERM)

    def terminated(*_: object) -> list[Predicted]:
        os.kill(os.getpid(), signal.SIGTERM)
        return []

    monkeypatch.setitem(predictions._predictors, "race", terminated)
    assert main(["simulate", "race", *PAIR, *FEW]) == 130
    assert "nothing was kept" in capsys.readouterr().err
    monkeypatch.setattr(making, "redraw", terminated)
    assert main(["figures", "race", "--redraw", "--out", str(tmp_path)]) == 130
    assert "interrupted; if files were written" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) is before
