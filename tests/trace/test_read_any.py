"""One door for evidence: folders, Parquet files and logs are told apart by content; what is none is named."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from spectheory.errors import SpectheoryError
from spectheory.trace import TRACE_FILE, Trace, read_any, read_evidence

LINE = '{"target": [-1, -0.5], "draft": [-2, -0.1]}\n'


def test_a_byte_order_mark_hides_no_format(tmp_path: Path) -> None:
    for name in ("k3_c8_in16.json", "k3_c8_in16.txt"):
        content = (Path(__file__).parents[2] / "benchmarks/results/bench_serve" / name).read_bytes()
        (tmp_path / name).write_bytes(codecs.BOM_UTF8 + content)
        assert read_evidence(tmp_path / name) == read_evidence(tmp_path / name, "vllm-bench")


def test_each_kind_is_read(tmp_path: Path) -> None:
    trace = Trace.from_log_probabilities([([-1.0, -0.5], [-2.0, -0.1])])
    trace.write(tmp_path / TRACE_FILE)
    trace.write(tmp_path / "renamed.bin")
    (tmp_path / "log.txt").write_text("\ufeff\n " + LINE)
    for path in (tmp_path, tmp_path / TRACE_FILE, tmp_path / "renamed.bin", tmp_path / "log.txt"):
        assert read_any(path).columns["log_target"].tolist() == [-1.0, -0.5]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty: needs a folder of spectheory measure, or a file of a known format"),
        (b"a,b\n1,2\n", "of an unknown format, text that begins with 'a,b"),
        (b"\0\1", "zero bytes"),
        (b"\xff\xfe", "is no UTF-8 text, and no trace"),
        (b'{"accepted": 3}\n', "unknown format, JSON with the keys 'accepted'"),
        (b'{"accepted": 3}\n{"accepted": 4}\n', "JSON with the keys 'accepted'"),
        (b'[{"text": "a"}]', "JSON with the keys 'text'"),
        (b"[]", "JSON with no keys"),
        (b'[{"target": [-1], "draft": [-1]}]', "not written as log-probabilities are: an object a line"),
        (b'{"Target": [-1], "Draft": [-1]}', "not written as log-probabilities are: an object a line"),
        (b'{"choices": [{"text": "a"}]}', "answers without counts of drafts"),
        (b'{"schema": 3, "unit": "seconds", "context": 8}', "is a latency table"),
        (b'{"target": [-1]}\n', "line 1 has no list of numbers 'draft'"),
        (b"PAR1 cut off", "truncated or no Parquet file"),
    ],
)
def test_other_files_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(SpectheoryError, match=message) as caught:
        read_any(tmp_path / "file")
    assert str(tmp_path / "file") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_and_torn_traces(tmp_path: Path) -> None:
    (tmp_path / TRACE_FILE).write_bytes(b"")
    with pytest.raises(SpectheoryError, match="truncated or no Parquet"):
        read_any(tmp_path)
    with pytest.raises(SpectheoryError, match="is missing"):
        read_any(tmp_path / "absent")
