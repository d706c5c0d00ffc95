"""Simulated numbers as dots with their intervals, exact ones as lines; the style sheet decides the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spectheory.plots.style import Axes, LineEnd, Look

Estimate = dict[str, Any]
"""With ``low``, ``best`` and ``high``."""


def best(seen: Sequence[Estimate]) -> list[float]:
    """The values of estimates, without their intervals."""
    return [each["best"] for each in seen]


def dots(
    ax: Axes,
    x: Sequence[Any],
    seen: Sequence[Estimate],
    look: Look,
    *,
    filled: bool = True,
    size: float = 4,
    cap: float = 2,
    clip: bool = True,
) -> None:
    """Draw estimates over x, with a bar from low to high; where x are estimates too they get bars of their own.

    Without `clip` a dot on the frame is drawn whole.
    """
    estimated = any(isinstance(at, dict) for at in x)
    ax.errorbar(
        best(x) if estimated else x,
        best(seen),
        _reaches(seen),
        _reaches(x) if estimated else None,
        fmt=look.marker,
        color=look.colour,
        markerfacecolor=look.colour if filled else "white",
        markersize=size,
        linewidth=1,
        capsize=cap,
        clip_on=clip,
        zorder=3,
    )


def _reaches(seen: Sequence[Estimate]) -> list[list[float]]:
    return [[each["best"] - each["low"] for each in seen], [each["high"] - each["best"] for each in seen]]


def curve(
    ax: Axes,
    x: Sequence[float],
    line: Sequence[float],
    look: Look,
    name: str = "",
    *,
    seen: Sequence[Estimate] = (),
    at: Sequence[float] | None = None,
    style: str = "-",
    width: float | None = None,
    **how: Any,
) -> LineEnd:
    """Draw a line over x, and dots over `at`, which is x if nothing else is said; the line's end with its name."""
    ax.plot(x, line, style, color=look.colour, linewidth=width)
    if seen:
        dots(ax, x if at is None else at, seen, look, **how)
    return x[-1], line[-1], name, look.colour
