"""A server of our own: started on a free port, awaited, and always stopped."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from spectheory.errors import EngineError
from spectheory.measure.engines.http import LONGEST, Http

START = 300.0
"""Seconds that a server may take to load its models."""
END = 10.0
"""Seconds from a request to end until it is killed."""
EVERY = 0.2


@contextmanager
def serving(
    command: Sequence[str], log: Path, *, env: Mapping[str, str] | None = None, start: float = START
) -> Iterator[Http]:
    """Run `command` with ``{port}`` filled in until the block ends; its output goes to `log`.

    It is ready when ``/health`` answers. All its processes are stopped, however the block ends.
    """
    port = free_port()
    filled = [part.replace("{port}", str(port)) for part in command]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            filled,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            start_new_session=True,  # Ctrl-C comes to us alone; we stop the whole group
        )
    http = Http(f"http://127.0.0.1:{port}", LONGEST)
    try:
        _await(process, http, log, start)
        yield http
    finally:
        _stop(process)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def _await(process: subprocess.Popen[bytes], http: Http, log: Path, start: float) -> None:
    until = time.monotonic() + start
    while time.monotonic() < until:
        if process.poll() is not None:
            raise EngineError(
                f"{Path(process.args[0]).name} ended with status {process.returncode} ({_last_words(log)})",  # type: ignore[arg-type, index]
                limit="it must serve",
                remedy=f"see {log}",
            )
        with suppress(EngineError):
            if http.get("/health") is not None:
                return
        time.sleep(EVERY)
    raise EngineError(
        f"{Path(process.args[0]).name} does not answer /health",  # type: ignore[arg-type, index]
        limit=f"within {start:g} s",
        remedy=f"see {log}",
    )


def _last_words(log: Path) -> str:
    """The last line of a log that names an error, or its last line."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line]
    return (errors or lines or ["it said nothing"])[-1][-200:]


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the process and its children."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, kind)
        with suppress(subprocess.TimeoutExpired):
            process.wait(END)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
