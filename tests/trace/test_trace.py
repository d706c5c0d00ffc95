"""The record of a pair: what it refuses, what survives the disk, what a killed run leaves behind."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from numpy.typing import NDArray

from spectheory.cost import ConstantRatio, LatencyTable
from spectheory.deployment import Draft
from spectheory.deployment.mismatch import mismatches
from spectheory.drafting import Chain, read_stop
from spectheory.errors import OutputError, TextError, TraceError
from spectheory.intervals import Interval
from spectheory.prediction import plan
from spectheory.prediction.paths import calls_of_texts
from spectheory.prediction.remarks import doubts
from spectheory.prediction.stopped import stopped_survival
from spectheory.reports import prediction_report
from spectheory.trace import (
    COLUMNS,
    MEASURED,
    METADATA_KEY,
    RECORDED_RANKS,
    REQUIRED,
    SCHEMA_VERSION,
    TRACE_FILE,
    Column,
    TextInfo,
    Trace,
    read_any,
)
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.columns import BY_START
from spectheory.trace.counters import Counters
from spectheory.trace.parts import PartStore, concatenate
from spectheory.verification import PATH_RULES, Columns
from tests.made_up import columns, head_columns, one_line, same, trace

NAN = math.nan


# The disk


def test_a_trace_survives_the_disk(tmp_path: Path) -> None:
    """Values, texts and provenance come back; single precision comes back widened, exactly."""
    path = tmp_path / "new" / "folder" / "pair.parquet"
    written = trace(3, 1, 4, target="a/b", nested={"seed": 7, "list": [1, 2]})
    written.write(path)
    read = Trace.read(path)
    assert same(read, written)
    assert read.columns["kl"].dtype == np.float64
    assert read.columns["rejection_rank"].dtype == np.float64
    assert read.columns["rejection_rank"].shape == (8, RECORDED_RANKS)
    assert read.columns["greedy_agreement"].dtype == np.bool_
    assert read.columns["token"].dtype == np.int32
    assert [p.name for p in path.parent.iterdir()] == ["pair.parquet"], "no partial file is left"


def test_a_trace_of_many_row_groups_is_one(tmp_path: Path) -> None:
    path = tmp_path / "pair.parquet"
    written = trace(40)
    written.write(path)
    table = pq.read_table(path)
    pq.write_table(table, path, row_group_size=7)
    assert same(Trace.read(path), written)


def test_rewriting_replaces_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "pair.parquet"
    trace(9).write(path)
    shorter = trace(2, seed=5)
    shorter.write(path)
    assert same(Trace.read(path), shorter)


def test_unknown_columns_are_left_alone(tmp_path: Path) -> None:
    """A newer writer may add columns; they are not read, and nothing else changes."""
    path = tmp_path / "pair.parquet"
    trace(4).write(path)
    table = pq.read_table(path)
    pq.write_table(table.append_column("from_the_future", pa.array([1, 2, 3, 4])), path)
    assert set(Trace.read(path).columns) == set(columns(4))
    assert set(columns(4)) <= set(COLUMNS)


def damage(path: Path, case: str) -> None:
    """Turn a good trace file into a bad one."""
    whole = path.read_bytes()
    table = pq.read_table(path)
    header = json.loads(table.schema.metadata[METADATA_KEY])

    def with_header(content: Any) -> None:
        pq.write_table(table.replace_schema_metadata({METADATA_KEY: json.dumps(content).encode()}), path)

    match case:
        case "truncated":
            path.write_bytes(whole[: len(whole) // 2])
        case "without its last byte":
            path.write_bytes(whole[:-1])
        case "empty":
            path.write_bytes(b"")
        case "text":
            path.write_text("log_target,log_draft\n-1,-1\n")
        case "missing":
            path.unlink()
        case "no header":
            pq.write_table(table.replace_schema_metadata({}), path)
        case "header no JSON":
            pq.write_table(table.replace_schema_metadata({METADATA_KEY: b"{"}), path)
        case "header a list":
            with_header([1])
        case "other schema":
            with_header(header | {"schema": 99})
        case "no texts":
            with_header({k: v for k, v in header.items() if k != "texts"})
        case "no log_draft":
            pq.write_table(table.drop_columns(["log_draft"]), path)
        case "texts of other lengths":
            header["texts"][0]["tokens"] += 1
            with_header(header)
        case "no rows":
            pq.write_table(table.slice(0, 0), path)


DAMAGE = {
    "truncated": "is truncated or no Parquet file",
    "without its last byte": "is truncated or no Parquet file",
    "empty": "is truncated or no Parquet file",
    "text": "is truncated or no Parquet file",
    "missing": "is missing",
    "no header": "is a Parquet file but no trace",
    "header no JSON": "is a Parquet file but no trace",
    "header a list": "is a Parquet file but no trace",
    "other schema": "has trace schema 99: this version reads schema 3",
    "no texts": "is a Parquet file but no trace",
    "no log_draft": "lacks log_draft",
    "texts of other lengths": "one row per token",
    "no rows": "one row per token",
}


@pytest.mark.parametrize("case", sorted(DAMAGE))
def test_damaged_files_are_named_in_one_line(case: str, tmp_path: Path) -> None:
    path = tmp_path / "pair.parquet"
    trace(3, 2).write(path)
    damage(path, case)
    with pytest.raises(TraceError) as caught:
        Trace.read(path)
    assert DAMAGE[case] in one_line(caught)


# What a trace refuses


BAD_VALUES = [
    ("log_target", -math.inf, "is -inf"),
    ("log_target", 0.25, "is 0.25"),
    ("log_target", NAN, "is nan"),
    ("log_target", math.inf, "is inf"),
    ("log_draft", 1e-9, "is 1e-09"),
    ("log_draft", NAN, "is nan"),
]


@pytest.mark.parametrize(("name", "value", "fragment"), BAD_VALUES)
def test_impossible_log_probabilities_are_located(name: str, value: float, fragment: str) -> None:
    """The message names the text and the token, counted from one; log q = -inf alone is allowed."""
    bad = columns(9)
    bad[name] = bad[name].copy()
    bad[name][6] = value
    with pytest.raises(TextError) as caught:
        Trace(bad, (TextInfo("first", 4), TextInfo("second", 5)))
    assert f"{name} of text 'second', token 3 {fragment}" in one_line(caught)


def test_the_first_and_last_token_of_a_text_are_located() -> None:
    record = trace(4, 1, 3)
    assert [record.locate(row)[1] for row in range(8)] == [0, 1, 2, 3, 0, 0, 1, 2]
    assert [record.locate(row)[0].id for row in (0, 3, 4, 5, 7)] == ["text 0", "text 0", "text 1", "text 2", "text 2"]
    assert len(record) == 8
    assert record.lengths.tolist() == [4, 1, 3]


STRUCTURE: dict[str, tuple[Callable[[], Any], str]] = {
    "no column": (lambda: Trace({}, (TextInfo("a", 1),)), "lacks log_target, log_draft"),
    "one column": (lambda: Trace({"log_target": np.zeros(1)}, (TextInfo("a", 1),)), "lacks log_draft"),
    "length": (lambda: Trace(columns(3), (TextInfo("a", 4),)), "1 texts of 4 tokens in all"),
    "no text": (lambda: Trace(columns(0), ()), "needs at least one text"),
    "empty text": (lambda: Trace(columns(3), (TextInfo("a", 3), TextInfo("b", 0))), "no empty text"),
    "one short column": (
        lambda: Trace(columns(3) | {"kl": np.zeros(2)}, (TextInfo("a", 3),)),
        "columns of other lengths: {'kl': 2}",
    ),
}


@pytest.mark.parametrize("case", sorted(STRUCTURE))
def test_columns_and_texts_must_fit(case: str) -> None:
    make, fragment = STRUCTURE[case]
    with pytest.raises(TraceError) as caught:
        make()
    assert fragment in one_line(caught)


def test_paths_may_be_strings(tmp_path: Path) -> None:
    """Data of the library is written and read under a name as under a path."""
    one = {1: Interval.exact(1.0)}
    kept = (trace(3), Counters(calls=3, survival=(0.5,), k=1), CallLog((Request("a", accepted=(1,)),), k=1))
    for number, each in enumerate((*kept, LatencyTable(one, one | {2: Interval.exact(1.0)}, 10, {}))):
        file = str(tmp_path / str(number))
        each.write(file)
        assert isinstance(type(each).read(file), type(each))


# Two numbers per token


def test_a_trace_from_two_lists() -> None:
    record = Trace.from_log_probabilities([([-1, -2.0], [-0.5, -math.inf]), ((-3.0,), np.array([-0.0]))])
    assert [text.id for text in record.texts] == ["1", "2"]
    assert record.columns["log_target"].tolist() == [-1, -2, -3]
    assert record.columns["log_draft"].tolist() == [-0.5, -math.inf, 0]
    assert record.provenance["source"] == "log-probabilities"
    named = Trace.from_log_probabilities([([-1.0], [-1.0])], ids=["mine"], provenance={"from": "a server"})
    assert named.texts == (TextInfo("mine", 1),)
    assert named.provenance == {"from": "a server"}


FINE = [-1.0, -0.5]
BAD_LISTS: dict[str, tuple[Any, str]] = {
    "words": ([(["a"], ["b"])], "log p of text '1' holds <U1"),
    "numbers as words": ([(FINE, FINE), (FINE, ["-1.0", "-0.5"])], "log q of text '2' holds <U4"),
    "one word": ([("-1.0", FINE)], "log p of text '1' holds <U4"),
    "a table": ([[[-1.0]] * 3], "text '1' has 3 parts"),
    "one number": ([-1.0], "text '1' is -1.0: needs a list"),
    "no list": (-1.0, "texts is -1.0: needs a list"),
    "a text": ("nonsense", "texts is 'nonsense': needs a list"),
    "a mapping": ({"a": FINE}, "needs a list"),
    "ragged": ([([[-1.0], FINE], FINE)], "log p of text '1' does not become an array"),
    "far": ([(FINE, [-1e308, -0.5])], "text '1' has a log-probability -1e+308: must be in -1e+300..0"),
    "far target": ([([-1e308, -0.5], FINE)], "text '1' has a log-probability -1e+308"),
    "masked": ([(np.ma.masked_array(FINE, mask=[0, 1]), FINE)], "log p of text '1' is a masked array"),
    "meta": ([(torch.empty(2, device="meta"), FINE)], "log p of text '1' is a meta tensor"),
    "lengths": ([([-1.0], [-1.0]), ([-1.0, -2.0], [-1.0])], "text '2' has 2 target and 1 draft"),
    "empty": ([([], [])], "text '1' has 0 target and 0 draft"),
    "nested": ([([[-1.0]], [[-1.0]])], "two flat lists"),
    "no text": ([], "there is no text"),
    "impossible": ([([-1.0], [-1.0]), ([-1.0, -math.inf], [-1.0, -1.0])], "log_target of text '2', token 2 is -inf"),
    "probabilities": ([([0.5], [0.5])], "log_target of text '1', token 1 is 0.5"),
    "nan": ([([-1.0], [NAN])], "log_draft of text '1', token 1 is nan"),
}


@pytest.mark.parametrize("case", sorted(BAD_LISTS))
def test_bad_lists_are_named_in_one_line(case: str) -> None:
    texts, fragment = BAD_LISTS[case]
    with pytest.raises(TextError) as caught:
        Trace.from_log_probabilities(texts)
    assert fragment in one_line(caught)


def test_log_probabilities_of_every_array() -> None:
    """Half precision is taken as it is; a draft that cannot draw a token has -inf."""
    half = torch.tensor(FINE, dtype=torch.bfloat16, requires_grad=True)
    record = Trace.from_log_probabilities([(half, [-math.inf, -0.5])])
    assert record.columns["log_target"].tolist() == FINE
    assert record.columns["log_draft"].tolist() == [-math.inf, -0.5]


def test_a_folder_is_read_by_the_name_of_its_trace(tmp_path: Path) -> None:
    written = trace(2, 3)
    written.write(tmp_path / TRACE_FILE)
    assert same(Trace.read(tmp_path), written)
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceError) as caught:
        Trace.read(tmp_path / "empty")
    assert f"{tmp_path / 'empty' / TRACE_FILE} is missing" in one_line(caught)


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


MOST_BYTES = 480
"""Of a start with 8 depths: 48 MB for 100,000 starts, 6 MB of them the estimated law of distinct candidates."""
DEPTH = 8


def write_plainly(written: Trace, path: Path, schema: int = SCHEMA_VERSION) -> Path:
    """A file with pyarrow's own encodings."""
    arrays = {
        name: pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
        if values.ndim == 2
        else pa.array(values)
        for name, values in written.columns.items()
    }
    texts = [asdict(text) for text in written.texts]
    header = {"schema": schema, "provenance": dict(written.provenance), "texts": texts}
    pq.write_table(pa.table(arrays).replace_schema_metadata({METADATA_KEY: json.dumps(header).encode()}), path)
    return path


