"""What figures share: colours and markers for all kinds of colour vision, one style sheet, titles, files, and names at
the ends of lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectheory.files import write_whole
from spectheory.verification import Rule
from spectheory.verification.registry import BUILT_IN

if TYPE_CHECKING:
    from matplotlib.artist import Artist as Artist
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:
    Artist = Axes = Figure = Any  # for annotations alone: matplotlib is imported where a figure is made

PALETTE = {
    "blue": "#0072B2",
    "orange": "#D55E00",
    "green": "#009E73",
    "pink": "#CC79A7",
    "yellow": "#E69F00",
    "sky": "#56B4E9",
    "indigo": "#332288",
    "wine": "#882255",
    "brown": "#6B3E00",
    "black": "#000000",
}
"""Okabe and Ito's palette without its light yellow, and three dark hues, by the names that rules give."""
BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, INDIGO, WINE, BROWN, BLACK = PALETTE.values()
GREY = "#555555"
"""For limits and formulas that are compared with."""

MARKERS = tuple("os^DvPp<>Xh*d8H1234")
"""One for each built-in rule, in their order, and some to spare."""

WIDTH = 9.0
"""Inches of the widest figure: a page shows it in full size, so that fonts are as large as they say."""


class Look(NamedTuple):
    """How a rule is drawn."""

    colour: str
    marker: str


DISTINCT = tuple(map(Look, PALETTE.values(), MARKERS))
"""Looks of what is no rule: of drafts, contexts, logs or pairs, one after the other."""


def _free(wish: str, all_of_them: Iterable[str], taken: set[str]) -> str:
    """The wish if nothing has it, else the first that nothing has; the wish or the first where all are taken."""
    choices = list(all_of_them)
    return next((each for each in (wish, *choices) if each and each not in taken), wish or choices[0])


def looks_of(rules: Iterable[Rule]) -> dict[str, Look]:
    """Colour and marker of rules that are drawn together, by name: each its own as long as there are enough.

    A rule that comes again, as with every k of it, is one.
    """
    wishes = {rule.name: marker for rule, marker in zip(BUILT_IN, MARKERS, strict=False)}
    looks: dict[str, Look] = {}
    distinct = {rule.name: rule for rule in rules}.values()
    for rule in sorted(distinct, key=lambda rule: not rule.colour):  # those without a colour take what is left
        colour = _free(PALETTE.get(rule.colour, ""), PALETTE.values(), {look.colour for look in looks.values()})
        marker = _free(wishes.get(rule.name, ""), MARKERS, {look.marker for look in looks.values()})
        looks[rule.name] = Look(colour, marker)
    return looks


LOOKS = {rule.name: looks_of([rule])[rule.name] for rule in BUILT_IN}
"""How each built-in rule is drawn; rules that are hardly drawn together may share a colour, never a marker."""


def style_sheet() -> dict[str, Any]:
    """The settings of this project's figures, for ``matplotlib.style.use`` or ``matplotlib.style.context``.

    Nothing here sets them globally: your own figures have them if you ask for them.

    Examples
    --------
    >>> import matplotlib.style
    >>> with matplotlib.style.context(style_sheet()):
    ...     matplotlib.rcParams["axes.titlelocation"]
    'left'
    """
    from cycler import cycler

    sizes = {"font.size": 9, "axes.titlesize": 9.5, "axes.labelsize": 9, "figure.labelsize": 8.5}
    small = dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 8.5)
    return {
        **sizes,
        **small,
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.prop_cycle": cycler(color=list(PALETTE.values())),
        "legend.frameon": False,
        "lines.linewidth": 1.4,
        "lines.markersize": 4.5,
        "svg.hashsalt": "spectheory",
    }


def plain_axes(ax: Axes) -> None:
    """Leave out the frame's top and right."""
    ax.spines[["top", "right"]].set_visible(False)


def titled(ax: Axes, text: str, size: float = 9.5) -> None:
    """Write a title on the left."""
    ax.set_title(text, loc="left", fontsize=size)


def note(
    ax: Axes,
    text: str,
    at: tuple[Any, Any],
    shift: tuple[float, float],
    colour: str = GREY,
    size: float = 8,
    **how: Any,
) -> None:
    """Write words beside a point, so many typographic points away."""
    ax.annotate(text, at, xytext=shift, textcoords="offset points", color=colour, fontsize=size, **how)


