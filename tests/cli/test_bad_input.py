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
from spectheory.cli import main
from spectheory.errors import MissingExtraError, TraceError, load_extra
from spectheory.trace import TextInfo, Trace
from spectheory.trace.columns import COLUMNS, REQUIRED
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
        ["plan", "MEASURED", "--hardware", "L4", "--target-architecture", "/dev/zero", "--draft-architecture", "x"],
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


def test_passes_alone_needs_latencies(refused: Refused, tmp_path: Path) -> None:
    folder = measured(tmp_path / "measured")
    assert "--passes-alone is given with --c" in refused("predict", folder, "--passes-alone", "--c", 0.1)
    (folder / "latency.json").unlink()
    assert "--passes-alone is given without latencies" in refused("predict", folder, "--passes-alone")


def test_a_validation_is_joined_once(refused: Refused, tmp_path: Path) -> None:
    """However its folder is written."""
    one = tmp_path / "one"
    one.mkdir()
    for again in (one, tmp_path / "two" / ".." / "one"):
        assert "is given twice" in refused("validations", one, again, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


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


def test_nothing_to_redraw_makes_no_folder(refused: Refused, tmp_path: Path) -> None:
    pytest.importorskip("numba")
    pytest.importorskip("matplotlib")
    assert "race.json cannot be read" in refused("figures", "race", "--redraw", "--out", tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(("name", "text"), [("p.txt", "0.5 0.5\n"), ("p.json", "[0.5, 0.5]")])
def test_a_pmf_with_a_byte_order_mark_is_read(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8-sig")
    assert main(["rules", "--target-pmf", str(tmp_path / name), "--draft-pmf", "0.5,0.5"]) == 0
    assert capsys.readouterr().err == ""


def test_objects_of_numpy_are_refused_without_advice_to_load_them(refused: Refused, tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    line = refused("rules", "--target-pmf", tmp_path / "objects.npy", "--draft-pmf", "1", but=tmp_path)
    assert "(holds Python objects, not only numbers; it is never loaded)" in line
    (tmp_path / "other.npy").write_bytes(b"something else")
    assert "magic string" in refused("rules", "--target-pmf", tmp_path / "other.npy", "--draft-pmf", "1")


def test_lengths_of_many_columns_are_shortened() -> None:
    columns = {name: np.zeros(3 if name in REQUIRED else 2) for name in COLUMNS}
    with pytest.raises(TraceError, match=r"columns of other lengths: \{.+, \.\.\.\}") as refusal:
        Trace(columns, (TextInfo("a", 3),))
    assert len(str(refusal.value)) < LONGEST_LINE


def test_a_missing_part_of_the_base_install_names_no_extra() -> None:
    with pytest.raises(MissingExtraError, match=r"pip install spectheory$"):
        load_extra("spectheory_no_such_module", extra=None)
