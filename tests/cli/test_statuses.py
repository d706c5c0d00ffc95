"""Exit statuses: the table of the docs, the constants, and what the commands return."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import spectheory
from spectheory.cli import main
from spectheory.cli.app import FILES, app
from spectheory.cli.statuses import MEANINGS, Status
from tests.made_up import each

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
COMMANDS = sorted(str(command.name) for command in app.registered_commands)


def begun(*arguments: str) -> subprocess.Popen[str]:
    """A command in a process of its own."""
    command = [sys.executable, "-m", "spectheory", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_table_of_the_docs_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+?) \|$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {int(status): meaning for status, meaning in rows} == {int(s): meaning for s, meaning in MEANINGS.items()}
    assert set(MEANINGS) == set(Status)


def test_help_names_every_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-h"]) == Status.DONE
    short = capsys.readouterr().out
    assert main(["--help"]) == Status.DONE
    assert capsys.readouterr().out == short
    words = " ".join(short.split())
    assert all(f"{status:d} {meaning}" in words for status, meaning in MEANINGS.items())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_short_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "-h"]) == Status.DONE
    assert "-h, --help" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == Status.DONE
    assert capsys.readouterr() == (f"spectheory {spectheory.__version__}\n", "")


def test_without_a_command_the_help_stands_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == Status.BAD_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") > 10


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Let `spectheory rules` fail inside with an error."""

    def failing(error: BaseException) -> None:
        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr("spectheory.cli.theory.run_rules", fail)

    return failing


