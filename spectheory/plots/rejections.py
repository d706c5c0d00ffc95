"""Rejections on yin2024's test bed: running means settling at Y1, their error, the profile by position."""

from __future__ import annotations

from typing import Any

from spectheory.plots.line_ends import name_ends
from spectheory.plots.observed import dots
from spectheory.plots.style import BLUE, GREY, ORANGE, Axes, Figure, Look, note, plain_axes, titled

LOOKS = (Look(BLUE, "o"), Look(ORANGE, "D"))
"""One for each length of text."""


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Three panels: running means, their distance from the exact number, rejections by position."""
    grid = figure.add_gridspec(2, 2, height_ratios=(1.1, 1))
    means, errors, profile = (figure.add_subplot(place) for place in (grid[0, 0], grid[0, 1], grid[1, :]))
    for rows, look in zip(data["lengths"], LOOKS, strict=True):
        draw_means(means, data["checkpoints"], rows, look)
        draw_errors(errors, data["checkpoints"], rows, look)
    runs = len(data["lengths"][0]["runs"])
    titled(means, f"a  Running means of {runs} runs, and the exact mean Y1")
    means.set_ylabel("rejections per text")
    means.set_ylim(0, 1.35 * data["lengths"][-1]["expected"])
    errors.set_yscale("log")
    errors.set_ylim(min(_reach(rows)[-1] for rows in data["lengths"]) / 100, None)
    errors.set_ylabel("|running mean - Y1|, rejections")
    titled(errors, "b  Distance of the running means from Y1")
    for ax in (means, errors):
        ax.set_xscale("log")
        ax.set_xlabel("texts simulated")
        plain_axes(ax)
    draw_profile(profile, data["profile"])
    ends = zip(data["lengths"], LOOKS, strict=True)
    last = data["checkpoints"][-1]
    name_ends(errors, [(last, _reach(rows)[-1], f"95%, T = {rows['length']}", look.colour) for rows, look in ends])


def draw_means(ax: Axes, texts: list[int], rows: dict[str, Any], look: Look) -> None:
    """Running means of one length of text, and their 95% band."""
    low, high = zip(*rows["band"], strict=True)
    ax.fill_between(texts, low, high, color=GREY, alpha=0.15, linewidth=0)
    ax.axhline(rows["expected"], color=GREY, linewidth=1)
    for run in rows["runs"]:
        ax.plot(texts, run["means"], f"{look.marker}-", color=look.colour, markersize=2.5, linewidth=0.6)
    text = f"T = {rows['length']} tokens: Y1 = {rows['expected']:.3f}, exact"
    note(ax, text, (texts[-1], rows["expected"]), (0, 17), look.colour, 8.5, ha="right")
    if rows["length"] == 50:
        note(ax, "grey: holds at least 95% of running\nmeans, at each number of texts", (texts[1], low[1]), (26, -18))


def draw_errors(ax: Axes, texts: list[int], rows: dict[str, Any], look: Look) -> None:
    """Distances of the runs, and the reach of the band as a line; a distance below the plot is left out."""
    ax.plot(texts, _reach(rows), color=look.colour)
    for run in rows["runs"]:
        away = [abs(mean - rows["expected"]) for mean in run["means"]]
        ax.plot(texts, away, look.marker, color=look.colour, markersize=3, alpha=0.7, markeredgewidth=0)


def _reach(rows: dict[str, Any]) -> list[float]:
    """How far from Y1 the band goes."""
    return [max(rows["expected"] - low, high - rows["expected"]) for low, high in rows["band"]]


def draw_profile(ax: Axes, profile: dict[str, Any]) -> None:
    """Probability of a rejection by position."""
    positions = range(1, len(profile["exact"]) + 1)
    ax.step(positions, profile["exact"], where="mid", color=GREY, linewidth=0.9)
    dots(ax, positions, profile["observed"], BLUE)
    ax.set_ylim(0, None)
    ax.set_xlabel("position in the text")
    ax.set_ylabel("probability of a rejection")
    titled(ax, f"c  Where rejections fall in {profile['texts']:,} texts of T = 50, on the exact mean TV (grey)")
    plain_axes(ax)