def head(tokens: int = 60, seed: int = 1) -> Trace:
    """A trace of a draft head, of texts of 20 tokens."""
    texts = tuple(TextInfo(f"text {i}", 20, prompt=f"p{i}") for i in range(tokens // 20))
    return Trace(head_columns(tokens, DEPTH, seed), texts, {"settings": {"depth": DEPTH}})


@pytest.mark.parametrize("schema", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_another_schema_is_refused_in_one_line(schema: int, tmp_path: Path) -> None:
    path = write_plainly(trace(3), tmp_path / "new.parquet", schema)
    with pytest.raises(TraceError) as caught:
        Trace.read(path)
    assert f"has trace schema {schema}: this version reads schema {SCHEMA_VERSION}" in one_line(caught)


@pytest.mark.parametrize("kind", ["sampled", "greedy", "single precision"])
def test_a_trace_by_position_takes_no_more_bytes_than_written_plainly(kind: str, tmp_path: Path) -> None:
    """Numbers that hardly repeat, those of temperature 0, which are nearly all equal, and widened ones."""
    written = trace(700, 800)
    columns = dict(written.columns)
    if kind == "greedy":
        zeros = np.zeros(1500)
        columns |= {"log_target": zeros, "log_draft": zeros, "kl": zeros, "race_g": zeros + 0.5}
        columns["rejection_rank"] = np.tile(np.eye(1, RECORDED_RANKS), (1500, 1))
    if kind == "single precision":
        columns = {n: c.astype(np.float32).astype(float) if c.dtype.kind == "f" else c for n, c in columns.items()}
    given = Trace(columns, written.texts)
    given.write(path := tmp_path / "new.parquet")
    old = write_plainly(given, tmp_path / "old.parquet")
    assert path.stat().st_size <= old.stat().st_size
    assert same(Trace.read(path), given)


def test_columns_by_start_survive_the_disk(tmp_path: Path) -> None:
    """Counts and truth values exactly, numbers to their bits, columns by position with all of theirs."""
    written = head()
    written.write(path := tmp_path / "head.parquet")
    read = Trace.read(path)
    assert (read.depth, read.texts) == (DEPTH, written.texts)
    for name, values in read.columns.items():
        given = written.columns[name]
        assert values.shape == given.shape
        if name not in BY_START or values.dtype.kind != "f":
            assert np.array_equal(values, given), name
        else:
            assert values.dtype == np.float64
            assert np.array_equal(values == 0, given == 0)
            np.testing.assert_allclose(values, given.astype(np.float32), rtol=2.0 ** -COLUMNS[name].bits)
    read.write(path)
    assert same(Trace.read(path), read), "written again, nothing changes"


def test_types_on_disk(tmp_path: Path) -> None:
    """By start numbers are float32 and ranks of the smallest type, one list of K entries per row."""
    head().write(path := tmp_path / "head.parquet")
    types = {field.name: str(field.type) for field in pq.read_schema(path)}
    assert types["start_log_draft"] == f"fixed_size_list<element: float>[{DEPTH}]"
    assert types["start_draft_rank"] == f"fixed_size_list<element: uint8>[{DEPTH}]"
    assert types["start_race_rank"].startswith("fixed_size_list<element: fixed_size_list<element: float>[4]")
    assert types["log_draft"] == "double"


def test_infinities_and_the_ends_of_a_range_are_stored(tmp_path: Path) -> None:
    """What the draft cannot draw, what it is certain of, and numbers beyond single precision."""
    q = np.array([[-np.inf, 0.0, -1e-30, -700.0]])
    columns = {"log_target": np.array([-0.5]), "log_draft": q[:, 0], "start_log_draft": q}
    g = np.array([[np.inf, 0.0, 1e-30, 1e300]])
    Trace(columns | {"start_race_g": g}, (TextInfo("a", 1),)).write(path := tmp_path / "a.parquet")
    read = Trace.read(path).columns
    np.testing.assert_allclose(read["start_log_draft"], q, rtol=2.0 ** -COLUMNS["start_log_draft"].bits)
    assert read["start_race_g"][0, [0, 1, 3]].tolist() == [np.inf, 0.0, np.inf]


def filler(column: Column, tokens: int, rng: np.random.Generator) -> Any:
    """Possible values of a column that has no relation to others, in the precision of a measurement."""
    if column.kind == "integer":
        return rng.geometric(0.3, tokens)
    values = rng.dirichlet(np.ones(9), tokens)[:, : column.widths[1]] if column.widths else rng.random(tokens)
    return (values if column.high > 0 else -values).astype(np.float32).astype(np.float64)


def test_the_bytes_of_a_head(tmp_path: Path) -> None:
    """All columns of a measurement by start and by position, of numbers that never repeat."""
    tokens, rng = 6000, np.random.default_rng(3)
    written = head(tokens)
    beside = {name: filler(COLUMNS[name], tokens, rng) for name in MEASURED if name not in written.columns}
    beside["target_second_moment"] += 1  # at least the square of the entropy
    beside["lookup_drafted"] += beside["lookup_match"]
    Trace({**beside, **written.columns}, written.texts).write(path := tmp_path / "head.parquet")
    assert set(pq.read_schema(path).names) == {*MEASURED, *BY_START}
    assert path.stat().st_size <= MOST_BYTES * tokens


def test_what_the_disk_rounds_hardly_moves_calls(tmp_path: Path) -> None:
    """Tokens per call of every rule and k agree to a few millionths; twelve bits fewer would be seen."""
    written = head(400)
    written.write(path := tmp_path / "head.parquet")
    chains = [Chain(k) for k in range(1, DEPTH + 1)]

    def off(other: Trace) -> float:
        both = (plan(given, shapes=chains).predictions for given in (written, other))
        return max(abs(a.tokens_per_call.best / b.tokens_per_call.best - 1) for a, b in zip(*both, strict=True))

    assert 0 < off(Trace.read(path)) < 1e-5
    coarse = written.columns["start_log_draft"].astype(np.float16).astype(float)
    first = {"log_draft": coarse[:, 0], "start_log_draft": coarse}
    assert off(Trace({**written.columns, **first}, written.texts)) > 1e-5


def test_what_the_disk_rounds_hardly_moves_stopped_calls(tmp_path: Path) -> None:
    """Calls of stopping rules agree to a thousandth, as decisions change next to the threshold alone."""
    written = head(8000)
    written.write(path := tmp_path / "head.parquet")
    stops = [read_stop(f"{kind}{at / 10}") for kind in ("top<", "entropy>") for at in range(1, 10)]

    def calls(columns: Columns) -> NDArray[np.float64]:
        laws = (stopped_survival(PATH_RULES["block"], stop, DEPTH, columns) for stop in stops)
        return np.array([calls_of_texts(law, written.lengths).expected.sum() for law in laws])

    exact = calls(written.columns)
    assert np.abs(calls(Trace.read(path).columns) / exact - 1).max() < 1e-3
    names = ("start_draft_top", "start_draft_entropy")
    seven_bits = {name: np.round(written.columns[name] * 2**7) / 2**7 for name in names}
    assert np.abs(calls({**written.columns, **seven_bits}) / exact - 1).max() > 1e-3


def test_exchanged_models_are_seen_and_right_texts_are_not() -> None:
    """Texts of 1 and of 400 tokens, 200 of each, drawn from p: log q/p says nothing of one (rate 1e-6 each, 4e-4 in
    all), and of each long one exchanged. Texts drawn at temperature 0, with log-probabilities of 0, are no doubt.
    """
    rng = np.random.default_rng(3)
    p, q = rng.dirichlet([0.5] * 8, size=(2, 400))
    for tokens in (1, 400):
        for _ in range(200):
            at = np.arange(tokens), [rng.choice(8, p=row) for row in p[:tokens]]
            text = np.log(p[at]), np.log(q[at])
            assert "draft_ahead" not in Trace.from_log_probabilities([text]).provenance
            exchanged = Trace.from_log_probabilities([text[::-1]])
            assert ("draft_ahead" in exchanged.provenance) == (tokens > 1)
    assert exchanged.provenance["draft_ahead"] == pytest.approx(float((text[0] - text[1]).mean()))
    answer, (said,) = plan(exchanged, k_max=2), doubts(exchanged.provenance)
    assert prediction_report(answer).brief.verdict[0] == said
    assert (
        prediction_report(answer).as_dict()["warnings"] == mismatches(Draft("a", exchanged, ConstantRatio(0))) == [said]
    )
    first = Trace.from_log_probabilities([([0.0] * 400, [-1.0] * 400)])
    assert first.provenance == {"source": "log-probabilities"}


def test_one_model_twice_is_seen() -> None:
    """Not where both are certain of every token, as at temperature 0, nor where one value differs."""
    for draft, said in (([-1.0, -2.0], 1), ([-1.0, -2.1], 0)):
        trace = Trace.from_log_probabilities([([-1.0, -2.0], draft)])
        assert len(doubts(trace.provenance)) == said
    assert doubts(Trace.from_log_probabilities([([0.0, 0.0], [0.0, 0.0])]).provenance) == []


def test_equal_texts_are_of_one_prompt() -> None:
    """Copies of a text narrow no interval; a text of certain tokens may be that of another prompt."""
    one, other = ([-1.0, -0.5], [-1.2, -0.7]), ([-1.0, -0.5], [-1.2, -0.8])
    trace = Trace.from_log_probabilities([one, other, one, one], ids=["a", "b", "c", "d"])
    assert [text.prompt for text in trace.texts] == ["", "", "a", "a"]
    assert trace.provenance["repeated_texts"] == 2
    alone, copied = (plan(Trace.from_log_probabilities([one] * n), k_max=2) for n in (1, 9))
    assert alone.best.tokens_per_call == copied.best.tokens_per_call
    assert "Texts that equal an earlier one: 8" in " ".join(prediction_report(copied).brief.notes)
    certain = Trace.from_log_probabilities([([0.0], [0.0])] * 2)
    assert [text.prompt for text in certain.texts] == ["", ""]
