"""Long work: a line on stderr every few seconds, from every command that shows a bar; the line before torch loads."""

from __future__ import annotations

import ast
import json
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spectheory.cli import console, main, progress
from tests.cli.plan_cases import measured

CLI = Path(progress.__file__).parent
PAIR = ["--target-pmf", "0.5,0.3,0.2", "--draft-pmf", "0.2,0.3,0.5"]
COUNTED = re.compile(r"^(.+): (\d+) of (\d+), (\d+) s so far(?:, about (\d+) s left)?$", re.MULTILINE)
SPENT = re.compile(r"^(.+): \d+ s so far$", re.MULTILINE)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines every hundredth of a second, so that short work shows some."""
    monkeypatch.setattr(progress, "EVERY", 0.01)


@pytest.fixture
def tiny(tmp_path: Path, tiny_folders: tuple[Path, Path]) -> list[str]:
    """Options of a tiny pair with two prompts."""
    prompts = tmp_path / "question.jsonl"
    rows = [{"question_id": i, "category": "x", "turns": ["t1 t2 t3"]} for i in range(2)]
    prompts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    target, draft = map(str, tiny_folders)
    return ["--target", target, "--draft", draft, "--device", "cpu", "--prompts", str(prompts), "--tokens", "8"]


def test_a_line_says_how_far_how_long_and_how_much_longer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four steps of a quarter of a second, a line every 0.4 s: the time left is that of the steps that are left."""
    monkeypatch.setattr(progress, "EVERY", 0.4)
    with progress.progress() as bar:
        task = bar.add_task("stepping", total=40)
        for _ in range(40):
            time.sleep(0.05)
            bar.update(task, advance=1)
    lines = COUNTED.findall(capsys.readouterr().err)
    assert len(lines) >= 3
    assert {(name, total) for name, _, total, _, _ in lines} == {("stepping", "40")}
    counts = [int(done) for _, done, *_ in lines]
    assert counts == sorted(counts)
    assert 0 < counts[0] < 40
    assert any(left for *_, left in lines)


def test_work_without_a_count_says_how_long(often: None, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.working("thinking [bold]"):
        time.sleep(0.1)
    assert set(SPENT.findall(capsys.readouterr().err)) == {"thinking [bold]"}


def test_a_terminal_shows_a_bar_and_no_lines(
    often: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console.remarks, "_force_terminal", True)
    with progress.progress() as bar:
        bar.add_task("stepping", total=3)
        time.sleep(0.3)
    err = capsys.readouterr().err
    assert "\x1b[?25l" in err, "a live display hides the cursor"
    assert not COUNTED.search(err)


@pytest.mark.usefixtures("often", "quick_latencies")
@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["simulate", "race", *PAIR, "--trials", "20000", "--batch-size", "2000", "--workers", "1"], {"race"}),
        (["verify", "A3/look-alike", "--workers", "1"], {"checking", "A3/look-alike"}),
        (["measure", "TINY", "--out", "OUT", "--continuations", "1"], {"measuring prompts"}),
        (["predict", "TINY", "--out", "OUT", "--c", "0.1", "--k-max", "2"], {"measuring prompts"}),
        (["validate", "TINY", "--out", "OUT", "--rule", "token", "--k", "1", "--temperature", "1"], {"decoding at 1"}),
        (["figures", "race", "--out", "OUT", "--workers", "1"], {"race", "race-dense", "simulating"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_every_long_command_says_how_far_it_is(
    arguments: list[str], names: set[str], tiny: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places: dict[str, list[str]] = {"TINY": tiny, "OUT": [str(tmp_path / "out")]}
    main([word for each in arguments for word in places.get(each, [each])])
    err = capsys.readouterr().err
    counted = {name for name, *_ in COUNTED.findall(err)}
    assert any(known in name for known in names for name in counted), err[-2000:]


@pytest.mark.usefixtures("often")
def test_a_long_prediction_says_how_long_it_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = measured(tmp_path / "measured")
    assert main(["predict", str(trace), "--k-max", "64", "--c", "0.1", "--json"]) == 0
    out, err = capsys.readouterr()
    json.loads(out)
    assert set(SPENT.findall(err)) == {"predicting"}


@pytest.fixture
def names_called() -> Callable[[Path], set[str]]:
    """Names of everything that a file calls."""

    def of(path: Path) -> set[str]:
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        return {getattr(call, "attr", getattr(call, "id", "")) for call in calls}

    return of


def test_no_command_has_a_bar_of_its_own(names_called: Callable[[Path], set[str]]) -> None:
    """One of its own would be silent without a terminal."""
    for path in CLI.glob("*.py"):
        bars = {"Bar", "Progress", "status", "track"} & names_called(path)
        assert not bars or path.name == "progress.py", path
    assert {"Bar", "status"} <= names_called(CLI / "progress.py"), "the control: they are found where they are"


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
