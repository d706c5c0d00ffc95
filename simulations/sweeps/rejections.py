"""Rejections on yin2024's test bed: running means against Y1, and the profile by position."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import logsumexp

from simulations.counts.quantities import Mean, Share
from simulations.models.recipes import Pair, chains_of
from simulations.sweeps.base import Ask, Data, Scale, Sweep, Tallies, ask
from simulations.sweeps.observed import dots
from spectheory.limits import expected_rejections, rejection_profile
from spectheory.plots.line_ends import name_ends
from spectheory.plots.style import BLUE, GREY, ORANGE, Axes, Figure, Look, note, plain_axes, titled

Floats = NDArray[np.float64]

LENGTHS = (50, 100)
RUNS = 4
MISS = 0.05
STEEPEST = 200.0
"""Where the tilt of a law of whole numbers stands for infinity."""


def recipe(length: int) -> Data:
    """The test bed for texts of so many tokens, as a task's parameters."""
    return {"chains": "yin2024", "length": length}


def checkpoints(scale: Scale) -> list[int]:
    """Numbers of texts at which a run is looked at: 1, 2, 5, 10, ..."""
    decades = scale.pick(5, 7)
    return [step * 10**d for d in range(decades) for step in (1, 2, 5)] + [10**decades]


def asks(scale: Scale) -> tuple[Ask, ...]:
    """Independent runs, a batch each, and many texts for the profile."""
    looks = checkpoints(scale)
    running = tuple(
        ask(
            f"T = {length}, run {run + 1}",
            "rejections-running",
            {**recipe(length), "checkpoints": looks, "run": run},
            scale,
            trials=looks[-1],
            batch=looks[-1],
        )
        for length in LENGTHS
        for run in range(RUNS)
    )
    return (*running, ask("profile", "rejections", recipe(LENGTHS[0]), scale, trials=scale.pick(1_600_000, 16_000_000)))


def data(scale: Scale, tallies: Tallies) -> Data:
    """Running means with the band about Y1, and shares by position beside the TV there."""
    looks = checkpoints(scale)
    return {
        "checkpoints": looks,
        "lengths": [
            {
                "length": length,
                "expected": float(expected_rejections(*chains_of(recipe(length)))),
                "band": band(law_of_rejections(chains_of(recipe(length))), looks),
                "runs": [_run(tallies[f"T = {length}, run {run + 1}"], looks, length) for run in range(RUNS)],
            }
            for length in LENGTHS
        ],
        "profile": {
            "texts": tallies["profile"].trials,
            "exact": rejection_profile(*chains_of(recipe(LENGTHS[0]))).tolist(),
            "observed": [vars(Share("positions", n).estimate(tallies["profile"])) for n in range(LENGTHS[0])],
        },
    }


def _run(tally: Any, looks: list[int], length: int) -> Data:
    return {
        "means": [int(seen) / texts for seen, texts in zip(tally.counts["running"], looks, strict=True)],
        "end": vars(Mean("rejections", 0, length).estimate(tally)),
    }


def law_of_rejections(pair: Pair) -> Floats:
    """Exact law ``[T + 1]`` of the rejections of a text: the token and the number so far are a Markov chain.

    After x the next token y comes accepted with mass min(p, q), recovered with mass (p - q)+ (A1).
    """
    law = np.zeros((pair.initial.size, len(pair.target) + 1))
    law[:, 0] = pair.initial
    for p, q in zip(pair.target, pair.draft, strict=True):
        recovered = np.maximum(p - q, 0.0).T @ law
        law = np.minimum(p, q).T @ law
        law[:, 1:] += recovered[:, :-1]
    return np.asarray(law.sum(axis=0))


def band(law: Floats, texts: list[int]) -> list[list[float]]:
    """Where the mean lies with 95% probability or more, for each number of texts (Chernoff's bound).

    A side is left with probability at most exp(-n I), I the law's rate function; it ends where this is 2.5%.
    """
    return [[_edge(law, math.log(2 / MISS) / n, sign) for sign in (-1.0, 1.0)] for n in texts]


def _edge(law: Floats, rate: float, sign: float) -> float:
    """The mean of the law tilted until its information about the law is `rate`; the last value if none has as much."""
    values = np.flatnonzero(law).astype(np.float64)
    logs = np.log(law[law > 0])

    def tilted(tilt: float) -> tuple[float, float]:
        norm = float(logsumexp(logs + tilt * values))
        mean = float(np.exp(logs + tilt * values - norm) @ values)
        return mean, tilt * mean - norm

    if tilted(sign * STEEPEST)[1] <= rate:
        return float(values[-1] if sign > 0 else values[0])
    return tilted(sign * float(brentq(lambda t: tilted(sign * t)[1] - rate, 0.0, STEEPEST, xtol=1e-14)))[0]


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


SWEEP = Sweep(
    "rejections", "Rejections against theory on yin2024's seven-state chains", ("Y1",), asks, data, draw, (9.0, 6.4)
)
