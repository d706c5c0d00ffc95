"""The first line of commands that need torch, on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = {
    "measure": ["measure", "--out", "measured"],
    "validate": ["validate", "--out", "validated"],
    "predict": ["predict"],
    "doctor": ["doctor"],
}
PROBE = """
import sys
from spectheory.cli import main


class Unfinished:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise SystemExit(9)


sys.meta_path.insert(0, Unfinished())
main({arguments})
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_terminal_says_that_torch_is_loaded_before_it_is(command: str, tmp_path: Path) -> None:
    """The import of torch ends the process here, so that what was written came before it."""
    leader, follower = pty.openpty()
    probe = [sys.executable, "-c", PROBE.replace("{arguments}", repr(COMMANDS[command]))]
    env = {**os.environ, "TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(probe, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=follower):
        os.close(follower)
        said = b""
        while part := read(leader):
            said += part
    os.close(leader)
    assert b"loading torch" in said


def read(leader: int) -> bytes:
    """What the terminal got; nothing once the process has ended."""
    try:
        return os.read(leader, 4096)
    except OSError:
        return b""
