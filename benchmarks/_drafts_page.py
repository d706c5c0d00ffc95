"""Write the drafts of the built-in target into docs/built_in_pair.md and docs/figures/drafts.*.

They are those of `results/drafts.json`, which `drafts.py` measures.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spectheory.intervals import Interval
from spectheory.plots.chart import Chart, Dot, Series, rows
from spectheory.plots.style import DISTINCT, Figure, save_figure

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "drafts.json"
PAGE, FIGURE = ROOT / "docs" / "built_in_pair.md", ROOT / "docs" / "figures" / "drafts"
BEGIN, END = "<!-- written by benchmarks/_drafts_page.py -->", "<!-- end -->"
PANELS = {"tokens_per_call": "tokens per target call", "speedup": "predicted speed-up"}
KINDS = {
    "model": ("a second model", "a second model"),
    "head": ("a trained head", "the target's hidden states, a trained head"),
    "copy": ("nothing", "nothing"),
}
"""What a kind of draft needs, in the picture and in the table."""
Row = dict[str, Any]


def saved() -> list[Row]:
    """The saved rows."""
    rows_saved: list[Row] = json.loads(RESULTS.read_text())["drafts"]
    return rows_saved


def by_speedup(drafts: Iterable[Row]) -> list[Row]:
    """Rows, the fastest first."""
    return sorted(drafts, key=lambda row: -row["speedup"]["best"])


def table(drafts: Iterable[Row]) -> str:
    """The rows as Markdown, the fastest first."""
    lines = [
        "| draft | verification | first draft accepted | best k | tokens per call | draft passes per call "
        "| predicted speed-up | needs |",
        "|---|---|---:|---:|---:|---:|---:|---|",
    ]
    for row in by_speedup(drafts):
        cells = [row["what"], row["rule"], f"{row['acceptance']['best']:.3f}", str(row["k"])]
        cells += [
            spread(row["tokens_per_call"]),
            str(row["passes"]),
            f"{spread(row['speedup'])}x",
            KINDS[row["kind"]][1],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def spread(interval: dict[str, float], digits: int = 2) -> str:
    """The best value and both ends."""
    best, low, high = (f"{interval[name]:.{digits}f}" for name in ("best", "low", "high"))
    return f"{best} [{low}, {high}]"


def chart(drafts: Iterable[Row], value: str) -> Chart:
    """One value of each draft, the fastest first, in the colour of what the draft needs."""
    dots = (
        Dot(
            KINDS[row["kind"]][0],
            Interval(**row[value]),
            Interval.exact(place),
            short=f"{row['what']}, k = {row['k']}",
            says=f"{row[value]['best']:.2f}{'x' * (value == 'speedup')}",
        )
        for place, row in enumerate(by_speedup(drafts))
    )
    series = tuple(Series(needs, look) for (needs, _), look in zip(KINDS.values(), DISTINCT, strict=False))
    return Chart(value, "", PANELS[value], "", series, tuple(dots), reference=(1.0, "plain decoding"))


def draw(figure: Figure, drafts: Iterable[Row]) -> None:
    """Tokens per call and speed-up side by side, with one key."""
    panels = figure.subplots(1, 2)
    for ax, value in zip(panels, PANELS, strict=True):
        rows(ax, chart(drafts, value))
    panels[0].get_legend().remove()
    panels[1].get_legend().set_title("needs")
    panels[1].set_yticklabels([])


def renewed(page: str) -> str:
    """The page with its table written again."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table(saved())}\n\n{END}{rest.partition(END)[2]}"


def write_figure(drafts: list[Row], path: Path) -> list[Path]:
    """Write the picture as PNG and SVG; `path` is without suffix."""
    return save_figure(lambda figure: draw(figure, drafts), (9.0, 1.4 + 0.27 * len(drafts)), path)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
    write_figure(saved(), FIGURE)
