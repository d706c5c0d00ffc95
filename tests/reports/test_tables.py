"""One kind of table for every answer: cells by their columns, for a terminal and in Markdown; claims of limits."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from spectheory.answers import Part
from spectheory.intervals import Interval
from spectheory.limits.claims import BRANCHING_FORMS, IID_CHANNEL, ON_TRACES, ONE_CALL, footnotes
from spectheory.prediction.trace_limits import Limits
from spectheory.reports import Cell, Column, Drawing, Report, Table
from spectheory.reports.table import Value, for_terminal

SPREAD = Interval(0.5, 1.0, 1.5, "statistical")


@pytest.mark.parametrize(
    ("column", "cell", "text"),
    [
        (Column("a"), None, "-"),
        (Column("a", "x"), None, "-"),
        (Column("a", "x"), SPREAD, "1.00±0.50x"),
        (Column("a", digits=0), 7, "7"),
        (Column("a", digits=1), 7.0, "7.0"),
        (Column("a", "%", digits=0), 12.4, "12%"),
        (Column("a"), -0.001, "0.00"),
        (Column("a", signed=True), 0.5, "+0.50"),
        (Column("a", signed=True), -0.5, "-0.50"),
        (Column("a", signed=True), SPREAD, "+1.00±0.50"),
        (Column("a", "x"), "inf", "inf"),
        (Column("a", digits=1), Cell(2.0, "≤ ", "*"), "≤ 2.0*"),
    ],
)
def test_a_cell_is_written_as_its_column_says(column: Column, cell: Value | Cell, text: str) -> None:
    assert column.text(cell) == text


def shown(piece: Table | Drawing) -> str:
    console = Console(width=100, file=io.StringIO(), color_system=None)
    console.print(for_terminal(piece))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_a_column_reads_objects_and_mappings() -> None:
    """The best row is set off; what a mapping lacks is None, what an object lacks is a fault of the table."""
    columns = [Column("low"), Column("k", at=lambda each: Cell(each.high, "≤ ")), Column("the kind", at="kind")]
    table = Table.of("t", columns, [SPREAD], best=SPREAD)
    assert table.texts == [["0.50", "≤ 1.50", "statistical"]]
    assert [isinstance(cell, Cell) and cell.best for cell in table.rows[0]] == [True, False, True]
    assert Column("a", at="b.c").of({"b": {"c": SPREAD.as_dict()}}) == SPREAD
    assert Column("a b").of({"a": 1}) is None
    with pytest.raises(AttributeError):
        Column("middle").of(SPREAD)


def test_markdown_has_the_same_cells() -> None:
    table = Table("t", [Column("name", kind="words"), Column("|z|")], [["a|b", 1.0]])
    assert table.markdown.splitlines() == [r"| name | \|z\| |", "| --- | ---: |", r"| a\|b | 1.00 |"]


def test_a_drawing_has_every_node() -> None:
    out = shown(Drawing("root", "rank  weight", {(1,): ("1", "0.7"), (1, 2): ("2", "0.1")}))
    assert [line.split()[-1] for line in out.strip().splitlines()] == ["weight", "0.7", "0.1"]


def test_a_report_is_json_with_its_headline_and_notes() -> None:
    class Answer(Part):
        a: Interval
        b: float

    content = Report(Answer(a=SPREAD, b=float("inf")), [], "first", ["then"]).as_dict()
    assert content == {"schema": 1, "a": SPREAD.as_dict(), "b": None, "headline": "first", "notes": ["then"]}


def test_every_limit_of_a_trace_has_one_claim() -> None:
    assert {claim.key for claim in ON_TRACES} == set(vars(Limits()))
    names = [claim.name for claim in (*ON_TRACES, *BRANCHING_FORMS.values())]
    assert len(set(names)) == len(names)


def test_an_idealised_formula_is_no_bound() -> None:
    sharp = BRANCHING_FORMS["sharp"]
    assert (sharp.heading, sharp.idealised().heading) == ("sharp ≤", "sharp")
    (limit, reading) = footnotes([ONE_CALL, IID_CHANNEL, sharp.idealised()])
    assert limit.startswith("Upper bounds from target-sampled text")
    assert reading.startswith("Idealised values under i.i.d.; real text may exceed them: T1 (")
    assert "sharp (" in reading
