"""Figures of bounds against simulations as pictures of a page: captions, comparisons, and the numbers drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spectheory.answers import Part
from spectheory.intervals import Interval
from spectheory.pages.page import Picture
from spectheory.reports.base import Report
from spectheory.reports.table import Column, Table

Content = Mapping[str, Any]
_IN_WHEEL, _IN_SOURCES = Path(__file__).parent / "captions", Path(__file__).parents[2] / "docs" / "figures"
CAPTIONS = _IN_WHEEL if _IN_WHEEL.is_dir() else _IN_SOURCES
"""Captions as Markdown: a wheel is built with those of the docs."""


class _Numbers(Part):
    """What a page of figures holds as data: what was compared, and what is drawn."""

    class Figure(Part):
        """A saved figure."""

        figure: str
        title: str
        statements: list[str]
        setting: str
        seed: int
        alarm: float
        comparisons: list[dict[str, Any]]
        data: dict[str, Any]

    figures: list[Figure]


def _value(saved: Any) -> Interval | float:
    if not isinstance(saved, Mapping):
        return float(saved)
    return Interval(saved["low"], saved["best"], saved["high"], "statistical")


_COLUMNS = (
    Column("of", kind="words", meaning="the simulated setting", at="label"),
    Column("what", kind="words", meaning="what theory says of it", at="says"),
    Column("statement", kind="names", meaning="its id in the ledger of theorems"),
    Column(
        "theory",
        digits=4,
        meaning="the value, or the bound, that theory gives",
        at=lambda compared: _value(compared["predicted"]),
    ),
    Column(
        "simulated",
        digits=4,
        meaning="what the trials gave, with its 95% interval",
        at=lambda compared: _value(compared["observed"]),
    ),
    Column(
        "agrees",
        kind="names",
        meaning="whether theory and simulation agree",
        at=lambda compared: "yes" if compared["agrees"] else "NO",
    ),
)


def figures_report(contents: Sequence[Content]) -> Report:
    """The figures' numbers as an answer: what was compared, and what is drawn."""
    agree = [row["agrees"] for content in contents for row in content["comparisons"]]
    wrong = len(agree) - sum(agree)
    verdict = f"disagree in {wrong} of {len(agree)}" if wrong else f"agree in all {len(agree)}"
    count = "1 figure" if len(contents) == 1 else f"{len(contents)} figures"
    return Report(_Numbers.view(figures=contents), [], f"{count}: theory and simulation {verdict} comparisons")


def figure_picture(content: Content, image: Path) -> Picture:
    """The picture of a figure: its saved content and its SVG file."""
    caption = (CAPTIONS / f"{content['figure']}.md").read_text(encoding="utf-8")
    compared = content["comparisons"]
    setting = f"{content['setting']} setting, seed {content['seed']}, false alarms {content['alarm']:.0e} a figure"
    title = f"Theory against simulation: {len(compared)} comparisons"
    tables = [Table.of(title, _COLUMNS, compared, [setting])] if compared else []
    return Picture(content["figure"], content["title"], image, caption, tables)
