"""Time of a race: lazy, dense and numpy's, against the vocabulary and against the largest p/q (R2, A2)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simulations.counts import Mean, Tally
from simulations.simulators.timing import language_pair
from simulations.sweeps.base import Ask, Data, Scale, Tallies, ask
from simulations.sweeps.curves import best, curve
from spectheory.plots.style import BLUE, GREEN, ORANGE, PINK, Axes, Figure, LineEnd, Look, caption, name_ends, note

TITLE = "Time of a race: target first against a clock for every token"
STATEMENTS = ("R2", "A2")
SIZE = (9.0, 4.4)
ALONE = True

NOISE, MAX_RANK = 0.5, 16
VOCABULARIES = (2**7, 2**9, 2**11, 2**13, 2**15, 2**17)
LARGEST = VOCABULARIES[-1]
RATIOS = (1e3, 1e4, 1e6, 1e8, 1e10, 1e300)
IN_DRAFT_ORDER = 1e6
"""Arrival by arrival in the draft's order a race takes so many of them: beyond, seconds."""
CHECKED = 8
"""Tokens of the pair at which the three races are compared with theory, a token of p/q 1e4 among them."""


def races_of(kernel: str, vocabulary: int, ratio: float | None) -> int:
    """Races of a timed repetition: some milliseconds of work, and several times that of the tables."""
    if kernel == "lazy":
        return 20_000 + 2 * vocabulary
    if kernel == "poisson":
        return max(round(2e6 / ratio), 8) if ratio else 20_000
    return max(2**20 // vocabulary, 8)


def timing(kernel: str, vocabulary: int, ratio: float | None, scale: Scale) -> Ask:
    """The simulation of one point; its repetitions follow one another in one batch."""
    parameters = {
        "kernel": kernel,
        "vocabulary": vocabulary,
        "noise": NOISE,
        "worst_ratio": ratio,
        "races": races_of(kernel, vocabulary, ratio),
        "max_rank": MAX_RANK,
    }
    trials = scale.pick(8, 60)
    return ask(label_of(kernel, vocabulary, ratio), "race-timing", parameters, scale, trials=trials, batch=trials)


def label_of(kernel: str, vocabulary: int, ratio: float | None) -> str:
    """The name of a point."""
    return f"{kernel}, V = {vocabulary}" + (f", p/q {ratio:.0e}" if ratio else "")


def points() -> list[tuple[str, int, float | None]]:
    """Kernel, vocabulary and worst ratio of every point."""
    by_size = [(kernel, v, None) for kernel in ("numpy", "dense", "lazy") for v in VOCABULARIES]
    by_ratio = [(kernel, LARGEST, ratio) for kernel in ("numpy", "dense", "lazy") for ratio in RATIOS]
    in_order = [("poisson", LARGEST, ratio) for ratio in (None, *RATIOS) if (ratio or 0) <= IN_DRAFT_ORDER]
    return [*by_size, *by_ratio, *in_order]


def asks(scale: Scale) -> tuple[Ask, ...]:
    """First that the three races have one law, then their times."""
    target, draft = language_pair(CHECKED, 1.0, None)
    draft[np.argmin(target)] = target.min() / 1e4
    draft /= draft.sum()
    parameters = {"target": target, "draft": draft, "max_rank": CHECKED}
    trials = {"race": scale.pick(200_000, 4_000_000), "race-dense": scale.pick(200_000, 4_000_000)}
    trials["race-numpy"] = scale.pick(20_000, 400_000)
    laws = [ask(f"law of {kind}", kind, parameters, scale, trials=number) for kind, number in trials.items()]
    return (*laws, *(timing(*point, scale) for point in points()))


def data(scale: Scale, tallies: Tallies) -> Data:
    """Seconds per race with Student's intervals, and the largest p/q of every pair."""
    pairs = {ratio: language_pair(LARGEST, NOISE, ratio) for ratio in (None, *RATIOS)}
    largest = {ratio: float(np.max(p / q)) for ratio, (p, q) in pairs.items()}
    rows: dict[str, list[dict[str, Any]]] = {"size": [], "ratio": []}
    for kernel, vocabulary, ratio in points():
        tally = tallies[label_of(kernel, vocabulary, ratio)]
        times = {"race": _seconds(tally, "nanoseconds"), "call": _seconds(tally, "call")}
        row = {"kernel": kernel, "vocabulary": vocabulary, **times}
        if ratio is None and kernel != "poisson":
            rows["size"].append(row)
        if vocabulary == LARGEST:
            rows["ratio"].append({**row, "largest_ratio": largest[ratio]})
    return {"noise": NOISE, "max_rank": MAX_RANK, "vocabulary": LARGEST, **rows}


def _seconds(tally: Tally, name: str) -> dict[str, float]:
    """Mean seconds with their 95% interval."""
    return {end: value * 1e-9 for end, value in vars(Mean(name).estimate(tally)).items() if end != "confidence"}


NAMES = {
    "numpy": ("dense, numpy", Look(ORANGE, "s")),
    "dense": ("dense", Look(BLUE, "o")),
    "lazy": ("lazy", Look(GREEN, "^")),
    "poisson": ("in draft order", Look(PINK, "D")),
}
"""What a line is called, and its look."""

FAR, GAP = 12.0, 1.5
"""Exponents beyond the first are drawn together, the second behind it."""


def draw(figure: Figure, data: Data) -> None:
    """Sizes left, ratios right, on one scale of time."""
    left, right = figure.subplots(1, 2, sharey=True)
    left.set_yscale("log")
    left.set_ylabel("CPU seconds per race")
    labels = draw_sizes(left, data), draw_ratios(right, data)
    for ax, names in zip((left, right), labels, strict=True):  # when both have their say on the common scale
        name_ends(ax, names)
    caption(
        figure,
        "Measured on one machine, one thread: read the ratios, not the seconds.\n"
        f"Ranks told apart up to {data['max_rank']}.  Markers: means, bars: 95% intervals.",
    )


def draw_sizes(ax: Axes, data: Data) -> list[LineEnd]:
    """Times against the vocabulary; the names and ends of the lines."""
    ends: list[LineEnd] = []
    for kernel in ("numpy", "dense", "lazy"):
        rows, (name, look) = [row for row in data["size"] if row["kernel"] == kernel], NAMES[kernel]
        at, races, calls = ([row[what] for row in rows] for what in ("vocabulary", "race", "call"))
        ends.append(curve(ax, at, best(races), look, name, seen=races))
        if kernel == "lazy":
            ends.append(curve(ax, at, best(calls), look, "lazy, tables\nfor one race", seen=calls, style="--"))
    ax.set_xscale("log", base=2)
    ax.set(title="Time of a race against the vocabulary", xlabel="tokens in the vocabulary, V")
    return ends


def draw_ratios(ax: Axes, data: Data) -> list[LineEnd]:
    """Times against the largest p/q, one far beyond the others drawn behind a gap; the names and ends of the lines."""
    ends: list[LineEnd] = []
    ticks: dict[float, str] = {}
    for kernel, (name, look) in NAMES.items():
        rows = sorted((r for r in data["ratio"] if r["kernel"] == kernel), key=lambda row: row["largest_ratio"])
        exponents = [math.log10(row["largest_ratio"]) for row in rows]
        at = [exponent if exponent <= FAR else FAR + GAP for exponent in exponents]
        ticks |= {place: f"$10^{{{round(e)}}}$" for place, e in zip(at, exponents, strict=True)}
        near, seen = sum(exponent <= FAR for exponent in exponents), [row["race"] for row in rows]
        curve(ax, at[:near], best(seen[:near]), look, seen=seen[:near])
        if near < len(at):
            curve(ax, at[-1:], best(seen[-1:]), look, seen=seen[-1:])
            curve(ax, at[near - 1 :], best(seen[near - 1 :]), look, style=":")
        end = (at[-1], seen[-1]["best"])
        if kernel == "poisson":
            note(ax, f"{name}:\nmax p/q arrivals", end, (8, -4), look.colour)
        else:
            ends.append((*end, name, look.colour))
    places = sorted(ticks)
    ax.set_xticks(places, _legible(places, ticks))
    title = f"Time against the largest p/q, V = {data['vocabulary']:,}"
    ax.set(title=title, xlabel="largest p/q (the last one is off the scale)")
    return ends


def _legible(places: list[float], names: dict[float, str]) -> list[str]:
    """The names of ticks; one that would touch the name before it is left out."""
    shown, before = [], -math.inf
    for place in places:
        shown.append(names[place] if place - before > GAP else "")
        before = place if shown[-1] else before
    return shown
