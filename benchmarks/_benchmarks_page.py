"""Write docs/benchmarks.md and docs/figures/benchmarks.* from the rows in results/; `make benchmarks`.

A result whose file has no rows (tables of numbers without times) is left to the page that shows it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, groupby
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.plots.style import MARKERS, PALETTE, Axes, Figure, note, save_figure, titled

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE, FIGURE = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "figures" / "benchmarks"
BEGIN, END = "<!-- written by benchmarks/_benchmarks_page.py -->", "<!-- end -->"
ORDER = (
    "first_answer",
    "columns",
    "sampling",
    "latencies",
    "measuring_workers",
    "large_traces",
)
"""Measuring comes first; the others follow by their names."""
HEAD = "| work | ours | peer / ours | ours / limit |\n|---|--:|--:|--:|"
SCALES = {
    "V": "tokens of the vocabulary",
    "positions": "positions",
    "nodes": "nodes",
    "workers": "workers",
    "batch": "prompts at a time",
}
"""What a scaling curve may run over, and how its axis is labelled."""
GREY = "#555555"
Row = dict[str, Any]


def results() -> list[tuple[str, dict[str, Any]]]:
    """Name and content of every result with rows, in the page's order."""
    contents = {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    timed = {name: each for name, each in contents.items() if isinstance(each, dict) and "rows" in each}
    first = [name for name in ORDER if name in timed]
    return [(name, timed[name]) for name in (*first, *(name for name in timed if name not in first))]


def section() -> str:
    """What stands between the marks: one table for all results, then where they were taken."""
    table, machines = [HEAD], defaultdict(list)
    for name, result in results():
        first = "; ".join(dict.fromkeys(row["equal"] for row in result["rows"]))
        table.append(
            f"| **{result['title']}** ([{name}](../benchmarks/{name}.py)); checked before timing: {first} | | | |"
        )
        table += map(_line, _shown(result["rows"]))
        versions = ", ".join(f"{key} {value}" for key, value in result["machine"].items() if key != "cores")
        machines[f"{versions.removeprefix('processor ')}; {result['machine']['cores']} cores; {result['date']}"].append(
            name
        )
    taken = [
        f"{where}." if len(machines) == 1 else f"{', '.join(names)}: {where}." for where, names in machines.items()
    ]
    return "\n\n".join([BEGIN, "\n".join(table), *taken, END])


def _shown(rows: Sequence[Row]) -> Iterator[Row]:
    """One row of each work, that of the fastest peer; of a curve its goals' or else its peers' largest size."""
    works: dict[str, Row] = {}
    for row in rows:
        work = row["work"].partition(" (numpy: ")[0]
        if work not in works or (row["peer"] or 0) < (works[work]["peer"] or 0):
            works[work] = {**row, "work": work}
    for row in works.values():
        curve = [each for each in works.values() if row["curve"] and each["curve"] == row["curve"]]
        fastest = (
            [each for each in curve if each["wanted"] is not None] or [each for each in curve if each["peer"]] or curve
        )
        last = max(fastest, key=lambda each: tuple(each["at"].values()), default=row)
        if row is last and (row["peer"] or row["limit"] or row["wanted"] is not None):
            yield row


def _line(row: Row) -> str:
    ours, said = row["ours"], f"{_number(row['ours'])} {row['unit']}"
    if row["wanted"] is not None and ours > row["wanted"]:
        said += f" (goal of {_number(row['wanted'])} missed)"
    peer = f"{_number(row['peer'] / ours)} ({row['peer_is']})" if row["peer"] else ""
    limit = f"{_number(ours / row['limit'])} ({row['limit_is']})" if row["limit"] else ""
    return f"| {row['work']} | {said} | {peer} | {limit} |"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def curves() -> list[Curve]:
    """Every scaling curve: rows of one result, unit and family over one size."""
    curves_of: list[Curve] = []
    for _, result in results():
        rows = [
            (over, row) for row in result["rows"] for over in row["at"] or () if over in SCALES and row.get("curve")
        ]
        rows.sort(key=lambda each: (each[0], _family(*each), each[1]["at"][each[0]]))
        for (over, family), group in groupby(rows, key=lambda each: (each[0], _family(*each))):
            members = list(group)
            points = [(row["at"][over], row["ours"]) for _, row in members]
            if len({size for size, _ in points}) > 1:
                curves_of.append(Curve(SCALES[over], family, tuple(points), rate=" per " in members[0][1]["unit"]))
    return sorted(curves_of, key=lambda curve: curve.over)


def _family(over: str, row: dict[str, Any]) -> str:
    """Rows of one curve share its name and all other sizes."""
    others = "".join(f", {name} {size:g}" for name, size in row["at"].items() if name != over)
    return row["curve"] + others


@dataclass(frozen=True)
class Curve:
    """Times of one piece of work over `sizes` of what `over` says; `rate` says that a unit's time is given.

    A rate (ns per entry) is drawn times its size, so that every curve is a time.
    """

    over: str
    name: str
    points: tuple[tuple[float, float], ...]
    rate: bool = False

    @property
    def times(self) -> list[float]:
        """Times in units of the last one."""
        sizes, values = zip(*self.points, strict=True)
        times_per_size = np.multiply(values, sizes) if self.rate else np.array(values)
        return (times_per_size / times_per_size[-1]).tolist()

    @property
    def exponent(self) -> float:
        """Exponent of the size, by least squares of logarithms."""
        return float(np.polyfit(np.log([size for size, _ in self.points]), np.log(self.times), 1)[0])


def draw(figure: Figure, curves: Sequence[Curve]) -> None:
    """A panel for each kind of size."""
    panels = [(over, list(members)) for over, members in groupby(curves, key=lambda curve: curve.over)]
    grid = figure.add_gridspec(-(-len(panels) // 2), 2)
    for number, (over, members) in enumerate(panels):
        row, column = divmod(number, 2)
        alone = column == 0 and number == len(panels) - 1  # the last of an odd number is as wide as two
        _panel(figure.add_subplot(grid[row, :] if alone else grid[row, column]), over, members)


def _panel(ax: Axes, over: str, curves: Sequence[Curve]) -> None:
    for curve, colour, marker in zip(curves, cycle(PALETTE.values()), cycle(MARKERS)):
        name = f"{curve.name}: size^{curve.exponent:.2f}"
        ax.plot([size for size, _ in curve.points], curve.times, color=colour, marker=marker, label=name)
    smallest, largest = (pick(size for c in curves for size, _ in c.points) for pick in (min, max))
    falling = curves[0].times[0] > 1
    start = largest / smallest if falling else smallest / largest
    ax.plot([smallest, largest], [start, 1.0], color=GREY, linewidth=0.8, linestyle=":")
    middle = (smallest * largest) ** 0.5, start**0.5
    note(ax, "1 / size" if falling else "linear", middle, (6, 4 if falling else -12), GREY)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(over)
    ax.set_ylabel("time / time at the largest size")
    titled(ax, f"Over {over}")
    ax.legend(loc="upper right" if falling else "lower right", fontsize=8)


def write_figure(curves: Sequence[Curve], path: Path) -> list[Path]:
    """Write the figure as PNG and SVG; `path` is without suffix."""
    panels = len({curve.over for curve in curves})
    return save_figure(lambda figure: draw(figure, curves), (9.0, 3.0 * -(-panels // 2)), path)


def renewed(page: str) -> str:
    """The page with its section written again."""
    before, _, rest = page.partition(BEGIN)
    return before + section() + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
    write_figure(curves(), FIGURE)
