"""The best chain length and its speed-up against the batch size, a line for each context length."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spectheory.deployment import BatchChoice
from spectheory.plots.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    SKY,
    YELLOW,
    Label,
    name_ends,
    plain_axes,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINES = (BLUE, ORANGE, GREEN, PINK, SKY, YELLOW)


def batches(figure: Figure, choices: Sequence[BatchChoice]) -> None:
    """Best k on the left (0: plain decoding), its speed-up on the right."""
    lengths, speedups = figure.subplots(1, 2)
    labels: list[Label] = []
    for place, context in enumerate(sorted({choice.context for choice in choices})):
        line = [choice for choice in choices if choice.context == context]
        at, colour = [choice.batch for choice in line], _LINES[place % len(_LINES)]
        lengths.plot(at, [choice.k for choice in line], "o-", color=colour, markersize=4)
        speedups.plot(at, [choice.speedup for choice in line], "o-", color=colour, markersize=4)
        labels.append((at[-1], line[-1].speedup, f"context {context}", colour))
    ticks = sorted({choice.batch for choice in choices})
    for ax in (lengths, speedups):
        ax.set_xscale("log", base=2)
        ax.set_xticks(ticks, [str(batch) for batch in ticks])
        ax.minorticks_off()
        ax.set_xlabel("sequences decoded together")
        plain_axes(ax)
    lengths.set_ylim(bottom=-0.2)
    lengths.set_title("Best k; 0: plain decoding", loc="left", fontsize=10)
    speedups.axhline(1.0, color=GREY, linewidth=1.0, linestyle=":")
    speedups.set_title("Speed-up there, by the roofline", loc="left", fontsize=10)
    name_ends(speedups, labels)


def write_batches(choices: Sequence[BatchChoice], folder: Path) -> list[Path]:
    """Write ``batches`` as PNG and SVG; return the paths.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    OutputError
        If the folder cannot be written.
    """
    return save_figure(lambda figure: batches(figure, choices), (8.4, 3.6), folder / "batches")
