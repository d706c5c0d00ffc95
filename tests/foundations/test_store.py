"""The store of finished work: whatever tears or damages it, whole rows stand; another file is refused untouched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spectheory.errors import OutputError, TextError
from spectheory.store import Contents, Store, payload_of, read_rows

KIND = Contents("toys", 1, "toys", TextError, "choose another file", "toys of another run", "the runs must be the same")
OPEN = Contents("open toys", 1, "toys", TextError, "choose another file", sealed=False)
ROWS = [({"n": 0}, None), ({"n": 1, "of": ["tab\tand\nline", 'a,"hash":"b"}']}, bytes(range(256))), ({"n": 2}, b"")]


def opened(path: Path, kind: Contents = KIND, run: str = "one") -> Store:
    return Store(path, kind, {"fingerprint": run})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "new folder" / "toys.jsonl"
    with opened(path) as store:
        for content, payload in ROWS:
            store.add(content, payload)
    return path


def test_rows_and_payloads_come_back(path: Path) -> None:
    with opened(path) as store:
        assert [row.content for row in store.earlier] == [content for content, _ in ROWS]
        assert [row.line for row in store.earlier] == [2, 3, 4]
        added = store.add({"n": 3}, b"more")
        assert [payload_of(path, row) for row in store.earlier] == [load or b"" for _, load in ROWS]
        assert payload_of(path, added) == b"more"
    assert read_rows(path, KIND).rows[-1] == added


def test_a_row_that_was_written_whole_before_an_interruption_counts(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the disk is waited for; the run may go on. A disk that fails takes the row back."""

    def fails(error: BaseException) -> None:
        def sync(_: int) -> None:
            raise error

        monkeypatch.setattr(os, "fsync", sync)

    with opened(path) as store:
        fails(KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            store.add({"n": 3}, b"three")
        fails(OSError(5, "Input/output error"))
        with pytest.raises(OutputError):
            store.add({"n": 4})
        monkeypatch.undo()
        last = store.add({"n": 5}, b"five")
        assert (last.line, payload_of(path, last)) == (6, b"five")
    assert [row.content["n"] for row in read_rows(path, KIND)] == [0, 1, 2, 3, 5]
    assert payload_of(path, read_rows(path, KIND).rows[3]) == b"three"


def test_a_file_cut_at_any_byte_goes_on_as_if_it_had_not_been(path: Path) -> None:
    whole = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        left = max(sum(end <= cut for end in ends) - 1, 0)
        assert (len(read_rows(path, KIND).rows), read_rows(path, KIND).torn) == (left, cut not in (0, *ends))
        with opened(path) as store:
            assert len(store.earlier.rows) == left
            for content, payload in ROWS[left:]:
                store.add(content, payload)
        assert path.read_bytes() == whole


def test_a_changed_byte_costs_its_row_alone(path: Path) -> None:
    """Any byte after the first line; the two rows around a changed newline are lost together."""
    whole = path.read_bytes()
    head = whole.index(b"\n") + 1
    for place in range(head, len(whole) - 1):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        rows = read_rows(path, KIND)
        kept = [row.content for row in rows]
        assert len(kept) == 2 - (whole[place : place + 1] == b"\n")
        assert all(content in [content for content, _ in ROWS] for content in kept)
        assert len(rows.damaged) >= 1


def test_rows_without_a_hash(tmp_path: Path) -> None:
    """Those of a public format are plain JSON, and count where they are an object."""
    path = tmp_path / "open.jsonl"
    with opened(path, OPEN) as store:
        store.add({"n": 1})
    assert path.read_text().splitlines()[1] == '{"n":1}'
    with path.open("a") as file:
        file.write('{"n": 2}\n[]\nnothing\n')
    rows = read_rows(path, OPEN)
    assert [row.content["n"] for row in rows] == [1, 2]
    assert rows.damaged == [4, 5]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("x,y\n1,2\n", "begins with 'x,y"),
        ("x,y", "holds no toys"),
        ('{"spectheory":"toys","schema":2,"fingerprint":"one"}\n', "holds no toys"),
        ('{"spectheory":"toys","schema":1}\n', "holds no toys"),
        ('{"spectheory":"toys","schema":1,"fingerprint":"two"}\n', "holds toys of another run: the runs must be"),
    ],
)
def test_another_file_is_refused_and_untouched(content: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "thesis.csv"
    path.write_text(content)
    for use in (opened(path).check, opened(path).__enter__):
        with pytest.raises(TextError, match=said) as caught:
            use()
        assert str(caught.value).endswith("choose another file")
    assert path.read_text() == content


def test_one_run_at_a_time(path: Path) -> None:
    with opened(path), pytest.raises(TextError, match="is in use: one run at a time appends"), opened(path):
        pass
    with opened(path):
        assert len(read_rows(path, KIND).rows) == 3, "reading needs no turn"


def test_places_that_hold_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    for place in (
        tmp_path,
        tmp_path / "file" / "toys",
        tmp_path / "pipe",
        *map(Path, ("/dev/null", "/dev/zero", "/dev/full")),
    ):
        with pytest.raises(OutputError, match=r"cannot be written \(.*\): needs a regular file"), opened(place):
            pass
    for place, why in ((tmp_path, "a folder, not a regular file"), (tmp_path / "pipe", "not a regular file")):
        with pytest.raises(TextError, match=rf"cannot be read \({why}\)"):
            read_rows(place, KIND)
    assert read_rows(tmp_path / "none", KIND).rows == []


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with opened(tmp_path / "link") as store:
        store.add({"n": 1})
    assert (tmp_path / "link").is_symlink()
    assert len(read_rows(tmp_path / "elsewhere", KIND).rows) == 1


ENDLESS = """
import sys
from pathlib import Path
from tests.foundations.test_store import opened
with opened(Path(sys.argv[1])) as store:
    for n in range(len(store.earlier.rows), 10**9):
        store.add({"n": n}, bytes(5000))
        print(n, flush=True)
"""


def test_kills_lose_nothing_that_was_finished(tmp_path: Path) -> None:
    """SIGKILL at six moments: every row whose writing had returned stands, and no number is skipped or repeated."""
    path, said = tmp_path / "toys.jsonl", 0
    for turn in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", ENDLESS, str(path)], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
        ) as run:
            assert run.stdout is not None
            run.stdout.readline()
            time.sleep(0.003 * turn)
            run.send_signal(signal.SIGKILL)
            said = max([said, *map(int, run.stdout.read().split())])
        numbers = [row.content["n"] for row in read_rows(path, KIND)]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) > said
