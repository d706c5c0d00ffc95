"""What the commands show: on terminals of any width, through pipes, in any encoding; names that steer a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from spectheory.cli import console, main
from spectheory.files import STEERING
from spectheory.trace import TextInfo, Trace
from tests.cli.plan_cases import latencies, measured
from tests.cli.theory_cases import full_trace
from tests.commands import answer, refused
from tests.made_up import each

WIDE = 400
"""A terminal on which every table of these questions stands whole."""
NUMBER = re.compile(r"[-+]?\d[\d.,e]*(?:±[\d.]+)?[x%]?")
LEFT_OUT = re.compile(r"Columns left out: (.*?) \(all need a terminal (\d+) wide\)\.")
QUESTIONS = {
    "rules": ["rules", "--target-pmf", "0.5,0.3,0.2", "--draft-pmf", "0.2,0.3,0.5", "--all"],
    "rules of a trace": ["rules", "FULL", "--all"],
    "bounds": ["bounds", "FULL", "--all"],
    "tree": ["tree", "--rank-pmf", "0.6,0.25,0.1", "--nodes", "12"],
    "plan": ["plan", "MEASURED", "--nodes-max", "4", "--k-max", "4", "--all"],
    "predict": ["predict", "FULL", "--c", "0.1", "--k-max", "4", "--bias", "0.5", "--all"],
    "simulate": ["simulate", "race", "--target-pmf", "0.5,0.3,0.2", "--draft-pmf", "0.2,0.3,0.5", "--trials", "2000"],
    "simulate list": ["simulate", "list"],
    "verify": ["verify", "A3/look-alike", "--workers", "1"],
}

ASKED: dict[tuple[str, int], str] = {}
"""What was printed, by question and width."""


@pytest.fixture(scope="module")
def question(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[str]]:
    """The arguments of a question, with a trace and a measured folder in place."""
    folder = tmp_path_factory.mktemp("shown")
    full_trace(folder / "full" / "trace.parquet")
    places = {"FULL": str(folder / "full"), "MEASURED": str(measured(folder / "measured"))}
    return lambda name: [places.get(word, word) for word in QUESTIONS[name]]


@pytest.fixture
def shown(
    question: Callable[[str], list[str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, int], str]:
    """What a question prints on a terminal of a width, asked once; times of runs are made one."""

    def run(name: str, width: int) -> str:
        if (name, width) not in ASKED:
            monkeypatch.setattr(console.answers, "_width", width)
            assert main(question(name)) == 0
            out = capsys.readouterr().out
            ASKED[name, width] = re.sub(r"in \d+ s|\b\d+\.\d(?=\s)", "T", out) if name == "verify" else out
        return ASKED[name, width]

    return run


def cut_numbers(narrow: str, wide: str) -> set[str]:
    """Numbers of the narrow output that the wide one does not have."""
    return set(NUMBER.findall(LEFT_OUT.sub("", " ".join(narrow.split())))) - set(NUMBER.findall(wide))


@pytest.mark.parametrize("width", [30, 60])
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_number_is_cut(name: str, width: int, shown: Callable[[str, int], str]) -> None:
    """A narrow terminal shows numbers of the wide one alone; a column that is not there is named."""
    wide, narrow = shown(name, WIDE), shown(name, width)
    assert not LEFT_OUT.search(wide)
    assert cut_numbers(narrow, wide) == set()
    whole = " ".join(narrow.split())
    for heading in (name for line in LEFT_OUT.findall(whole) for name in line[0].split(", ")):
        assert heading.split()[-1] in " ".join(wide.split())
    missing = set(NUMBER.findall(wide)) - set(NUMBER.findall(narrow))
    assert not missing or LEFT_OUT.search(whole) or "The drawing does not fit" in whole


def test_a_cut_number_would_be_seen() -> None:
    """Negative control: a table as it was folded before."""
    assert cut_numbers("k  token\n1  1.77±\n    0.01", "k  token\n1  1.77±0.01")


@pytest.mark.parametrize("name", QUESTIONS)
def test_nothing_is_longer_than_a_usual_terminal(name: str, shown: Callable[[str, int], str]) -> None:
    """Settings to paste alone: they stand on one line each."""
    lines = shown(name, 80).splitlines()
    pasted = (
        "vllm serve",
        "python -m sglang",
        "draft.generation_config",
        "target.generate",
        "llama-server",
        "speculation = ",
        "llm = ",
        "target = ",
        "draft = ",
        "target, draft = ",
        "target['model']",
    )
    assert [line for line in lines if len(line) > 80 and not line.startswith(pasted)] == []


def through_pipe(arguments: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spectheory", *arguments],
        capture_output=True,
        encoding=environment.get("PYTHONIOENCODING", "utf-8"),
        check=True,
        env={**os.environ, **environment},
    )


def test_piped_output_is_not_wrapped(question: Callable[[str], list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """Every sentence of the JSON's notes is one line, and no column is left out, whatever COLUMNS says."""
    arguments = question("plan")
    notes = answer(capsys, *arguments)["notes"]
    out = through_pipe(arguments, COLUMNS="40").stdout
    assert max(map(len, notes)) > 80
    assert set(notes) <= set(out.splitlines())
    assert "Columns left out" not in out


