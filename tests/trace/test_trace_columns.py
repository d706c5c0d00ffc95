"""The table of columns: values outside its types, shapes and ranges are refused in one line, all others read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from spectheory.distributions import Sampling
from spectheory.errors import SpectheoryError, TraceError
from spectheory.measure import MeasureSettings, ModelPair, measure, position_statistics
from spectheory.measure.judged import judged_trace
from spectheory.prompts import Prompt
from spectheory.trace import COLUMNS, MEASURED, REQUIRED, Column, TextInfo, Trace
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.columns import BETTER, BY_START, COPIED, MOST_DEPTH, ROUNDING
from spectheory.truncated.top import TopLogProbs
from tests.made_up import by_start, each, one_line

DEPTH = 3
"""Drafts of a call in columns by start."""
ROW = 7
"""Where an impossible value is put."""


@pytest.fixture(scope="module")
def real(tiny_pair: ModelPair, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A measured trace, with the columns of an engine's output that has these texts."""
    path = tmp_path_factory.mktemp("real") / "trace.parquet"
    prompts = [Prompt("first", "c", "t1 t2"), Prompt("second", "c", "t3 t4")]
    measured = measure(tiny_pair, prompts, MeasureSettings(tokens=6, stop_at_end=False, better_drafts=True), path)
    assert set(pq.read_schema(path).names) == {*MEASURED, *BETTER}
    texts = measured.columns["token"].reshape(2, 6).tolist()
    log = CallLog(
        (Request("first", (1, 2), tuple(texts[0])), Request("second", (3, 4), tuple(texts[1]))), temperature=1.0
    )
    columns = {**judged_trace(tiny_pair, log).columns, **measured.columns}
    columns |= by_start(columns, DEPTH)
    copied = {name: np.zeros((12, 2) if COLUMNS[name].widths else 12, np.int16) for name in COPIED}
    columns["start_confidence"] = np.full((12, DEPTH), 0.5)
    replace(measured, columns={**columns, **copied}).write(path)
    assert set(pq.read_schema(path).names) == set(COLUMNS)
    return path


def as_lists(values: Any) -> Any:
    """An array for a table: rows of more than one dimension as lists."""
    return pa.array(values.tolist()) if values.ndim > 1 else pa.array(values)


@cache
def read(path: Path) -> Trace:
    """A trace file that does not change."""
    return Trace.read(path)


@cache
def table_of(path: Path) -> pa.Table:
    """The columns of a trace file that does not change."""
    return pq.read_table(path)


def with_column(path: Path, name: str, values: Any, out: Path) -> Path:
    """Write a trace file with another column."""
    table = table_of(path)
    pq.write_table(table.set_column(table.column_names.index(name), name, values), out)
    return out


