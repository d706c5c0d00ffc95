"""A large trace stays in its file: what is read of it, and what is said of a file that is damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spectheory.drafting import Chain
from spectheory.errors import SpectheoryError, TraceError, load_extra
from spectheory.prediction import plan
from spectheory.trace import COLUMNS, Trace, on_disk, parquet, record
from spectheory.trace.on_disk import OnDisk
from spectheory.verification import PATH_RULES, LookupMatch, PathRule, RaceVerification
from tests.commands import refused as refused_command
from tests.made_up import each, refused
from tests.prediction.blocks_made import LENGTHS, SAME, made_up, numbers


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a trace that counts as large, read in many blocks and batches."""
    monkeypatch.setattr(on_disk, "HELD", 50)
    monkeypatch.setattr(record, "BLOCK", 31)
    monkeypatch.setattr(parquet, "_BATCH", 20)
    monkeypatch.setattr(parquet, "_GROUP", 64)
    made_up().write(tmp_path / "trace.parquet")
    return tmp_path


def read_by(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of columns that are read from now on."""
    seen: set[str] = set()
    stream = parquet.stream

    def spied(path: Path, names: list[str], sizes: object) -> object:
        seen.update(names)
        return stream(path, names, sizes)  # type: ignore[arg-type]

    monkeypatch.setattr(parquet, "stream", spied)
    return seen


RULES: dict[PathRule, set[str]] = {
    PATH_RULES["token"]: set(),
    RaceVerification(): {"race_g"},
    LookupMatch(): {"lookup_match", "lookup_drafted"},
}


@each("rule, needs", RULES.items())
def test_a_file_says_what_memory_says_and_only_the_needed_columns_are_read(
    large: Path, monkeypatch: pytest.MonkeyPatch, rule: PathRule, needs: set[str]
) -> None:
    trace, opened = Trace.read(large), Trace.open(large)
    assert isinstance(opened.columns, OnDisk)
    assert set(opened.columns) == set(trace.columns)
    with monkeypatch.context() as patched:
        seen = read_by(patched)
        from_file = numbers(plan(opened, rules=[rule], shapes=[Chain(2), Chain(3)]))
    shared = {"log_target", "log_draft", "target_entropy", "target_second_moment", "rejection_rank"}
    assert needs <= seen <= needs | shared
    np.testing.assert_allclose(from_file, numbers(plan(trace, rules=[rule], shapes=[Chain(2), Chain(3)])), rtol=SAME)


def test_a_column_on_disk_is_read_where_it_is_asked_for(large: Path) -> None:
    trace, opened = Trace.read(large), Trace.open(large)
    for name, values in trace.columns.items():
        np.testing.assert_array_equal(opened.columns[name], values)
    assert "race_g" in opened.columns
    assert "race_rank" not in opened.columns
    assert len(opened) == len(trace)
    with pytest.raises(KeyError):
        opened.columns["race_rank"]
    whole = opened.in_memory()
    assert whole.in_memory() is whole
    assert not isinstance(whole.columns, OnDisk)
    assert repr(opened) == repr(trace)


def test_what_is_wrong_in_a_large_file_is_named_when_it_is_read(large: Path) -> None:
    """A value out of range in a block by file, text and token; what is not read is not seen."""
    trace = Trace.read(large)
    bad = trace.columns["race_g"].copy()
    bad[100] = -3.0
    wrong = {**trace.columns, "race_g": bad}
    header = {"provenance": {}, "texts": [vars(text) for text in trace.texts]}
    parquet.write(large / "trace.parquet", wrong, header)
    opened = Trace.open(large)
    text, position = trace.locate(100)
    where = f"race_g of text '{text.id}', token {position + 1} is -3"
    plan(opened, rules=[PATH_RULES["token"]], shapes=[Chain(1)])
    for call in (lambda: plan(opened, rules=[RaceVerification()], shapes=[Chain(1)]), opened.in_memory):
        refused(call, TraceError, f"{large / 'trace.parquet'}: {where}")
    refused(lambda: opened.columns["race_g"], TraceError, "race_g of row 101 is -3")


def test_a_torn_large_file_is_refused(large: Path) -> None:
    file = large / "trace.parquet"
    opened, content = Trace.open(large), file.read_bytes()
    for torn in (content[: len(content) // 2], content[:20]):
        file.write_bytes(torn)
        refused(lambda: Trace.open(large), SpectheoryError, "is truncated or no Parquet file")
        refused(lambda: plan(opened, rules=[RaceVerification()], shapes=[Chain(1)]), SpectheoryError, "is truncated")
    nulls = load_extra("pyarrow.parquet", extra=None)
    file.write_bytes(content)
    table = nulls.read_table(file)
    at = table.column_names.index("race_g")
    values = table.column(at).to_pylist()
    values[100] = None
    nulls.write_table(table.set_column(at, "race_g", [values]), file)
    refused(lambda: plan(Trace.open(large), rules=[RaceVerification()]), TraceError, "race_g of row 101 is null")


def test_a_large_file_that_is_written_over_while_it_is_read_is_refused(large: Path) -> None:
    """With fewer rows than it had when it was opened."""
    opened = Trace.open(large)
    made_up(LENGTHS[:-2]).write(large / "trace.parquet")
    rows = sum(LENGTHS[:-2])
    refused(lambda: plan(opened, rules=[RaceVerification()], shapes=[Chain(1)]), TraceError, f"has {rows} rows, fewer")


@pytest.mark.parametrize("name", [name for name, rule in PATH_RULES.items() if {*rule.needs} - {*made_up().columns}])
def test_a_rule_without_its_columns_is_refused_in_one_line(
    large: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """From memory and from disk: the line names the column and what to do."""
    rule = PATH_RULES[name]
    for file in (large, large.parent / "small"):
        if file != large:
            file.mkdir(exist_ok=True)
            Trace({n: made_up().columns[n] for n in ("log_target", "log_draft")}, made_up().texts).write(
                file / "trace.parquet"
            )
        line = refused_command(["predict", file, "--rule", name], capsys)
        missing = [column for column in rule.needs if column not in made_up().columns]
        assert all(column in line for column in missing)
        assert "measure" in line
    assert set(rule.needs) <= set(COLUMNS)
