"""Programs of engines: where they are, how they run and end; servers of our own, and JSON over HTTP."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from spectheory.checks import amount
from spectheory.errors import FOREIGN, EngineError, SettingError, argument, load_extra

LONGEST = 300.0
"""Seconds that a server may take for one whole answer."""
MOST_BYTES = 1 << 28
"""Bytes of an answer, unpacked: far more than a text of the longest context with its log-probabilities."""
CONNECT = 10.0
"""Seconds until a connection stands."""
_URL = re.compile(r"https?://[^/\s]")


class Http:
    """A server by its URL; the environment's proxies are not used.

    An answer may take `timeout` seconds in all and have `most` bytes, however it drips or is packed.

    No connection stays open between two calls, so there is nothing to close.
    """

    def __init__(self, url: str, timeout: float = LONGEST, most: int = MOST_BYTES) -> None:
        timeout = amount(
            argument("timeout", "--answer-seconds"), timeout, positive=True, below=1e9, remedy="300 is usual"
        )
        self.url = url.rstrip("/").removesuffix("/v1")
        self.timeout, self.most = timeout, most
        self._httpx = load_extra("httpx2", extra="engines")
        if not _URL.match(url):
            raise SettingError(f"server {url!r} is no URL", limit="needs a host", remedy="as http://localhost:8000")
        try:
            alone = self._httpx.Limits(max_keepalive_connections=0)
            patience = self._httpx.Timeout(timeout, connect=min(timeout, CONNECT))
            self._client = self._httpx.Client(base_url=self.url, timeout=patience, trust_env=False, limits=alone)
        except Exception as error:
            raise SettingError(
                f"server {url!r} is no URL ({error})", limit="needs a host", remedy="as http://localhost:8000"
            ) from error

    def get(self, path: str) -> str | None:
        """The text at `path`; None if the server has none."""
        status, content = self._sent("GET", path)
        return content.decode("utf-8", errors="replace") if status == 200 else None

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The object that the server answers."""
        status, content = self._sent("POST", path, json=body)
        if status != 200:
            said = " ".join(content.decode("utf-8", errors="replace").split())[:200]
            raise self._refused(f"answered {status} to {path} ({said})", "needs an answer 200")
        try:
            answer = json.loads(content)
        except FOREIGN:
            answer = None
        if not isinstance(answer, dict):
            raise self._refused(f"answered no JSON object to {path}", "needs an OpenAI-compatible server")
        return answer

    def _sent(self, method: str, path: str, **content: Any) -> tuple[int, bytes]:
        """The status of an answer, and its content unpacked."""
        until = time.monotonic() + self.timeout
        try:
            with self._client.stream(method, path, **content) as answer:
                parts, size = [], 0
                for part in answer.iter_bytes():
                    parts.append(part)
                    size += len(part)
                    if size > self.most:
                        raise self._refused(f"answered {path} with more than {self.most} bytes", "at most so many")
                    if time.monotonic() > until:
                        raise self._refused(f"did not end its answer to {path}", f"within {self.timeout:g} s")
                return answer.status_code, b"".join(parts)
        except self._httpx.TimeoutException as error:
            raise self._refused(f"did not answer {path}", f"within {self.timeout:g} s") from error
        except (self._httpx.HTTPError, self._httpx.InvalidURL, OSError) as error:
            reason = str(error) or type(error).__name__
            raise self._refused(f"cannot be reached or ended ({reason})", "must run until the last prompt") from error

    def _refused(self, what: str, limit: str) -> EngineError:
        return EngineError(
            f"server {self.url} {what}",
            limit=limit,
            remedy="check the server and its log; finished prompts are kept, the same command continues",
        )


_PATIENCE = 120.0
"""Seconds that a program may take to say its version."""


def find_program(engine: str, named: str | None, usual: str, remedy: str) -> str:
    """The whole path of a program named, or else of the usual one; a ``SettingError`` if it is not there."""
    program = shutil.which(named or usual)
    if program is None:
        raise SettingError(
            f"{engine} needs the program {named or usual!r}, which is not there",
            limit="must be on the PATH, or be named with its path",
            remedy=f"{remedy}, as --engine {engine}=PATH" if "--engine" not in remedy else remedy,
        )
    return program


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
            for kind in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, kind)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_END)
            for pipe in (process.stdin, process.stdout, process.stderr):
                with suppress(OSError):
                    pipe and pipe.close()
        finally:
            if watch:
                watch.kill()  # before its pipe is closed
                watch.communicate()


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
    with socket.socket() as bound:  # a port that nobody listens on
        bound.bind(("127.0.0.1", 0))
        port = int(bound.getsockname()[1])
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


def _await(process: subprocess.Popen[bytes], http: Http, log: Path, start: float) -> None:
    until = time.monotonic() + start
    while time.monotonic() < until:
        if process.poll() is not None:
            lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
            errors = [line for line in lines if "rror" in line]
            said = (errors or lines or ["it said nothing"])[-1][-200:]
            raise EngineError(
                f"{Path(process.args[0]).name} ended with status {process.returncode} ({said})",  # type: ignore[arg-type, index]
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
