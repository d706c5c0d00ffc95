"""Figures of bounds against simulations as pictures of a page: captions, comparisons, and the numbers drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spectheory.intervals import Interval
from spectheory.pages.parts import Picture
from spectheory.reports.base import Report
from spectheory.reports.table import Column, Row, Table

Content = Mapping[str, Any]
_IN_WHEEL, _IN_SOURCES = Path(__file__).parent / "captions", Path(__file__).parents[2] / "docs" / "figures"
CAPTIONS = _IN_WHEEL if _IN_WHEEL.is_dir() else _IN_SOURCES
"""Captions as Markdown: a wheel is built with those of the docs."""
_COLUMNS = (
    Column("of", kind="words", meaning="the simulated setting"),
    Column("what", kind="words", meaning="what theory says of it"),
    Column("statement", kind="names", meaning="its id in the ledger of theorems"),
    Column("theory", digits=4, meaning="the value, or the bound, that theory gives"),
    Column("simulated", digits=4, meaning="what the trials gave, with its 95% interval"),
    Column("agrees", kind="names", meaning="whether theory and simulation agree"),
)


def figure_pictures(made: Iterable[tuple[Content, Path]]) -> list[Picture]:
    """A picture for each figure: its saved content and its SVG file."""
    return [_picture(content, image) for content, image in made]


def figures_report(contents: Sequence[Content]) -> Report:
    """The figures' numbers as an answer: what was compared, and what is drawn."""
    kept = ("figure", "title", "statements", "setting", "seed", "alarm", "comparisons", "data")
    numbers = [{name: content[name] for name in kept} for content in contents]
    agree = [row["agrees"] for content in contents for row in content["comparisons"]]
    wrong = len(agree) - sum(agree)
    verdict = f"disagree in {wrong} of {len(agree)}" if wrong else f"agree in all {len(agree)}"
    count = "1 figure" if len(contents) == 1 else f"{len(contents)} figures"
    return Report({"figures": numbers}, [], f"{count}: theory and simulation {verdict} comparisons")


def _picture(content: Content, image: Path) -> Picture:
    caption = (CAPTIONS / f"{content['figure']}.md").read_text(encoding="utf-8")
    rows = [_row(each) for each in content["comparisons"]]
    setting = f"{content['setting']} setting, seed {content['seed']}, false alarms {content['alarm']:.0e} a figure"
    tables = [Table(f"Theory against simulation: {len(rows)} comparisons", _COLUMNS, rows, [setting])] if rows else []
    return Picture(content["figure"], content["title"], image, caption, tables)


def _row(compared: Content) -> Row:
    theory, simulated = (_value(compared[name]) for name in ("predicted", "observed"))
    says = "yes" if compared["agrees"] else "NO"
    return [compared["label"], compared["says"], compared["statement"], theory, simulated, says]


def _value(saved: Any) -> Interval | float:
    if not isinstance(saved, Mapping):
        return float(saved)
    return Interval(saved["low"], saved["best"], saved["high"], "statistical")
