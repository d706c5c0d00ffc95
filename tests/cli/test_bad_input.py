"""Bad input that once ended otherwise: endless files, huge numbers, options without effect, long values in messages."""

from __future__ import annotations

import json
import platform
import re
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory import files
from tests.cli.plan_cases import latencies, measured
from tests.commands import refused as refused_line

TWENTY = {f"entry{i}": i for i in range(20)}
"""A value that nobody wants to read in a message."""
LONGEST_LINE = 400


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The one line of a command that is refused, less the paths of this machine's temporary folder."""

    def run(*arguments: object, but: Path | None = None) -> str:
        return refused_line(arguments, capsys).replace(str(but), "")

    return run


Refused = Callable[..., str]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs an endless file, and memory as Linux shows it")
@pytest.mark.parametrize(
    "arguments",
    [
        ["bounds", "--rank-pmf", "/dev/zero"],
        ["rules", "--target-pmf", "/dev/zero", "--draft-pmf", "1"],
        ["predict", "MEASURED", "--latency", "/dev/zero"],
        ["predict", "--logprobs", "/dev/zero"],
        [
            "plan",
            "MEASURED",
            "--hardware",
            "L4",
            "--target-architecture",
            "/dev/zero",
            "--draft-architecture",
            "/dev/zero",
        ],
        ["measure", "--prompts", "/dev/zero", "--out", "OUT"],
        ["verify", "--claim", "/dev/zero"],
    ],
    ids=lambda arguments: " ".join(arguments[:3]),
)
def test_an_endless_file_is_refused(arguments: list[str], tmp_path: Path, refused: Refused) -> None:
    """With 2 GiB more of memory to have, which reading on would fill."""
    places = {"MEASURED": str(measured(tmp_path / "measured")), "OUT": str(tmp_path / "out")}
    with little_memory():
        line = refused(*(places.get(word, word) for word in arguments))
    assert re.fullmatch(r"spectheory: .*/dev/zero.*holds zero bytes, which no text has.*\n", line)


@contextmanager
def little_memory(more: int = 2 << 30) -> Iterator[None]:
    """The process may take so many bytes more than it has."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def test_a_text_is_read_up_to_its_size(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_bytes("größe".encode())
    size = file.stat().st_size
    assert files.read_text(file, most=size) == "größe"
    with pytest.raises(OSError, match="larger than 0 MiB"):
        files.read_text(file, most=size - 1)
    file.write_bytes(b"a" * 100_000)
    assert files.read_text(file) == "a" * 100_000
    with pytest.raises(OSError, match="larger than 0 MiB"):
        files.read_text(file, most=99_999)


def test_continuations_have_a_limit(refused: Refused, tmp_path: Path) -> None:
    line = refused("measure", "--continuations", 10**8, "--out", tmp_path / "x")
    assert "--continuations is 100000000: must be in 1..1024" in line


@pytest.mark.parametrize("command", ["predict", "plan"])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file or directory"),
        ("{", "line 1 column 2"),
        ("[1]", "indices must be integers"),
        ('{"schema": 1}', "no 'target'"),
        ('{"schema": 9}', "schema 9"),
    ],
)
def test_a_latency_table_of_the_user_is_not_to_be_measured_again(
    command: str, content: str | None, reason: str, refused: Refused, tmp_path: Path
) -> None:
    """The reason, and what to do about a file that spectheory need not have written."""
    folder, file = measured(tmp_path / "measured"), tmp_path / "mine.json"
    if content is not None:
        file.write_text(content)
    line = refused(command, folder, "--latency", file, but=tmp_path)
    assert "mine.json is not a latency table" in line
    assert reason in line
    assert "measure again" not in line
    assert "correct the file, or name another one" in line
    assert "Errno" not in line


def changed_latencies(folder: Path, change: dict[str, Any]) -> Path:
    file = folder / "latency.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    return file


def test_a_refusal_is_one_line_beside_latencies_of_another_machine(refused: Refused, tmp_path: Path) -> None:
    folder = measured(tmp_path / "measured")
    latencies(folder / "latency.json", system=f"{platform.system()} {platform.machine()}", cpu="Abacus 9")
    line = refused("predict", folder, "--shape", "2x2", "--rule", "token", but=tmp_path)
    assert "token verification is asked for k-ary 2x2: it judges one chain of drafts" in line


@pytest.mark.parametrize(
    "change",
    [
        {"schema": TWENTY},
        {"context": TWENTY},
        {"provenance": list(TWENTY)},
        {"target": {"1": {"low": 1.0, "best": 1.0, "high": 1.0, "kind": TWENTY}}},
        {"target": {"1": {"low": list(TWENTY), "best": [], "high": [], "kind": "exact"}}},
    ],
    ids=str,
)
def test_a_long_value_in_a_latency_table_is_shortened(change: dict[str, Any], refused: Refused, tmp_path: Path) -> None:
    folder = measured(tmp_path / "measured")
    changed_latencies(folder, change)
    line = refused("plan", folder, but=tmp_path)
    assert "entry1" in line, "it begins with the value"
    assert "entry19" not in line
    assert len(line) < LONGEST_LINE


def test_objects_of_numpy_are_refused_without_advice_to_load_them(refused: Refused, tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    line = refused("rules", "--target-pmf", tmp_path / "objects.npy", "--draft-pmf", "1", but=tmp_path)
    assert "(holds Python objects, not only numbers; it is never loaded)" in line
    (tmp_path / "other.npy").write_bytes(b"something else")
    assert "magic string" in refused("rules", "--target-pmf", tmp_path / "other.npy", "--draft-pmf", "1")
