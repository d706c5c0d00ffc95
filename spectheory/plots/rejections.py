"""Rejections on yin2024's test bed: running means settling at Y1, their error, the profile by position."""

from __future__ import annotations

from typing import Any

from spectheory.plots.observed import dots
from spectheory.plots.style import BLUE, GREY, ORANGE, Axes, Figure, name_ends, note, plain_axes, titled


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Three panels: running means, their distance from the exact number, rejections by position."""
    means, errors, profile = figure.subplots(1, 3, width_ratios=(1.15, 1, 1.15))
    for rows, colour in zip(data["lengths"], (BLUE, ORANGE), strict=True):
        _means(means, data["checkpoints"], rows, colour)
        _errors(errors, data["checkpoints"], rows, colour)
    runs = len(data["lengths"][0]["runs"])
    titled(means, f"Running mean of {runs} runs settles at Y1")
    means.set_ylabel("rejections per text")
    means.set_ylim(0, 1.35 * data["lengths"][-1]["expected"])
    errors.set_yscale("log")
    errors.set_ylim(min(_reach(rows)[-1] for rows in data["lengths"]) / 100, None)
    errors.set_ylabel("|running mean - Y1|, rejections")
    titled(errors, "Its error; 95% or more are below the line")
    for ax in (means, errors):
        ax.set_xscale("log")
        ax.set_xlabel("texts simulated")
        plain_axes(ax)
    _profile(profile, data["profile"])
    ends = zip(data["lengths"], (BLUE, ORANGE), strict=True)
    name_ends(errors, [(data["checkpoints"][-1], _reach(rows)[-1], f"T = {rows['length']}", c) for rows, c in ends])


def _means(ax: Axes, texts: list[int], rows: dict[str, Any], colour: str) -> None:
    low, high = zip(*rows["band"], strict=True)
    ax.fill_between(texts, low, high, color=GREY, alpha=0.15, linewidth=0)
    ax.axhline(rows["expected"], color=GREY, linewidth=1)
    for run in rows["runs"]:
        ax.plot(texts, run["means"], "o-", color=colour, markersize=2.2, linewidth=0.6)
    text = f"T = {rows['length']} tokens: Y1 = {rows['expected']:.3f}, exact"
    note(ax, text, (texts[-1], rows["expected"]), (0, 17), colour, 8.5, ha="right")
    if rows["length"] == 50:
        note(ax, "grey: holds 95% of running means\nor more, at each number of texts", (texts[1], low[1]), (26, -18))


def _errors(ax: Axes, texts: list[int], rows: dict[str, Any], colour: str) -> None:
    """Distances of the runs, and the reach of the band as a line; a distance below the plot is left out."""
    ax.plot(texts, _reach(rows), color=colour, linewidth=1.2)
    for run in rows["runs"]:
        away = [abs(mean - rows["expected"]) for mean in run["means"]]
        ax.plot(texts, away, "o", color=colour, markersize=2.6, alpha=0.7, markeredgewidth=0)


def _reach(rows: dict[str, Any]) -> list[float]:
    """How far from Y1 the band goes."""
    return [max(rows["expected"] - low, high - rows["expected"]) for low, high in rows["band"]]


def _profile(ax: Axes, profile: dict[str, Any]) -> None:
    positions = range(1, len(profile["exact"]) + 1)
    ax.step(positions, profile["exact"], where="mid", color=GREY, linewidth=0.9)
    dots(ax, positions, profile["observed"], BLUE, size=3)
    ax.set_ylim(0, None)
    ax.set_xlabel(f"position, T = 50 ({profile['texts']:,} texts)")
    ax.set_ylabel("probability of a rejection there")
    titled(ax, "By position, on the exact mean TV (grey)")
    plain_axes(ax)
