"""A server of our own: started on a free port, awaited, and always stopped."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from spectheory.errors import EngineError
from spectheory.measure.engines.http import LONGEST, Http
from spectheory.measure.engines.processes import running

START = 300.0
"""Seconds that a server may take to load its models."""
EVERY = 0.2


@contextmanager
def serving(
    command: Sequence[str], log: Path, *, env: Mapping[str, str] | None = None, start: float = START
) -> Iterator[Http]:
    """Run `command` with ``{port}`` filled in until the block ends; its output goes to `log`.

    It is ready when ``/health`` answers.
    """
    port = free_port()
    filled = [part.replace("{port}", str(port)) for part in command]
    log.parent.mkdir(parents=True, exist_ok=True)
    options: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stderr": subprocess.STDOUT,
        "env": {**os.environ, **(env or {})},
    }
    with log.open("wb") as output, running(filled, stdout=output, **options) as process:
        http = Http(f"http://127.0.0.1:{port}", LONGEST)
        _await(process, http, log, start)
        yield http


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