def refusal(path: Path) -> str:
    with pytest.raises(SpectheoryError) as caught:
        Trace.read(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


# One column at a time


def wrong_values(column: Column) -> Iterator[float]:
    """Values beside the range: one step out of it where it ends, infinities it lacks, NaN."""
    if column.kind == "truth value":
        return
    step = 1.0 if column.kind == "integer" else 3 * column.rounding or 1e-3
    for end, sign in ((column.low, -1), (column.high, 1)):
        if math.isfinite(end):
            yield end + sign * step
        if column.kind == "number" and (column.finite or math.isfinite(end)):
            yield sign * math.inf
    if column.kind == "number":
        yield math.nan


WRONG_VALUES = [(name, value) for name, column in COLUMNS.items() for value in wrong_values(column)]


@each("name, value", WRONG_VALUES)
def test_impossible_values_are_located(name: str, value: float, real: Path, tmp_path: Path) -> None:
    """The line names column, text and token, the value, and the limit."""
    values = np.array(read(real).columns[name])
    if COLUMNS[name].kind == "integer":
        values = values.astype(np.int64)
    values[(ROW, *[0] * (values.ndim - 1))] = value
    message = refusal(with_column(real, name, as_lists(values), tmp_path / "trace.parquet"))
    assert f"{name} of text 'second', token {ROW - 6 + 1}" in message
    assert (f"{value:.6g}" if COLUMNS[name].kind == "number" else f"{value:.0f}") in message
    assert not COLUMNS[name].by_start or "at depth 1" in message
    assert (COLUMNS[name].type if name not in REQUIRED else "a log-probability is <= 0") in message


def test_the_table_gives_every_numeric_column_impossible_values() -> None:
    """Control of the derivation above."""
    assert {name for name, _ in WRONG_VALUES} == {n for n, column in COLUMNS.items() if column.kind != "truth value"}
    assert len(WRONG_VALUES) > 3 * len(COLUMNS) - 4 * len(BY_START)


@each("name", sorted(COLUMNS))
def test_the_ends_of_a_range_are_possible(name: str) -> None:
    column = COLUMNS[name]
    ends = [end for end in (column.low, column.high) if math.isfinite(end) or not column.finite]
    values = np.array([end for end in ends if column.kind == "number" or math.isfinite(end)])
    if name in ("log_draft", "kl", "race_g", "start_log_draft", "start_race_g"):
        assert np.isinf(values).any()
    assert not column.outside(values).any()


def wrong_arrays(name: str) -> Iterator[Any]:
    """Columns of other types and shapes, and with missing values."""
    column, rows = COLUMNS[name], 12
    if column.by_start:
        yield from wrong_depths(column, rows)
        return
    yield pa.array(["0"] * rows)
    if column.kind != "truth value":
        yield pa.array([True] * rows)
    if column.kind != "number":
        yield pa.array([1.0] * rows)
    if column.kind != "integer":
        yield pa.array([0] * rows)
    value: Any = {"number": 0.0, "integer": 1, "truth value": True}[column.kind]
    if column.widths is None:
        yield pa.array([[value, value]] * rows)
        yield pa.array([value] * ROW + [None] * (rows - ROW))
        return
    yield pa.array([value] * rows)
    for width in (column.widths[0] - 1, column.widths[1] + 1):
        yield pa.array([[value] * width] * rows, pa.list_(pa.float64()))
    full = [value] * column.widths[1]
    yield pa.array([full] * ROW + [full[1:]] * (rows - ROW))
    yield pa.array([full] * ROW + [[None, *full[1:]]] * (rows - ROW))


def wrong_depths(column: Column, rows: int) -> Iterator[Any]:
    """The same for a column by start: also no depth, too many, and rows of different depths."""
    value: Any = {"number": 0.0, "integer": 1, "truth value": True}[column.kind]
    entry = [value] * column.widths[1] if column.widths else value
    other = {"number": 1, "integer": 1.0, "truth value": 1}[column.kind]
    yield pa.array([value] * rows)
    yield pa.array([[[other] * column.widths[1] if column.widths else other] * DEPTH] * rows)
    yield pa.array([[[entry]] * DEPTH] * rows)
    yield pa.array([[entry] * (MOST_DEPTH + 1)] * rows)
    yield pa.array([[entry] * DEPTH] * ROW + [[entry] * (DEPTH - 1)] * (rows - ROW))
    yield pa.array([[entry] * DEPTH] * ROW + [[None, *[entry] * (DEPTH - 1)]] * (rows - ROW))
    if column.widths:
        for short in (entry[1:], [None, *entry[1:]]):
            yield pa.array([[entry] * DEPTH] * ROW + [[entry, short, entry]] * (rows - ROW))
        yield pa.array([[[*entry, value]] * DEPTH] * rows)


@each("name, case", [(n, i) for n in sorted(COLUMNS) for i, _ in enumerate(wrong_arrays(n))])
def test_other_types_and_shapes_are_refused(name: str, case: int, real: Path, tmp_path: Path) -> None:
    values = list(wrong_arrays(name))[case]
    message = refusal(with_column(real, name, values, tmp_path / "trace.parquet"))
    in_a_row = f"{name} of row {ROW + 1}"
    whole = f"{name} is an array" in message and COLUMNS[name].type in message
    assert whole or in_a_row in message


@pytest.mark.parametrize("name", [name for name, column in COLUMNS.items() if column.law])
def test_laws_sum_to_at_most_one(name: str, real: Path, tmp_path: Path) -> None:
    """Entries in range, and yet no law; with a sum of one it is."""
    trace, changed = read(real), tmp_path / "changed.parquet"
    others = {other: values for other, values in trace.columns.items() if name == other or not COLUMNS[other].law}
    replace(trace, columns=others).write(path := tmp_path / "trace.parquet")
    law = np.array(trace.columns[name])
    last = (ROW, 2) if COLUMNS[name].by_start else (ROW,)
    law[last] = 1 / law.shape[-1]
    Trace.read(with_column(path, name, as_lists(law), changed))
    law[(*last, 0)] += 0.5
    message = refusal(with_column(path, name, as_lists(law), changed))
    assert f"{name} of text 'second', token 2 sums to 1.5{' at depth 3' * (len(last) - 1)}" in message


# Columns together


def one_token(**columns: Any) -> Trace:
    made = {"log_target": -1.0, "log_draft": -1.5, **columns}
    return Trace({name: np.array([value]) for name, value in made.items()}, (TextInfo("a", 1),))


RATIO = math.exp(0.5)
TOGETHER = [
    ("race_g", RATIO - 1, 7e5, {}),
    ("race_g", RATIO, RATIO + 1e-3, {}),
    ("race_g", RATIO - 1, RATIO - 1 - 1e-3, {}),
    ("race_g", math.inf, 3.0, {"log_draft": -math.inf}),
    ("race_g", math.inf, -1.0, {"log_draft": -1e3}),
    ("target_second_moment", 4.0, 3.9, {"target_entropy": 2.0}),
    ("lookup_match", 3, 4, {"lookup_drafted": 3}),
    ("start_log_draft", [-1.5, -9.0], [-1.4, -9.0], {}),
    ("start_log_draft", [-math.inf], [-800.0], {"log_draft": -math.inf}),
    ("start_draft_rank", [2, 5], [3, 5], {"draft_rank": 2}),
    ("start_greedy_agreement", [True, False], [False, False], {"greedy_agreement": True}),
    ("start_total_variation", [0.3, 0.9], [0.3001, 0.9], {"total_variation": 0.3}),
    ("start_rejection_rank", [[0.5, 0.1]] * 2, [[0.5, 0.2], [0.5, 0.1]], {"rejection_rank": [0.5, 0.1, 0.3]}),
]


@each("name, possible, impossible, beside", TOGETHER)
def test_columns_that_contradict_each_other(name: str, possible: Any, impossible: Any, beside: dict[str, Any]) -> None:
    one_token(**{name: possible}, **beside)
    with pytest.raises(TraceError, match=f"{name} of text 'a', token 1 is") as caught:
        one_token(**{name: impossible}, **beside)
    assert f"{float(np.ravel(impossible)[0]):.6g}" in str(caught.value) or impossible == [False, False]


def test_columns_by_start_have_one_depth() -> None:
    """The depth is that of the provenance, if it says one; lists are by position alone."""
    deep = {"start_log_draft": [-1.5, -2.0], "start_greedy_agreement": [True, False]}
    assert one_token(**deep).depth == 2
    assert one_token().depth is None
    with pytest.raises(TraceError, match="start_greedy_agreement has 1 depths") as caught:
        one_token(**{**deep, "start_greedy_agreement": [True]})
    assert "other columns by start have 2" in one_line(caught)
    replace(one_token(**deep), provenance={"settings": {"depth": 2}})
    with pytest.raises(TraceError, match="columns by start have 2 depths") as caught:
        replace(one_token(**deep), provenance={"settings": {"depth": 3}})
    assert "the provenance says 3" in one_line(caught)
    top = TopLogProbs([0], [-0.1], 3)
    with pytest.raises(TraceError, match="lists of the most probable tokens and columns by start"):
        replace(one_token(**deep, token=0), lists=[(top, top)])


@each("scale", [0.0, 0.3, 3.0, 30.0])
@each("sampling", [Sampling(), Sampling(0.0), Sampling(0.5, top_k=3), Sampling(1.3, top_p=0.8)])
@pytest.mark.parametrize("vocabulary", [2, 50, 500, pytest.param(20_000, marks=pytest.mark.evidence)])
def test_what_is_measured_is_never_refused(scale: float, sampling: Sampling, vocabulary: int) -> None:
    """Flat to nearly certain pmfs, near and far drafts, tokens of the target: exact inequalities up to rounding."""
    generator = torch.Generator().manual_seed(vocabulary)
    target, noise = (torch.randn(24, vocabulary, generator=generator) for _ in range(2))
    for near in (0.01, 3.0):
        logits = scale * target
        tokens = torch.distributions.Categorical(logits=logits / max(sampling.temperature, 0.05)).sample()
        measured = position_statistics(logits, logits + near * noise, tokens, sampling, sampled=True)
        columns = {name: values.numpy() for name, values in measured.items()}
        Trace(columns, (TextInfo("a", 24),))


def test_rounding_is_wider_than_single_precision() -> None:
    """The slack covers a sum over a vocabulary, and nothing a reader would take for a wrong number."""
    assert 10 * np.finfo(np.float32).eps < ROUNDING < 1e-4
