"""Workers are forked from a process that has loaded the kernels: what they have of the run, and how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simulations.experiments import PRELOADED
from simulations.experiments.collect import process_pool
from spectheory import processes
from spectheory.processes import fresh_processes

linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each worker is a new interpreter")
ROOT = Path(__file__).parents[2]


def environment(name: str) -> str | None:
    """What a worker has of this process's memory."""
    return getattr(processes, name, None)


@linux
def test_workers_begin_with_the_kernels_and_without_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The modules are there at once; what this process has in memory is not."""
    monkeypatch.setattr(processes, "of_the_run", "here", raising=False)
    assert environment("of_the_run") == "here"
    with process_pool(1) as pool:
        assert pool.submit(environment, "of_the_run").result() is None
        assert pool.submit(os.getppid).result() != os.getpid()


def test_elsewhere_each_is_a_new_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert fresh_processes(PRELOADED).get_start_method() == "spawn"


SCRIPT = """
import os, sys
from simulations.experiments.collect import process_pool
from spectheory.processes import prepare

def state():
    return PRELOADED in sys.modules, sum(name.startswith("simulations.kernels.") for name in sys.modules) > 5

PRELOADED = "simulations.preloaded"
if __name__ == "__main__":
    prepare(sys.argv[1])
    print("prepared", flush=True)
    sys.stdin.readline()
    with process_pool(2) as pool:
        print(pool.submit(state).result(), flush=True)
"""


def started(tmp_path: Path, module: str = PRELOADED) -> subprocess.Popen[str]:
    """A run whose preparation has begun, in a process group of its own."""
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    run = subprocess.Popen(
        [sys.executable, str(script), module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "prepared\n"
    return run


@linux
def test_what_is_prepared_is_loaded(tmp_path: Path) -> None:
    assert started(tmp_path).communicate("\n", timeout=120) == ("(True, True)\n", "")


@linux
def test_a_kill_while_modules_are_loaded_leaves_no_process(tmp_path: Path) -> None:
    """The preparing process holds the other end of the pipes: they end when it has left."""
    run = started(tmp_path)
    run.send_signal(signal.SIGKILL)
    began = time.monotonic()
    assert run.communicate(timeout=60) == ("", "")
    assert time.monotonic() - began < 30


SLOW = """
import pathlib, time
pathlib.Path(__file__).with_name("loading").touch()
time.sleep(2)
"""


@linux
def test_an_interrupt_while_modules_are_loaded_is_the_runs_alone(tmp_path: Path) -> None:
    """Control-C goes to all processes of a terminal: one traceback, that of the run, whatever is being loaded."""
    (tmp_path / "slow_to_load.py").write_text(SLOW)
    run = started(tmp_path, "slow_to_load")
    limit = time.monotonic() + 60
    while not (tmp_path / "loading").exists():
        assert time.monotonic() < limit
        time.sleep(0.01)
    os.killpg(run.pid, signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert said.count("KeyboardInterrupt") == 1
    assert "slow_to_load" not in said
