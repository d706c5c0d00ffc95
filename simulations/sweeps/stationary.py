"""E[X] against log P/h: a Markov target, and text whose certain stretches are long (B9)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import numpy as np

from simulations.counts import Mean
from simulations.simulators.stretch_trees import best_values, entropy_rate
from simulations.sweeps.base import Ask, Data, Scale, Tallies, ask
from simulations.sweeps.curves import curve, dots
from spectheory.plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, Figure, Look, caption, doubling, name_ends, note

TITLE = "Predicted tokens against log P/h on stationary ergodic text"
STATEMENTS = ("B9", "B9/stretches")
SIZE = (9.0, 4.2)

CAPACITIES = [1, 4, 16, 64, 256, 1024, 4096]
LINE = [1 << n for n in range(1, 17)]
"""Capacities of the lines."""

SHARES = (0.125, 0.25, 0.4)
"""r: below 1/4 the mean remaining stretch is finite; at 1/4 it grows like log P, above like a power of P."""

CHAIN = ((0.9, 0.1), (0.4, 0.6))
"""What follows each token of the Markov target."""


def asks(scale: Scale) -> tuple[Ask, ...]:
    """Random starts for every r."""
    trials = scale.pick(4000, 100_000)
    parameters = [{"r": r, "capacities": CAPACITIES} for r in SHARES]
    return tuple(ask(f"r = {each['r']:g}", "stretch-trees", each, scale, trials=trials) for each in parameters)


def data(scale: Scale, tallies: Tallies) -> Data:
    """Dots where text was drawn, lines of the exact value."""
    labels, stretches = [one.label for one in asks(scale)], []
    for r, label in zip(SHARES, labels, strict=True):
        seen = [vars(Mean(f"P={capacity}").estimate(tallies[label])) for capacity in CAPACITIES]
        stretches.append({"r": r, "h": entropy_rate(r), "seen": seen, "value": best_values(r, LINE)})
    return {
        "capacities": CAPACITIES,
        "line": LINE,
        "trials": tallies[labels[0]].trials,
        "stretches": stretches,
        "markov": {"rows": [list(row) for row in CHAIN], "h": chain_rate(CHAIN), "value": chain_values(CHAIN, LINE)},
    }


def chain_rate(rows: Sequence[Sequence[float]]) -> float:
    """Entropy rate of a chain on two tokens, nats."""
    return sum(share * -sum(p * math.log(p) for p in row) for share, row in zip(_shares(rows), rows, strict=True))


def chain_values(rows: Sequence[Sequence[float]], capacities: Sequence[int]) -> list[float]:
    """E[X] of the best trees after a random token of the chain."""
    totals = [np.cumsum(_heaviest(rows, state, capacities[-1])) for state in range(len(rows))]
    return [
        float(sum(share * total[capacity - 1] for share, total in zip(_shares(rows), totals, strict=True)))
        for capacity in capacities
    ]


def _shares(rows: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The stationary law."""
    away, back = rows[0][1], rows[1][0]
    return back / (away + back), away / (away + back)


def _heaviest(rows: Sequence[Sequence[float]], state: int, capacity: int) -> list[float]:
    waiting = [(-share, token) for token, share in enumerate(rows[state])]
    heapq.heapify(waiting)
    heaviest: list[float] = []
    while len(heaviest) < capacity:
        weight, at = heapq.heappop(waiting)
        heaviest.append(-weight)
        for token, share in enumerate(rows[at]):
            heapq.heappush(waiting, (weight * share, token))
    return heaviest


LOOKS = (Look(BLUE, "o"), Look(GREEN, "s"), Look(ORANGE, "D"))
"""One for each law of blocks."""
TICKS = [1, 16, 256, 4096, 65536]


def draw(figure: Figure, data: Data) -> None:
    """E[X]: left as a multiple of log P/h, right on logarithmic axes."""
    line, capacities = data["line"], data["capacities"]
    blocks = [(f"blocks, r = {part['r']:g}", part, look) for part, look in zip(data["stretches"], LOOKS, strict=True)]
    parts = [("Markov chain", data["markov"], Look(BLACK, "")), *blocks]
    left, right = figure.subplots(1, 2)
    doubling(left, TICKS, ",")
    left.axhline(1.0, color=GREY, linewidth=0.8, linestyle=":")
    ends = []
    for name, part, look in parts:
        multiples = [(P, value * part["h"] / math.log(P)) for P, value in zip(line, part["value"], strict=True)]
        shown = [(P, multiple) for P, multiple in multiples if multiple <= 1.7 and P > 2]
        across, up = zip(*shown, strict=True)
        end = curve(left, across, up, look, name, width=1.5)
        if len(shown) < len(line) - 1:  # leaves the panel
            note(left, name, shown[-1], (4, 2), look.colour)
        else:
            ends.append(end)
    left.set(
        title="Multiple of log P/h: 1 in the limit if stretches are short",
        xlabel="draft nodes per call, P = k",
        ylabel="E[X] as a multiple of log P/h",
        xlim=(2, line[-1]),
        ylim=(0, 1.7),
    )
    name_ends(left, ends)
    doubling(right, TICKS, ",")
    right.set_yscale("log", base=2)
    right.set_yticks([1, 4, 16, 64, 256, 1024], ["1", "4", "16", "64", "256", "1,024"])
    right.minorticks_off()
    ends = [curve(right, line, part["value"], look, name, width=1.5) for name, part, look in parts]
    for _, part, look in blocks:
        dots(right, capacities, part["seen"], look, clip=False)
    right.set(
        title="Tokens: with long stretches a power of P",
        xlabel="draft nodes per call, P = k",
        ylabel="predicted tokens per call, E[X]",
        xlim=(1, line[-1]),
    )
    name_ends(right, ends)
    caption(
        figure,
        f"lines: exact, best trees;  dots: simulated, {data['trials']:,} random starts each, 95% intervals;\n"
        "blocks: 2ʲ certain tokens after j random ones, of which another follows with probability r",
    )
