"""The trace file: another schema is refused, columns by start take few bytes."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from spectheory.drafting import Chain, read_stop
from spectheory.errors import TraceError
from spectheory.prediction import plan
from spectheory.prediction.paths import calls_of_texts
from spectheory.prediction.stopped import stopped_survival
from spectheory.trace import MEASURED, METADATA_KEY, RECORDED_RANKS, SCHEMA_VERSION, Column, TextInfo, Trace
from spectheory.trace.columns import BY_START, COLUMNS
from spectheory.verification import PATH_RULES, Columns
from tests.made_up import head_columns, one_line, same, trace

MOST_BYTES = 400
"""Of a start with 8 depths: 40 MB for 100,000 starts."""
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
    return values.astype(np.float32).astype(np.float64)


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
