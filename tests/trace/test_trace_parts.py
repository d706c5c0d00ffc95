"""Parts of a running measurement: what a killed run leaves behind is taken up, and nothing is lost or mixed."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from spectheory.errors import OutputError, TraceError
from spectheory.trace import METADATA_KEY, TRACE_FILE, TextInfo, Trace, read_any
from spectheory.trace.parts import PartStore, concatenate
from tests.made_up import columns, one_line, same


def text_part(index: int) -> Trace:
    """The trace of one text."""
    return Trace(columns(index + 2, seed=index), (TextInfo(f"text {index}", index + 2),))


@pytest.fixture
def store(tmp_path: Path) -> PartStore:
    return PartStore(tmp_path / "out" / "pair.parquet", "fingerprint one")


def test_a_killed_run_resumes(store: PartStore) -> None:
    """Parts may arrive in any order and in several runs; the whole is as if nothing had happened."""
    assert store.finished() == {}
    for index in (2, 0):
        store.add(index, text_part(index))
    again = PartStore(store.final, store.fingerprint)
    assert sorted(again.finished()) == [0, 2]
    again.add(1, text_part(1))
    whole = again.merge({"target": "a"})
    expected = concatenate([text_part(i) for i in range(3)], {"target": "a", "fingerprint": "fingerprint one"})
    assert same(whole, expected)
    assert same(Trace.read(store.final), expected)
    assert not store.folder.exists()


def test_what_a_kill_left_half_written_is_ignored(store: PartStore) -> None:
    """Partial files of parts are no parts, and are gone after the merge."""
    store.add(0, text_part(0))
    (store.folder / ".000001.parquet.4242.partial").write_bytes(b"PAR1 half a file")
    assert sorted(store.finished()) == [0]
    assert len(store.merge({}).texts) == 1
    assert not store.folder.exists()


def test_a_part_stored_twice_counts_once(store: PartStore) -> None:
    store.add(0, text_part(1))
    store.add(0, text_part(0))
    assert same(store.merge({}), concatenate([text_part(0)], {"fingerprint": "fingerprint one"}))


def test_a_trace_of_parts_alone_is_refused(tmp_path: Path) -> None:
    """As ``predict --quick`` leaves it."""
    store = PartStore(tmp_path / TRACE_FILE, "")
    store.add(0, text_part(0))
    for read in (Trace.read, read_any):
        with pytest.raises(TraceError, match="its measurement is unfinished"):
            read(store.final.parent)
    store.merge({})
    assert same(read_any(store.final.parent), Trace.read(store.final))


def test_parts_of_other_settings_are_refused(store: PartStore) -> None:
    store.add(0, text_part(0))
    other = PartStore(store.final, "fingerprint two")
    for use in (other.finished, lambda: other.merge({})):
        with pytest.raises(TraceError) as caught:
            use()
        assert "holds an unfinished measurement with other settings" in one_line(caught)
    assert sorted(store.finished()) == [0], "nothing was deleted"


def test_parts_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        PartStore(tmp_path / "file" / "pair.parquet", "f").add(0, text_part(0))


@pytest.mark.parametrize("content", [b"", b"PAR1 half a file", b"PAR1PAR1"])
def test_a_torn_part_is_measured_again(store: PartStore, content: bytes) -> None:
    """Whichever part it is; what is whole is kept."""
    for torn in range(3):
        for index in range(3):
            store.add(index, text_part(index))
        path = store.folder / f"{torn:06d}.parquet"
        path.write_bytes(content)
        assert sorted(store.finished()) == [index for index in range(3) if index != torn]
        store.add(torn, text_part(torn))
    expected = concatenate([text_part(i) for i in range(3)], {"fingerprint": "fingerprint one"})
    assert same(store.merge({}), expected)


def test_no_torn_part_is_left_out_of_the_whole(store: PartStore) -> None:
    """Torn after it was looked at: the trace is not written without it."""
    for index in range(2):
        store.add(index, text_part(index))
    (store.folder / "000001.parquet").write_bytes(b"PAR1")
    with pytest.raises(TraceError, match=r"000001.parquet is truncated"):
        store.merge({})
    assert not store.final.exists()


def test_a_part_of_a_newer_version_is_not_torn(store: PartStore) -> None:
    """It can be read, and is not measured over."""
    store.add(0, text_part(0))
    path = store.folder / "000000.parquet"
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({METADATA_KEY: b'{"schema": 99}'}), path)
    with pytest.raises(TraceError, match="schema 99"):
        store.finished()


def test_other_files_are_no_parts(store: PartStore) -> None:
    store.add(0, text_part(0))
    (store.folder / "1 copy.parquet").write_bytes(b"")
    assert sorted(store.finished()) == [0]
