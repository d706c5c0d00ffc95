"""Parts of a running measurement: what a killed run leaves behind is taken up, and nothing is lost or mixed."""

from __future__ import annotations

from pathlib import Path

import pytest

from spectheory.errors import OutputError, TraceError
from spectheory.trace import TRACE_FILE, TextInfo, Trace, read_any
from spectheory.trace.parts import PartStore, concatenate
from tests.made_up import columns, one_line, same


def text_part(index: int) -> Trace:
    """The trace of one text."""
    return Trace(columns(index + 2, seed=index), (TextInfo(f"text {index}", index + 2),))


def kept(final: Path, *indices: int, fingerprint: str = "fingerprint one") -> Path:
    """The file of a run that stored these parts."""
    with PartStore(final, fingerprint) as store:
        for index in indices:
            store.keep(index, text_part(index))
    return store.path


@pytest.fixture
def final(tmp_path: Path) -> Path:
    return tmp_path / "out" / "pair.parquet"


def test_a_killed_run_resumes(final: Path) -> None:
    """Parts may arrive in any order and in several runs; they are as they were."""
    kept(final, 2, 0)
    with PartStore(final, "fingerprint one") as again:
        assert sorted(again.parts) == [0, 2]
        again.keep(1, text_part(1))
        assert same(concatenate(again.some(range(3)), {}), concatenate([text_part(i) for i in range(3)], {}))
        assert again.began(4, 2) == (4, 2)
    with PartStore(final, "fingerprint one") as third:
        assert third.began(8, 1) == (4, 2), "as the measurement began"


def test_a_part_stored_twice_counts_once(final: Path) -> None:
    with PartStore(final, "fingerprint one") as store:
        store.keep(0, text_part(1))
        store.keep(0, text_part(0))
        assert same(*store.some([0]), text_part(0))


def test_a_trace_of_parts_alone_is_refused(tmp_path: Path) -> None:
    """As ``predict --quick`` leaves it."""
    path = kept(tmp_path / TRACE_FILE, 0)
    for read in (Trace.read, read_any):
        with pytest.raises(TraceError, match="its measurement is unfinished"):
            read(tmp_path)
    path.unlink()
    with pytest.raises(TraceError, match="is missing"):
        Trace.read(tmp_path)


def test_parts_of_other_settings_are_refused(final: Path) -> None:
    before = kept(final, 0).read_bytes()
    other = PartStore(final, "fingerprint two")
    for use in (other.check, other.__enter__):
        with pytest.raises(TraceError) as caught:
            use()
        assert "holds an unfinished measurement with other settings" in one_line(caught)
    assert other.path.read_bytes() == before, "nothing was cut"


def test_parts_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        kept(tmp_path / "file" / "pair.parquet")


@pytest.mark.parametrize("damage", [b"", b"PAR1 half a file\n"])
def test_a_damaged_part_is_measured_again(damage: bytes, final: Path) -> None:
    """Whichever part it is; what is whole is kept."""
    path = kept(final, 0, 1, 2)
    head, *rows = path.read_bytes().splitlines(keepends=True)
    for index in range(3):
        path.write_bytes(b"".join([head, *rows[:index], damage, *rows[index + 1 :]]))
        with PartStore(final, "fingerprint one") as store:
            assert sorted(store.parts) == [each for each in range(3) if each != index]
            store.keep(index, text_part(index))
            assert same(*store.some([index]), text_part(index))


def test_a_part_that_is_damaged_later_is_not_left_out(final: Path) -> None:
    """After it was looked at: no trace is made without it."""
    path = kept(final, 0, 1)
    with PartStore(final, "fingerprint one") as store:
        content = path.read_bytes()
        for other in (content[: len(content) // 2], content[:-600] + b"A" * 600):
            path.write_bytes(other)
            with pytest.raises(TraceError, match=r"row 3 of .* is damaged"):
                store.some([0, 1])