def caption(figure: Figure, text: str, size: float = 8.5) -> None:
    """Write what all panels share below them."""
    figure.supxlabel(text, fontsize=size, color=GREY)


def doubling(ax: Axes, ticks: Sequence[int], form: str = "") -> None:
    """A logarithmic axis of numbers, with a tick at each of some."""
    ax.set_xscale("log", base=2)
    ax.set_xticks(ticks, [f"{number:{form}}" for number in ticks])
    ax.minorticks_off()


def _new_figure(size: tuple[float, float]) -> Figure:
    """An empty figure that makes room for what is written next to its axes."""
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def whole_ticks() -> Any:
    """Ticks of an axis at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True)


def drawable(words: str) -> str:
    r"""Names as a font has them; matplotlib would read dollar signs as mathematics.

    Examples
    --------
    >>> print(drawable("$a$"), drawable("b\x1b"))
    \$a\$ b·
    """
    return "".join(r"\$" if letter == "$" else letter if letter.isprintable() else "·" for letter in words)


def save_figure(draw: Callable[[Figure], Any], size: tuple[float, float], path: Path) -> list[Path]:
    """Draw a figure and write it as PNG and SVG, each whole or not at all; `path` is without suffix.

    The same data give the same files: no date, no random ids.
    """
    from matplotlib.style import context

    written = []
    with context(style_sheet()):
        figure = _new_figure(size)
        draw(figure)
        for suffix in ("png", "svg"):
            file = path.with_suffix(f".{suffix}")
            metadata = {"Date": None} if suffix == "svg" else None
            write_whole(file, partial(figure.savefig, format=suffix, dpi=160, metadata=metadata))
            written.append(file)
    return written


# Names at the ends of lines

LineEnd = tuple[float, float, str, str]
"""Where a line ends, its name and its colour."""

_LINE = 1.3
"""Height of a line of text, in font sizes."""


def name_ends(ax: Axes, labels: Sequence[LineEnd], *, size: float = 8) -> None:
    """Write each line's name to the right of the axes, with a leader to its end, moved apart so that no two overlap.

    Call it when limits and scales are set; names are placed in the axes' own coordinates, on any scale. Constrained
    layout makes room for them.
    """
    plain_axes(ax)
    ax.figure.canvas.figure.draw_without_rendering()  # lays out, so that heights are known
    to_axes = ax.transData + ax.transAxes.inverted()
    ends = sorted(
        (float(to_axes.transform((x, y))[1]), float(to_axes.transform((x, y))[0]), t, c) for x, y, t, c in labels
    )
    line = _LINE * size * ax.figure.dpi / 72 / max(ax.get_window_extent().height, 1.0)
    heights = _apart([y for y, *_ in ends], [line * (1 + text.count("\n")) for *_, text, _ in ends])
    for (y, x, text, colour), height in zip(ends, heights, strict=True):
        leader: dict[str, Any] = {"color": colour, "linewidth": 0.7, "clip_on": False, "scalex": False, "scaley": False}
        ax.plot([x, 1.01, 1.05], [y, height, height], transform=ax.transAxes, **leader)
        ax.annotate(
            text,
            (1.05, height),
            xycoords="axes fraction",
            xytext=(2, 0),
            textcoords="offset points",
            color=colour,
            fontsize=size,
            va="center",
            annotation_clip=False,
        )


def _apart(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Middles of boxes in ascending order: as near to those wanted as boxes of these heights can be.

    Boxes that would overlap stand together around the mean of their places.

    Examples
    --------
    >>> _apart([0.1, 0.5, 0.5], [0.2, 0.2, 0.2])
    [0.1, 0.4, 0.6]
    """
    from scipy.optimize import isotonic_regression

    middles = np.cumsum(heights) - np.array(heights) / 2  # of a pile of all boxes
    return (isotonic_regression(np.array(wanted) - middles).x + middles).round(9).tolist()


def key(figure: Figure, entries: Iterable[tuple[str, dict[str, Any]]], columns: int) -> None:
    """The names of what panels share, above them: each beside a line drawn as `entries` say."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], label=name, **how) for name, how in entries]
    figure.legend(handles=lines, loc="outside upper center", ncols=columns, handlelength=2.4, columnspacing=1.4)
