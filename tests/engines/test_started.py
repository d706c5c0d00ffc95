"""Engines that start a server of their own: ready, stopped however the work ends; none of their processes stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spectheory.errors import EngineError, SettingError
from spectheory.measure.engines import Job, Seats, find_engine, processes
from spectheory.measure.engines.processes import running, serving
from spectheory.measure.engines.validation import _run_job
from tests.engines import stub_server
from tests.engines.stub_server import Stub
from tests.engines.test_server import job, models
from tests.made_up import each, one_line

STUB = str(Path(stub_server.__file__))

VLLM = """#!/bin/sh
if [ "$1" = -c ]; then echo 9.9.9; exit; fi
for each in "$@"; do echo "$each"; done > {arguments}
shift 2
exec {python} {stub} --owner vllm "$@"
"""
LLAMA = """#!/bin/sh
if [ "$1" = --version ]; then echo "version: 9.9.9 (abc)" >&2; exit; fi
for each in "$@"; do echo "$each"; done > {arguments}
exec {python} {stub} --owner llamacpp "$@"
"""


def gone(process: int) -> bool:
    """Whether a process has ended, within a second."""
    for _ in range(50):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def started(tmp_path: Path, *arguments: str, start: float = 20.0) -> Any:
    command = ["/bin/sh", "-c", f'echo $$ > {tmp_path}/pid; exec "$@"', "-", sys.executable, STUB, *arguments]
    return serving([*command, "--port", "{port}"], tmp_path / "server.log", start=start)


@each("ending", [None, KeyboardInterrupt, EngineError("x", limit="y", remedy="z"), signal.SIGINT])
def test_a_server_is_stopped_however_the_work_ends(ending: Any, tmp_path: Path) -> None:
    def work() -> None:
        with started(tmp_path) as http:
            assert http.get("/version") == json.dumps({"version": stub_server.VERSION, "build_info": "1.2.3"})
            if isinstance(ending, signal.Signals):
                threading.Timer(0.1, os.kill, (os.getpid(), ending)).start()
                time.sleep(5)
            elif ending:
                raise ending

    if ending:
        with pytest.raises((KeyboardInterrupt, EngineError)):
            work()
    else:
        work()
    assert gone(int((tmp_path / "pid").read_text()))


@each(
    "arguments, start, fragment",
    [
        (["--fail"], 20.0, "ended with status 1 (RuntimeError: no such model)"),
        ([], 0.0, "does not answer /health: within 0 s"),
    ],
)
def test_a_server_that_never_serves_is_one_line(
    arguments: list[str], start: float, fragment: str, tmp_path: Path
) -> None:
    with pytest.raises(EngineError) as caught, started(tmp_path, *arguments, start=start):
        pass
    assert fragment in one_line(caught)


def program(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "program"
    file.write_text(text.format(arguments=tmp_path / "arguments", python=sys.executable, stub=STUB))
    file.chmod(0o755)
    return file


def ran(tmp_path: Path, name: str, text: str, asked: Job) -> dict[str, str]:
    """Run a job; the arguments that the engine's program was given."""
    engine = find_engine(f"{name}={program(tmp_path, text)}")
    log = _run_job(engine, asked, models(tmp_path), tmp_path / f"{asked.k}-{asked.drafts}")
    stub = Stub()
    for request in log.requests:
        assert request.calls == (len(stub.accepted(list(request.prompt), len(request.output))) if asked.k else None)
    assert (log.engine, log.version.split()[0], log.prefill_emits_token) == (name, "9.9.9", True)
    assert str(tmp_path) not in json.dumps(log.header()), "no paths of this machine"
    lines = (tmp_path / "arguments").read_text().splitlines()
    return {one: other for one, other in zip(lines, [*lines[1:], ""], strict=True) if one.startswith("--")}


def test_vllm_is_started_as_the_job_says(tmp_path: Path) -> None:
    plain = ran(tmp_path, "vllm", VLLM, job(k=None))
    assert plain["--dtype"] == "float32"
    assert "--speculative-config" not in plain
    for drafts, method in (("sampled", "probabilistic"), ("argmax", "greedy"), (None, None)):
        config = json.loads(ran(tmp_path, "vllm", VLLM, job(drafts=drafts))["--speculative-config"])
        assert (config["num_speculative_tokens"], config.get("draft_sample_method")) == (3, method)
        assert Path(config["model"]).name == "draft"


def test_llama_is_started_as_the_job_says(tmp_path: Path) -> None:
    assert "--spec-draft-model" not in ran(tmp_path, "llama.cpp", LLAMA, job(k=None))
    for drafts, method in (("sampled", "probabilistic"), (None, None)):
        given = ran(tmp_path, "llama.cpp", LLAMA, job(drafts=drafts))
        assert (given["--spec-draft-n-max"], given.get("--spec-draft-sampling")) == ("3", method)
        files = [Path(given[name]).name for name in ("--model", "--spec-draft-model")]
        assert [name.partition("-")[0] for name in files] == ["target", "draft"]


@each(
    "name, text, room",
    [
        ("vllm", VLLM, {"--max-num-seqs": "4", "--dtype": "auto"}),
        ("llama.cpp", LLAMA, {"--parallel": "4", "--ctx-size": "400"}),
    ],
)
def test_a_server_has_room_for_its_requests(name: str, text: str, room: dict[str, str], tmp_path: Path) -> None:
    engine = find_engine(f"{name}={program(tmp_path, text)}")
    with engine.server(job(prompts=()), models(tmp_path), Seats(4, 100, "auto")) as http:
        assert http.get("/health")
    lines = (tmp_path / "arguments").read_text().splitlines()
    given = dict(zip(lines, [*lines[1:], ""], strict=True))
    assert {option: given[option] for option in room} == room


def test_an_engine_without_a_server_says_so(tmp_path: Path) -> None:
    with pytest.raises(SettingError) as caught:
        find_engine("openvino").server(job(), models(tmp_path), Seats())
    assert one_line(caught).startswith("openvino has no server that is started here")


def nothing(tmp_path: Path) -> str:
    return str(tmp_path / "nothing")


def failing(tmp_path: Path) -> str:
    return str(program(tmp_path, "#!/bin/sh\necho 'no package' >&2; exit 3\n"))


@each("name", ["vllm", "llama.cpp"])
@each("made, fragment", [(nothing, "needs the program"), (failing, "has no")])
def test_a_missing_engine_is_one_line_that_says_how_to_get_it(
    name: str, made: Callable[[Path], str], fragment: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingError) as caught:
        find_engine(f"{name}={made(tmp_path)}").version()
    assert fragment in one_line(caught)
    assert "install" in str(caught.value)


def test_an_unknown_engine_is_named() -> None:
    with pytest.raises(SettingError) as caught:
        find_engine("tgi")
    assert one_line(caught).startswith("engine 'tgi' is unknown: there are vllm, llama.cpp")


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