def test_an_internal_error_says_that_it_is_a_bug(
    broken: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(ZeroDivisionError("by\ndesign"))
    monkeypatch.delenv("SPECTHEORY_DEBUG", raising=False)
    assert main(["rules"]) == Status.INTERNAL_ERROR
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "a bug in spectheory: ZeroDivisionError: by design" in line
    assert "SPECTHEORY_DEBUG=1" in line
    monkeypatch.setenv("SPECTHEORY_DEBUG", "1")
    assert main(["rules"]) == Status.INTERNAL_ERROR
    assert "in fail\n" in capsys.readouterr().err, "the traceback names the function"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (MemoryError(), Status.BAD_INPUT),
        (MemoryError("Unable to allocate 7 TiB"), Status.BAD_INPUT),
        (type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory"), Status.BAD_INPUT),
        (OSError(28, "No space left on device"), Status.BAD_INPUT),
        (KeyboardInterrupt(), Status.INTERRUPTED),
        (RuntimeError("unforeseen"), Status.INTERNAL_ERROR),
        (KeyError("unforeseen"), Status.INTERNAL_ERROR),
    ],
)
def test_how_errors_end(
    error: BaseException,
    status: Status,
    broken: Callable[[BaseException], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    broken(error)
    assert main(["rules"]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"spectheory: .+\n", err)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_option_is_bad_input_everywhere(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--nonsense"]) == Status.BAD_INPUT
    assert re.fullmatch(r"spectheory: .+\n", capsys.readouterr().err)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_every_command_alike(
    command: str, sent: signal.Signals, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal that comes while the command runs; the handlers of before are back afterwards."""
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def signalled(*_: object, **__: object) -> int:
        os.kill(os.getpid(), sent)
        time.sleep(5)
        return 0

    monkeypatch.setattr(f"spectheory.cli.{FILES.get(command, command)}.run_{command}", signalled)
    out = ["--out", "x"]
    needed = {
        "measure": out,
        "validate": out,
        "bench": out,
        "validations": ["x", *out],
        "import": ["x", *out],
        "judge": ["x"],
        "compare": ["x", "y"],
        "gate": ["x", "--expect", "y"],
        "noise": ["x"],
        "watch": ["x", "--expect", "y"],
        "simulate": ["race"],
    }.get(command, [])
    try:
        assert main([command, *needed]) == Status.INTERRUPTED
        assert "interrupted" in capsys.readouterr().err
        assert signal.getsignal(signal.SIGTERM) is before[1]
    finally:
        signal.signal(signal.SIGINT, before[0])


def test_a_disagreement_is_no_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A false claim of the user's own; stderr stays empty."""
    pytest.importorskip("sympy")
    file = tmp_path / "claim.py"
    file.write_text("from proofs_check import Claim, at_most\nc = Claim('p <= q', lambda p, q: at_most(p[0], q[0]))\n")
    assert main(["verify", "--claim", str(file)]) == Status.DISAGREEMENT
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_reader_that_leaves(form: list[str]) -> None:
    """The status of a shell's own tools, and nothing on stderr."""
    with begun("rules", "--target-pmf", "0.5,0.5", "--draft-pmf", "0.9,0.1", *form) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        assert run.stderr.read() == ""
    assert run.returncode == Status.READER_LEFT


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_full_disk_is_one_line(form: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "spectheory", "rules", "--target-pmf", "0.5,0.5", "--draft-pmf", "0.9,0.1", *form],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ran.returncode == Status.BAD_INPUT
    assert re.fullmatch(r"spectheory: .*No space left on device.*\n", ran.stderr)


RULES = [sys.executable, "-m", "spectheory", "rules", "--candidates", "2"]


@pytest.mark.parametrize(
    ("pmfs", "status"),
    [("--target-pmf 0.5,0.5 --draft-pmf 0.9,0.1", Status.DONE), ("--target-pmf 0.5,0.5", Status.BAD_INPUT)],
)
@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_closed_or_full_stderr_changes_no_status(pmfs: str, status: Status, stderr: str) -> None:
    command = f"{shlex.join(RULES)} {pmfs} {stderr}"
    ran = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, text=True, check=False)
    assert ran.returncode == status
    assert ("token" in ran.stdout) == (status == Status.DONE)


def test_an_interruption_within_generated_code_has_its_status(tmp_path: Path) -> None:
    """As dataclasses are made while modules load: the interpreter marks it, and would end by the signal."""
    (tmp_path / "interrupted.py").write_text(
        "import sys\nimport spectheory.cli.theory\nfrom spectheory.cli import main\n"
        "spectheory.cli.theory.run_rules = lambda *_: exec('raise KeyboardInterrupt')\nsys.exit(main(['rules']))\n"
    )
    command = [sys.executable, "-m", "interrupted"]
    ran = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(PAGE.parent.parent)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == Status.INTERRUPTED
    assert re.fullmatch(r"spectheory: interrupted.+\n", ran.stderr)


SLOW = (
    "import sys, time\nimport spectheory.cli.theory\nfrom spectheory.cli import main\n"
    "def slow(*_):\n    print('begun', flush=True)\n    try:\n        time.sleep(30)\n"
    "    finally:\n        time.sleep(0.3)\n"
    "spectheory.cli.theory.run_rules = slow\nsys.argv[1:] = ['rules']\nsys.exit(main())\n"
)
"""A command that works, and tidies up for a while when it is interrupted."""


@pytest.mark.evidence
@each("pause", [0.0, 0.02, 0.05, 0.35])
def test_a_second_interruption_is_the_first_one(pause: float) -> None:
    """While what is finished is kept, and while the process ends: the status stays, and nothing is printed twice."""
    with subprocess.Popen(
        [sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "begun\n"
        for _ in range(3):
            run.send_signal(signal.SIGINT)
            time.sleep(pause)
        _, said = run.communicate(timeout=20)
    assert run.returncode == Status.INTERRUPTED
    assert said.count("\n") == 1
    assert said.startswith("spectheory: interrupted")


LOADING = (
    "import os, signal, sys\nfrom spectheory.cli import main\nassert 'numpy' not in sys.modules\n"
    "class Finder:\n    def find_spec(self, name, *_):\n        if name == 'spectheory.cli.app':\n            try:\n"
    "                os.kill(os.getpid(), signal.SIGINT)\n            except KeyboardInterrupt:\n"
    "                raise ImportError('initialization failed')\n"
    "sys.meta_path.insert(0, Finder())\nsys.argv[1:] = ['rules']\nsys.exit(main())\n"
)
"""A command that is interrupted while it loads its modules, by one that makes another error of it, as scipy's do."""


def test_an_interruption_while_modules_are_loaded() -> None:
    """Nothing large is loaded before signals are handled, so the time without an answer in one line is short."""
    ran = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr.count("\n")) == (Status.INTERRUPTED, 1), ran.stderr
    assert ran.stderr.startswith("spectheory: interrupted")


@pytest.mark.evidence
@each("backend", ["module://matplotlib_inline.backend_inline", "nonsense"])
def test_figures_are_written_whatever_backend_is_set(backend: str, tmp_path: Path) -> None:
    """A notebook sets one that is not installed here; a wrong name would end the import of matplotlib."""
    logprobs = tmp_path / "texts.jsonl"
    logprobs.write_text('{"target": [-1, -0.5], "draft": [-2, -0.1]}\n' * 2)
    command = [*RULES[:3], "predict", "--logprobs", str(logprobs), "--k-max", "2", "--out", str(tmp_path / "out")]
    ran = subprocess.run(
        command, env={**os.environ, "MPLBACKEND": backend}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == Status.DONE, ran.stderr
    assert list((tmp_path / "out").glob("*.png"))


def test_a_pipe_without_a_writer_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Read in any way: as a log, as numbers, as a part of a model's folder; and one without a reader as a page."""
    for name in ("pipe", "pmf.npy", "page.html", "config.json"):
        os.mkfifo(tmp_path / name)
    pages = ["predict", "--report", tmp_path / "page.html"]
    models = ["measure", "--target", tmp_path, "--out", tmp_path / "new", "--draft", tmp_path]
    pmfs = ["rules", "--draft-pmf", "1", "--target-pmf", tmp_path / "pmf.npy"]
    logs = [["predict"], ["import", "--out", tmp_path / "new"], ["judge"]]
    for command in (*([*log, tmp_path / "pipe"] for log in logs), pmfs, models, pages):
        assert main([*map(str, command)]) == Status.BAD_INPUT
        assert "is a pipe" in capsys.readouterr().err
