"""Simulated numbers as dots with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spectheory.plots.style import Axes

Estimate = dict[str, Any]
"""With ``low``, ``best`` and ``high``."""


def dots(
    ax: Axes,
    x: Sequence[Any],
    seen: Sequence[Estimate],
    colour: str,
    *,
    marker: str = "o",
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
        [at["best"] for at in x] if estimated else x,
        [each["best"] for each in seen],
        _reaches(seen),
        _reaches(x) if estimated else None,
        fmt=marker,
        color=colour,
        markerfacecolor=colour if filled else "white",
        markersize=size,
        linewidth=1,
        capsize=cap,
        clip_on=clip,
        zorder=3,
    )


def _reaches(seen: Sequence[Estimate]) -> list[list[float]]:
    return [[each["best"] - each["low"] for each in seen], [each["high"] - each["best"] for each in seen]]
