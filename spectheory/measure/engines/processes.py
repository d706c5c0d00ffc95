"""Processes of engines: none stays behind, however the work ends."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

END = 10.0
"""Seconds from a request to end until a process is killed."""
WATCH = f'read -r never; kill -TERM -"$1"; sleep {END:g}; kill -KILL -"$1"'
"""A shell's script: it reads a pipe that only this process holds, so the end of the pipe is the end of this process."""


@contextmanager
def running(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Run `command` with ``Popen``'s `options`; the process and its children end with the block.

    They also end if this process is killed. Ctrl-C reaches this process alone.

    Examples
    --------
    >>> with running(["sleep", "60"]) as process:
    ...     process.poll()
    >>> process.returncode == -signal.SIGTERM
    True
    """
    silent: dict[str, Any] = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
    process = subprocess.Popen(command, start_new_session=True, **options)
    watch = None
    try:
        script = ["/bin/sh", "-c", WATCH, "sh", str(process.pid)]
        watch = subprocess.Popen(script, stdin=subprocess.PIPE, start_new_session=True, **silent)
        yield process
    finally:
        try:
            _stop(process)
        finally:
            if watch:
                watch.kill()  # before its pipe is closed
                watch.communicate()


def _stop(process: subprocess.Popen[Any]) -> None:
    """End the process and its children, and close its pipes."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, kind)
        with suppress(subprocess.TimeoutExpired):
            process.wait(END)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            with suppress(OSError):
                pipe.close()
