"""Programs of engines: where they are, what they say, how they run and end; a server of our own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from spectheory.errors import EngineError, SettingError
from spectheory.measure.engines.http import LONGEST, Http

_PATIENCE = 120.0
"""Seconds that a program may take to say its version."""


def find_program(engine: str, named: str | None, usual: str, remedy: str) -> str:
    """The whole path of a program named, or else of the usual one; a ``SettingError`` if it is not there."""
    found = shutil.which(named or usual)
    if found is None:
        raise SettingError(
            f"{engine} needs the program {named or usual!r}, which is not there",
            limit="must be on the PATH, or be named with its path",
            remedy=f"{remedy}, as --engine {engine}=PATH" if "--engine" not in remedy else remedy,
        )
    return found


def version_of(engine: str, command: list[str], remedy: str) -> str:
    """The version that a Python prints; what it warns of is left out."""
    said = _ran(engine, command, remedy).stdout.split("\n", 1)[0].strip()
    if not said:
        raise SettingError(f"{command[0]} says no version", limit=f"must be a Python with {engine}", remedy=remedy)
    return said


def output_of(engine: str, command: list[str], remedy: str) -> str:
    """What a program prints, both streams."""
    ran = _ran(engine, command, remedy)
    return ran.stdout + ran.stderr


def _ran(engine: str, command: list[str], remedy: str) -> subprocess.CompletedProcess[str]:
    """A program's end; a ``SettingError`` if it fails."""
    patient: dict[str, Any] = {"timeout": _PATIENCE, "stdin": subprocess.DEVNULL, "errors": "replace"}
    try:
        ran = subprocess.run(command, capture_output=True, **patient)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SettingError(f"{command[0]} does not run ({error})", limit=f"must run {engine}", remedy=remedy) from error
    if ran.returncode:
        said = (ran.stderr.strip() or "it said nothing").splitlines()[-1][-200:]
        raise SettingError(f"{command[0]} has no {engine} ({said})", limit=f"must run {engine}", remedy=remedy)
    return ran


_END = 10.0
"""Seconds from a request to end until a process is killed."""
_WATCH = f'read -r never; kill -TERM -"$1"; sleep {_END:g}; kill -KILL -"$1"'
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
        script = ["/bin/sh", "-c", _WATCH, "sh", str(process.pid)]
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
            process.wait(_END)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            with suppress(OSError):
                pipe.close()


_START = 300.0
"""Seconds that a server may take to load its models."""
_EVERY = 0.2


@contextmanager
def serving(
    command: Sequence[str], log: Path, *, env: Mapping[str, str] | None = None, start: float = _START
) -> Iterator[Http]:
    """Run `command` with ``{port}`` filled in until the block ends; its output goes to `log`.

    It is ready when ``/health`` answers.
    """
    port = _free_port()
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


def _free_port() -> int:
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
        time.sleep(_EVERY)
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
