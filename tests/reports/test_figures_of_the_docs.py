"""Every figure of the docs that has its data beside it: drawn again, it is the committed picture, and can be read."""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Callable
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.axis import Axis, Tick
from matplotlib.figure import Figure
from matplotlib.testing.compare import compare_images
from matplotlib.text import Text
from PIL import Image

from simulations.sweeps import NAMES, sweeps
from spectheory.plots import style_sheet, validation
from spectheory.plots.style import WIDTH, save_figure

ROOT = Path(__file__).parents[2]
DOCS, SCRIPTS = ROOT / "docs" / "figures", ROOT / "benchmarks"
TOLERANCE = 1.0
"""Root mean square over all pixels, of 255. The same matplotlib gives 0 on one machine; elsewhere sums round otherwise,
which moves a line by a small part of a pixel. A curve of one small panel gives 1 at a quarter of a pixel, 3 at one."""
SMALLEST = 8.0
"""Points of the smallest letters."""
TOUCHING = 1.0
"""Pixels by which boxes of words may overlap: a box is a little larger than its letters."""
PAIRS = ("distilled", "draft", "small")

Draw = Callable[[Figure], Any]


def answers() -> list[dict[str, Any]]:
    return [json.loads((DOCS / "validation" / pair / "validation.json").read_text()) for pair in PAIRS]


def how(name: str) -> tuple[Draw, tuple[float, float]]:
    """What draws a figure, and how large it is."""
    if name == "validation":
        return lambda figure: validation._draw(figure, answers()), validation.size(len(PAIRS))
    if name == "validation-pairs":
        return lambda figure: validation._draw_pairs(figure, answers()), validation.PAIRS_SIZE
    (sweep,) = sweeps([name])
    data = json.loads((DOCS / f"{name}.json").read_text(encoding="utf-8"))["data"]
    return lambda figure: sweep.draw(figure, data), sweep.size


@cache
def draw_figure(name: str, folder: Path) -> Figure:
    """The figure as it is drawn, and its files."""
    draw, size = how(name)
    figures: list[Figure] = []
    save_figure(lambda figure: (draw(figure), figures.append(figure)), size, folder / name)
    return figures[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("figures")


def same_version(name: str) -> bool:
    """Whether this matplotlib drew the committed picture: another one lays letters out otherwise."""
    with Image.open(DOCS / f"{name}.png") as picture:
        return f"version{matplotlib.__version__}," in picture.info["Software"]


def words(svg: Path) -> list[str]:
    """What a picture says: matplotlib writes each text as a comment before its letters."""
    return re.findall(r"<!-- (.*?) -->", svg.read_text(encoding="utf-8"), re.DOTALL)


pytestmark = pytest.mark.evidence
every_figure = pytest.mark.parametrize("name", [*NAMES, "validation", "validation-pairs"])


@every_figure
def test_a_figure_is_the_committed_picture(name: str, folder: Path) -> None:
    draw_figure(name, folder)
    _same(name, folder)


@pytest.mark.parametrize("name", ["benchmarks", "engines"])
def test_a_figure_of_saved_results_is_the_committed_picture(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scripts that write a page of the docs draw its figure from the results in benchmarks/."""
    monkeypatch.setattr(sys, "path", [str(SCRIPTS), *sys.path])
    script = runpy.run_path(str(SCRIPTS / f"_{name}_page.py"))
    data = (
        script["curves"]()
        if name == "benchmarks"
        else list(script["figure_rows"](script["answers"](), script["DRAWN_K"]))
    )
    script["write_figure"](data, folder / name)
    _same(name, folder)


def _same(name: str, folder: Path) -> None:
    if not same_version(name):
        pytest.skip(f"{name}.png was drawn by another matplotlib than {matplotlib.__version__}")
    assert compare_images(str(DOCS / f"{name}.png"), str(folder / f"{name}.png"), TOLERANCE) is None
    assert words(DOCS / f"{name}.svg") == words(folder / f"{name}.svg") != []


def test_a_moved_curve_is_seen(tmp_path: Path) -> None:
    """Negative control: one line of one of seven panels, a pixel up."""
    draw, size = how("branching")

    def moved(figure: Figure) -> None:
        draw(figure)
        ax = figure.axes[0]
        line = max(ax.get_lines(), key=lambda line: len(line.get_xdata()))
        low, high = ax.get_ylim()
        line.set_ydata(np.asarray(line.get_ydata()) + (high - low) / ax.get_window_extent().height)

    save_figure(draw, size, tmp_path / "as_it_is")
    save_figure(moved, size, tmp_path / "moved")
    differences = [compare_images(str(DOCS / "branching.png"), str(tmp_path / f"{name}.png"), TOLERANCE)
             for name in ("as_it_is", "moved")]  # fmt: skip
    assert differences[1] is not None
    assert differences[0] is None or not same_version("branching")


def texts(figure: Figure) -> list[Text]:
    """The words that are seen."""
    with matplotlib.style.context(style_sheet()):
        figure.draw_without_rendering()
    ticks = [(axis, tick) for ax in figure.findobj(Axes) for axis in (ax.xaxis, ax.yaxis) for tick in axis.majorTicks]
    beyond = {tick.label1 for axis, tick in ticks if not _shown(axis, tick)}
    words = [each for each in figure.findobj(Text) if each.get_visible() and each.get_text().strip()]
    return [each for each in words if each not in beyond]


def _shown(axis: Axis, tick: Tick) -> bool:
    low, high = sorted(axis.get_view_interval())
    return axis.get_visible() and axis.axes.axison and low <= tick.get_loc() <= high


def overlaps(figure: Figure) -> list[tuple[str, str]]:
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts(figure) if not text.get_rotation() % 90]
    return [(a, b) for (a, one), (b, other) in combinations(boxes, 2) if one.padded(-TOUCHING).overlaps(other)]


@every_figure
def test_a_figure_can_be_read(name: str, folder: Path) -> None:
    """As wide as a page at most, no small letters, nothing cut off, no words on words."""
    figure = draw_figure(name, folder)
    assert figure.get_size_inches()[0] <= WIDTH
    assert {text.get_text() for text in texts(figure) if text.get_fontsize() < SMALLEST} == set()
    page = figure.bbox.padded(TOUCHING)
    boxes = {text.get_text(): text.get_window_extent() for text in texts(figure)}
    assert {word for word, box in boxes.items() if not all(page.contains(*corner) for corner in box.corners())} == set()
    assert overlaps(figure) == []


def test_words_on_words_are_seen() -> None:
    """Negative control."""
    figure = Figure()
    figure.text(0.5, 0.5, "one")
    figure.text(0.5, 0.51, "other")
    assert overlaps(figure) == [("one", "other")]
