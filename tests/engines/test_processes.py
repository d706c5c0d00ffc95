"""Processes of engines: none stays, not even if this process is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spectheory.measure.engines import processes
from spectheory.measure.engines.processes import running
from tests.made_up import each

CHILD = 'sleep 60 & echo $! > "$1"; wait'
"""A shell with a child of its own."""
SCRIPT = """
import sys, time
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("processes", sys.argv[3])  # without torch, which its package imports
spec.loader.exec_module(processes := module_from_spec(spec))
with processes.running(["/bin/sh", "-c", sys.argv[1], "sh", sys.argv[2]]) as process:
    print(process.pid, flush=True)
    time.sleep(60)
"""


def alive(process: int) -> bool:
    """Whether a process runs; one that has ended and is not awaited does not."""
    said = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True).stdout.strip()
    return bool(said) and not said.startswith("Z")


def none_after(*processes: int) -> bool:
    """Whether processes have ended, within some seconds."""
    for _ in range(100):
        if not any(map(alive, processes)):
            return True
        time.sleep(0.05)
    return False


def child_in(file: Path) -> int:
    for _ in range(100):
        if file.exists() and file.read_text().strip():
            return int(file.read_text())
        time.sleep(0.05)
    raise AssertionError("the child did not start")


@each("ending", [None, KeyboardInterrupt])
def test_children_end_with_the_block(ending: type[BaseException] | None, tmp_path: Path) -> None:
    file = tmp_path / str(ending)

    def work() -> None:
        with running(["/bin/sh", "-c", CHILD, "sh", str(file)]) as process:
            ids.extend((process.pid, child_in(file)))
            assert all(map(alive, ids))
            if ending:
                raise ending

    ids: list[int] = []
    if ending:
        with pytest.raises(ending):
            work()
    else:
        work()
    assert none_after(*ids)


def test_they_end_if_this_process_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "child"
    command = [sys.executable, "-c", SCRIPT, CHILD, str(file), str(processes.__file__)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout
        process = int(killed.stdout.readline())
        child = child_in(file)
        os.kill(killed.pid, signal.SIGKILL)
    assert none_after(process, child)
