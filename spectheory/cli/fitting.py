"""Tables in the width there is: words wrap, numbers stay whole, and columns that do not fit are named."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Column, Table

from spectheory.reports.base import columns_kept
from spectheory.reports.table import GAP, total

UNLIMITED = 1 << 20
"""A width that no table reaches."""


@dataclass(frozen=True)
class Fitted:
    """A table without its title, the headings of the columns left out, and the width that all would need."""

    table: Table
    left_out: tuple[str, ...]
    needed: int


@dataclass(frozen=True)
class _Widths:
    """A column with the least width that cuts nothing, and the width on one line."""

    column: Column
    least: int
    natural: int


def fitted(table: Table, console: Console, width: int) -> Fitted:
    """Leave out columns until the rest fits in `width`: dim ones first, then from the right, never the first one."""
    every = [_measured(column, console) for column in table.columns]
    least = [each.least for each in every]
    kept = [every[i] for i in columns_kept(least, [each.column.style == "dim" for each in every], width)]
    shown = Table(box=None, pad_edge=False, padding=(0, 0, 0, GAP))
    for each, wide in zip(kept, _shares(kept, width), strict=True):
        column = each.column
        shown.add_column(column.header, justify=column.justify, style=column.style, overflow="fold", width=wide)
    for cells in zip(*(each.column.cells for each in kept), strict=True):
        shown.add_row(*cells)
    left_out = tuple(_heading(each.column) for each in every if each not in kept)
    return Fitted(shown, left_out, total(least))


def _measured(column: Column, console: Console) -> _Widths:
    """Words wrap at blanks; numbers, which stand on the right, and columns marked so do not. Headings always may."""
    options = console.options.update(max_width=UNLIMITED)
    header = console.measure(column.header, options=options)
    cells = [console.measure(cell, options=options) for cell in column.cells]
    whole = column.no_wrap or column.justify == "right"
    least = [cell.maximum if whole else cell.minimum for cell in cells]
    return _Widths(column, max([header.minimum, *least]), max([header.maximum, *(cell.maximum for cell in cells)]))


def _shares(columns: list[_Widths], width: int) -> list[int]:
    """Natural widths, of which the widest that can give way do so until all fit."""
    widths = [each.natural for each in columns]
    while total(widths) > width:
        spare = [i for i, each in enumerate(columns) if widths[i] > each.least]
        if not spare:
            break
        widths[max(spare, key=widths.__getitem__)] -= 1
    return [max(1, min(wide, width)) for wide in widths]


def _heading(column: Column) -> str:
    """The heading on one line; one that was broken after a hyphen is put together."""
    return " ".join(str(column.header).replace("-\n", "-").split()) or "the unnamed one"
