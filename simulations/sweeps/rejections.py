"""Rejections on yin2024's test bed: running means against Y1, and the profile by position."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

from simulations.counts import Mean, Share
from simulations.draws import Floats
from simulations.models.pairs import Pair, chains_of
from simulations.sweeps.base import Ask, Data, Scale, Tallies, ask
from simulations.sweeps.curves import curve, dots
from spectheory.limits import expected_rejections, rejection_profile
from spectheory.plots.style import BLUE, GREY, ORANGE, Axes, Figure, LineEnd, Look, name_ends, note

TITLE = "Rejections against theory on yin2024's seven-state chains"
STATEMENTS = ("Y1",)
SIZE = (9.0, 6.4)


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
    looks, rows = checkpoints(scale), []
    for length in LENGTHS:
        chains, runs = chains_of(recipe(length)), [tallies[f"T = {length}, run {run + 1}"] for run in range(RUNS)]
        rows.append(
            {
                "length": length,
                "expected": float(expected_rejections(*chains)),
                "band": band(law_of_rejections(chains), looks),
                "runs": [
                    {
                        "means": [int(n) / texts for n, texts in zip(run.counts["running"], looks, strict=True)],
                        "end": vars(Mean("rejections", 0, length).estimate(run)),
                    }
                    for run in runs
                ],
            }
        )
    return {
        "checkpoints": looks,
        "lengths": rows,
        "profile": {
            "texts": tallies["profile"].trials,
            "exact": rejection_profile(*chains_of(recipe(LENGTHS[0]))).tolist(),
            "observed": [vars(Share("positions", n).estimate(tallies["profile"])) for n in range(LENGTHS[0])],
        },
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


def draw(figure: Figure, data: Data) -> None:
    """Three panels: running means, their distance from the exact number, rejections by position."""
    grid = figure.add_gridspec(2, 2, height_ratios=(1.3, 1))
    means, errors, profile = (figure.add_subplot(place) for place in (grid[0, 0], grid[0, 1], grid[1, :]))
    texts, ends = data["checkpoints"], []
    for rows, look in zip(data["lengths"], LOOKS, strict=True):
        draw_means(means, texts, rows, look)
        ends.append(draw_errors(errors, texts, rows, look))
    for ax in (means, errors):
        ax.set(xscale="log", xlabel="texts simulated")
    runs, highest = len(data["lengths"][0]["runs"]), data["lengths"][-1]["expected"]
    means.set(title=f"a  Running means of {runs} runs, and the exact mean Y1", ylabel="rejections per text")
    means.set_ylim(0, 1.35 * highest)
    errors.set(title="b  Distance of the running means from Y1", ylabel="|running mean - Y1|, rejections")
    errors.set(yscale="log", ylim=(min(reach for _, reach, _, _ in ends) / 100, None))
    draw_profile(profile, data["profile"])
    name_ends(errors, ends)


def draw_means(ax: Axes, texts: list[int], rows: Data, look: Look) -> None:
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


def draw_errors(ax: Axes, texts: list[int], rows: Data, look: Look) -> LineEnd:
    """Distances of the runs, and the reach of the band as a line; a distance below the plot is left out."""
    reach = [max(rows["expected"] - low, high - rows["expected"]) for low, high in rows["band"]]
    end = curve(ax, texts, reach, look, f"95%, T = {rows['length']}")
    for run in rows["runs"]:
        away = [abs(mean - rows["expected"]) for mean in run["means"]]
        ax.plot(texts, away, look.marker, color=look.colour, markersize=3, alpha=0.7, markeredgewidth=0)
    return end


def draw_profile(ax: Axes, profile: Data) -> None:
    """Probability of a rejection by position."""
    positions = range(1, len(profile["exact"]) + 1)
    ax.step(positions, profile["exact"], where="mid", color=GREY, linewidth=0.9)
    dots(ax, positions, profile["observed"], LOOKS[0])
    title = f"c  Where rejections fall in {profile['texts']:,} texts of T = 50, on the exact mean TV (grey)"
    ax.set(title=title, xlabel="position in the text", ylabel="probability of a rejection")
