"""A log format of one's own, one line in formats(): every command that takes a trace reads it, JSON and figures too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spectheory.cli import main
from spectheory.errors import TextError
from spectheory.trace import Trace, read_any
from spectheory.trace.importers import Format, formats

MARK = b"# toy log"


def read_toy(path: Path) -> Trace:
    """Read blocks of lines ``log p, log q``, a text each, after a first line that names the format."""
    texts = []
    for block in path.read_text().split("\n\n")[1:]:
        try:
            rows = [tuple(map(float, line.split(","))) for line in block.splitlines()]
            target, draft = zip(*rows, strict=True)
        except ValueError as error:
            raise TextError(f"{path} has a bad row", limit="needs log p, log q", remedy="write two numbers") from error
        texts.append((target, draft))
    return Trace.from_log_probabilities(texts, provenance={"source": "toy log"})


TOY = Format("toy log", lambda head: head.startswith(MARK), read_toy)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(formats(), TOY.name, TOY)
    texts = ("\n".join(f"{-0.3 - 0.1 * (i + j) % 2},{-0.4 - 0.1 * i % 3}" for j in range(30)) for i in range(9))
    file = tmp_path / "run.log"
    file.write_text("\n\n".join([MARK.decode(), *texts]))
    return file


COMMANDS = [
    ["predict", "LOG", "--c", "0.1", "--k-max", "3", "--out", "OUT"],
    ["predict", "--logprobs", "LOG", "--c", "0.1", "--k-max", "3", "--out", "OUT"],
    ["plan", "LOG", "--c", "0.1", "--k-max", "3", "--out", "OUT"],
    ["plan", "--trace", "toy=LOG", "--c", "0.1", "--k-max", "3", "--out", "OUT"],
    ["rules", "LOG"],
    ["bounds", "LOG"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("form", ["text", "json"])
def test_every_command_reads_it(
    words: list[str], form: str, toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"LOG": str(toy), "toy=LOG": f"toy={toy}", "OUT": str(tmp_path / "out")}
    arguments = [places.get(word, word) for word in words]
    assert main([*arguments, *(["--json"] if form == "json" else [])]) == 0
    out = capsys.readouterr().out
    if form == "json":
        assert isinstance(json.loads(out), dict)
    if "OUT" in words:
        assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".json", ".png", ".svg"}


def test_what_two_numbers_per_token_cannot_answer_is_said(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A tree needs the law of ranks; of the rules some are known, the others say what they need."""
    assert main(["tree", str(toy)]) == 2
    assert "the trace has no race_g: it needs full pmfs" in capsys.readouterr().err
    assert main(["rules", str(toy), "--json"]) == 0
    rows = {row["rule"]: row for row in json.loads(capsys.readouterr().out)["rules"]}
    assert rows["token"]["acceptance"] is not None
    assert "needs full pmfs" in rows["race"]["reason"]


def test_errors_of_the_format_are_one_line(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    toy.write_text(MARK.decode() + "\n\n-1,-2,-3")
    for command in ("predict", "plan", "rules", "bounds", "tree"):
        assert main([command, str(toy)]) == 2
        assert capsys.readouterr().err == f"spectheory: {toy} has a bad row: needs log p, log q; write two numbers\n"


def test_without_the_line_it_is_unknown(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(formats(), TOY.name)
    with pytest.raises(Exception, match="of an unknown format"):
        read_any(toy)
