"""Where a trace is read from, and what is said of a file that cannot be read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from spectheory.errors import TraceError
from spectheory.trace import METADATA_KEY, REQUIRED, TRACE_FILE, TextInfo, Trace
from tests.made_up import one_line, same, trace


def test_a_folder_is_read_by_the_name_of_its_trace(tmp_path: Path) -> None:
    written = trace(2, 3)
    written.write(tmp_path / TRACE_FILE)
    assert same(Trace.read(tmp_path), written)
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceError) as caught:
        Trace.read(tmp_path / "empty")
    assert f"{tmp_path / 'empty' / TRACE_FILE} is missing" in one_line(caught)


WRONG_TEXTS = {
    "tokens": (-1, 0, 2.0, "2", True, None),
    "id": (3, None),
    "prompt": (["p"],),
    "category": (1.5,),
    "ended": ("no", 1, None),
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in WRONG_TEXTS.items() for v in values])
def test_texts_of_other_kinds_are_refused(name: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "pair.parquet"
    trace(2).write(path)
    table = pq.read_table(path)
    header = json.loads(table.schema.metadata[METADATA_KEY])
    header["texts"][0][name] = value
    pq.write_table(table.replace_schema_metadata({METADATA_KEY: json.dumps(header).encode()}), path)
    with pytest.raises(TraceError) as caught:
        Trace.read(path)
    assert f"{name} of text " in one_line(caught)
    assert f"is {value!r}" in one_line(caught)
    assert str(path) in one_line(caught)


def test_a_column_that_is_there_twice(tmp_path: Path) -> None:
    path = tmp_path / "pair.parquet"
    trace(2).write(path)
    table = pq.read_table(path)
    pq.write_table(table.append_column("log_target", table.column("log_target")), path)
    with pytest.raises(TraceError) as caught:
        Trace.read(path)
    assert f"{path} has 2 columns 'log_target'" in one_line(caught)


OUT_OF_MEMORY = """
import resource, sys
from pathlib import Path
import pyarrow.parquet
from spectheory.cost import ConstantRatio
from spectheory.errors import TraceError
from spectheory.prediction import plan, predict
from spectheory.prediction.shape_calls import BestTree
from spectheory.trace import Trace
pyarrow.set_cpu_count(1)
pyarrow.set_io_thread_count(1)
pyarrow.parquet.read_table(Path(sys.argv[1]), columns=["log_draft"], partitioning=None)  # threads have started
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[2]),) * 2)
try:
    print(len(Trace.read(Path(sys.argv[1]))))
except TraceError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits a process by its address space")
def test_a_good_file_that_does_not_fit_says_so(tmp_path: Path) -> None:
    """The same file in the same process, with 64 MB to spare and with 4 GB."""
    rows = 10_000_000
    path = tmp_path / "pair.parquet"
    Trace({name: np.full(rows, -1.0) for name in REQUIRED}, (TextInfo("a", rows),)).write(path)

    def read_within(room: int) -> str:
        command = [sys.executable, "-c", OUT_OF_MEMORY, str(path), str(room)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert f"{path} does not fit in memory" in read_within(64 << 20)
    assert read_within(4 << 30) == str(rows)


def test_the_system_says_why_a_file_cannot_be_read(tmp_path: Path) -> None:
    """A link to itself: neither missing nor truncated."""
    path = tmp_path / "pair.parquet"
    path.symlink_to(path)
    with pytest.raises(TraceError, match=r"pair.parquet cannot be read \(Too many levels of symbolic links\)"):
        Trace.read(path)