def test_a_reader_that_stops_loses_no_file(question: Callable[[str], list[str]], tmp_path: Path) -> None:
    """Files are written before the answer is printed into a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        command = [sys.executable, "-m", "spectheory", *question("predict"), "--out", str(tmp_path / "out")]
        assert subprocess.run(command, stdout=closed, stderr=subprocess.DEVNULL).returncode == 141
    assert json.loads((tmp_path / "out" / "prediction.json").read_text())["headline"]


@pytest.mark.evidence
@pytest.mark.parametrize("name", ["rules", "tree", "predict"])
def test_an_encoding_without_the_signs_gets_plain_ones(name: str, question: Callable[[str], list[str]]) -> None:
    """The same output letter for letter once the signs are replaced, tables aligned."""
    plain = through_pipe(question(name), PYTHONIOENCODING="ascii").stdout
    assert plain.isascii()
    assert "?" not in plain
    if name != "tree":  # whose lines are drawn with other signs
        signs = through_pipe(question(name), PYTHONIOENCODING="utf-8").stdout
        assert plain.split() == signs.replace("≤", "<=").replace("±", "+-").replace("†", "+").split()
    rows = [line for line in plain.splitlines() if re.match(r"\d +\d\.\d\d\+-", line)]
    assert len({line.index("+-") for line in rows}) <= 1


def test_bad_input_is_named_in_ascii(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "spectheory", "predict", str(tmp_path / "trébuchet≤")],
        capture_output=True,
        encoding="ascii",
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert ran.returncode == 2
    assert "trebuchet<= is missing" in ran.stderr


def test_a_real_terminal_has_its_width(question: Callable[[str], list[str]]) -> None:
    """On a pseudo-terminal of 50 columns no row is longer, and what is left out is said."""
    process, end = pty.fork()
    if process == 0:  # pragma: no cover  the other process
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 50, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"NO_COLOR": "1"}
        os.execve(sys.executable, [sys.executable, "-m", "spectheory", *question("predict")], environment)
    read = bytearray()
    while True:
        try:
            piece = os.read(end, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        read += piece
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in read.decode().splitlines()]
    assert max(map(len, lines)) <= 50
    assert "Columns left out" in " ".join(lines)


NAME = "\x1b[2J\x1b]0;title\x07\x9b31m\u202e\u200f\x00\r[bold]$\\frac{$<b>\ud800"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A measurement in which every name is this one."""
    names = {"target": {"name": NAME, "fingerprint": "f"}, "draft": {"name": NAME}, "engine": NAME}
    whole = full_trace(tmp_path / "trace.parquet", **names)
    texts = tuple(TextInfo(f"{NAME}{i}", t.tokens, prompt=f"{NAME}{i // 2}") for i, t in enumerate(whole.texts))
    Trace(whole.columns, texts, whole.provenance).write(tmp_path / "trace.parquet")
    latencies(tmp_path / "latency.json")
    return tmp_path


@each(
    "command, more",
    [
        ("predict", ["--all"]),
        ("predict", ["--where", "--all"]),
        ("predict", ["--report", "FOLDER/page.html"]),
        ("plan", ["--nodes-max", "1", "--all"]),
        ("plan", ["--nodes-max", "1", "--json"]),
        ("plan", ["--nodes-max", "1", "--out", "FOLDER/out", "--report", "FOLDER/page.html"]),
    ],
)
def test_nothing_steers_the_terminal(
    command: str, more: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [word.replace("FOLDER", str(folder)) for word in more]
    assert main([command, str(folder), "--k-max", "2", *asked]) == 0
    said = "".join(capsys.readouterr())
    assert said
    assert not set(map(ord, said)) & set(STEERING)


def test_an_error_does_not_either(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no?[2J is missing" in refused(["predict", "no\x1b[2J"], capsys)
