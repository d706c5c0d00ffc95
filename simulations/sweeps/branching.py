"""Limits of deterministic drafts: bounds B1 to B3' and B6 against best trees (pankratov2026)."""

from __future__ import annotations

import math
from typing import Any

from simulations.counts import Estimate, Mean
from simulations.models.families import CAPACITIES, FAMILIES
from simulations.simulators.random_trees import moments, renewal_bounds
from simulations.sweeps.base import Ask, Data, Scale, Tallies, ask
from simulations.sweeps.curves import best, curve, dots
from spectheory.limits import branching_bound
from spectheory.plots.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    YELLOW,
    Axes,
    Figure,
    Look,
    caption,
    doubling,
    name_ends,
    note,
)

TITLE = "Tokens that a drafter who does not sample can predict, and what bounds them"
STATEMENTS = ("B1", "B2", "B2'", "B3'", "B6")
SIZE = (9.0, 7.4)
EXTRAS = ("models:torch", "models:transformers")

PMFS, TOKENS = 2048, 256

TARGET: dict[str, Any] = {
    "capacities": [1, 2, 4, 8, 16, 32, 64],
    "thresholds": [1.5, 1.8, 2.2, 2.7, 3.4, 4.0, 4.7],
    "starts": 32,
}
"""Of the built-in target. Each threshold, in nats, is where B6 was smallest on 128 texts drawn for that alone."""

BUILTIN = "built-in target"


def asks(scale: Scale) -> tuple[Ask, ...]:
    """Trees of every family, and of the built-in target."""
    families = [
        ask(name, "random-trees", _parameters(name), scale, trials=scale.pick(1600, 24_000)) for name in FAMILIES
    ]
    return (*families, ask(BUILTIN, "model-trees", TARGET, scale, trials=scale.pick(128, 1600)))


def _parameters(family: str) -> dict[str, Any]:
    return {"family": family, "pmfs": PMFS, "tokens": TOKENS, "capacities": CAPACITIES}


def data(scale: Scale, tallies: Tallies) -> Data:
    """E[X] and its bounds, for every family and for the built-in target."""
    return {"families": [_family(name, tallies) for name in FAMILIES], "target": _target(tallies)}


def _family(name: str, tallies: Tallies) -> Data:
    """Every bound at every capacity; the moments are exact."""
    parameters = _parameters(name)
    mu, mu2 = moments(parameters)
    seen = [_seen(f"P={capacity}", tallies, name) for capacity in CAPACITIES]
    rows = [
        {**_forms(mu, mu2, capacity), "B3'": numeric, "observed": vars(estimate)}
        for capacity, numeric, estimate in zip(CAPACITIES, renewal_bounds(parameters), seen, strict=True)
    ]
    return _panel(name, mu, mu2, tallies[name].trials, CAPACITIES, rows)


def _target(tallies: Tallies) -> Data:
    """B6 with its interval; the forms are readings of estimated moments, as if surprisals were independent."""
    mu, mu2 = (_seen(which, tallies, BUILTIN) for which in ("entropy", "second moment"))
    rows = []
    for capacity, t in zip(TARGET["capacities"], TARGET["thresholds"], strict=True):
        text, rest = _seen(f"text P={capacity}", tallies, BUILTIN), capacity * math.exp(-t)
        bound = {end: min(getattr(text, end) + rest, capacity) for end in ("low", "best", "high")}
        seen = _seen(f"P={capacity}", tallies, BUILTIN)
        rows.append({**_forms(mu.best, mu2.best, capacity), "B6": bound, "t": t, "observed": vars(seen)})
    panel = _panel(BUILTIN, mu.best, mu2.best, tallies[BUILTIN].trials, TARGET["capacities"], rows)
    return {**panel, "mu_interval": vars(mu), "mu2_interval": vars(mu2)}


def _forms(mu: float, mu2: float, capacity: int) -> dict[str, float]:
    """B1's leading term, not cut at P; the better form of B2; B2'."""
    lorden, best_t, sharp = (branching_bound(mu, mu2, capacity, form) for form in ("lorden", "best_t", "sharp"))
    return {"B1": (mu + mu2) * math.log(capacity) / mu**2, "B2": min(lorden, best_t), "B2'": sharp}


def _seen(name: str, tallies: Tallies, label: str) -> Estimate:
    return Mean(name).estimate(tallies[label])


def _panel(name: str, mu: float, mu2: float, trials: int, capacities: Any, rows: list[dict[str, Any]]) -> Data:
    """A panel's data: lists over the capacities."""
    lists = {key: [row[key] for row in rows] for key in rows[0]}
    return {"name": name, "mu": mu, "mu2": mu2, "trials": trials, "capacities": list(capacities), **lists}


def table(made: Data) -> str:
    """The table of ``docs/figures/tables.md``: P = 64 and the largest, and the slope between them."""
    lines = [
        "| family | μ | μ₂ | P | B1 leading | B2 | B2′ | B3′ | E[X] | slope of E[X]·μ | slope of B1·μ |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for family in made["families"]:
        places = (family["capacities"].index(64), len(family["capacities"]) - 1)
        first, last = (family["observed"][place]["best"] for place in places)
        ratio = family["capacities"][places[1]] / 64
        slopes = ((last - first) / math.log(ratio) * family["mu"], 1 + family["mu2"] / family["mu"])
        for place in places:
            seen = family["observed"][place]
            numbers = [f"{family[key][place]:.2f}" for key in ("B1", "B2", "B2'", "B3'")]
            reach = math.ceil(500 * (seen["high"] - seen["low"])) / 1000  # rounded up
            value = f"{seen['best']:.3f} ± {reach:.3f}"
            is_first = place == places[0]
            begin = [family["name"], f"{family['mu']:.2f}", f"{family['mu2']:.2f}"] if is_first else [""] * 3
            ends = ["", ""] if is_first else [f"{slope:.2f}" for slope in slopes]
            lines.append("| " + " | ".join([*begin, f"{family['capacities'][place]:,}", *numbers, value, *ends]) + " |")
    return "\n".join(lines)


BOUNDS = (("B2", "B2", YELLOW), ("B2'", "B2′", ORANGE), ("B3'", "B3′", GREEN))
"""Upper bounds of a family from above: key, name, colour."""
VALUE = Look(BLUE, "o")


def draw(figure: Figure, data: Data) -> None:
    """Six families as small multiples, and the built-in target beside them."""
    grid = figure.add_gridspec(3, 3, width_ratios=[1, 1, 1.3])
    nodes, tokens = "draft nodes per call, P = k", "tokens per call, E[X]"
    for number, family in enumerate(data["families"]):
        ax = figure.add_subplot(grid[number // 2, number % 2])
        draw_family(ax, family)
        ax.set(xlabel=nodes if number >= 4 else "", ylabel=tokens if number % 2 == 0 else "")
    target = figure.add_subplot(grid[:, 2], xlabel=nodes, ylabel=tokens)
    draw_target(target, data["target"])
    caption(
        figure,
        "E[X]: predicted tokens per call of best trees, bonus token left out; dots: simulated, 95% intervals\n"
        "B2, B2′, B3′: upper bounds for i.i.d. pmfs;  B1: leading term, no bound at P = 1;  "
        "B6: upper bound, estimated from text",
    )


def draw_family(ax: Axes, panel: Data) -> None:
    """One family: all bounds hold."""
    capacities = panel["capacities"]
    _frame(ax, panel, 1.3 * panel["B2"][-1], capacities[::2])
    ends = [curve(ax, capacities, panel[key], Look(colour, ""), name, width=1.4) for key, name, colour in BOUNDS]
    dots(ax, capacities, panel["observed"], VALUE, size=3.5, clip=False)
    _leading(ax, panel)
    ax.set_title(f"{panel['name']}\nμ = {panel['mu']:.2f} nats")
    name_ends(ax, [*ends, (capacities[-1], panel["observed"][-1]["best"], "E[X]", BLUE)])


def draw_target(ax: Axes, panel: Data) -> None:
    """The built-in target: B6 alone is a bound there, estimated from text."""
    capacities, text = panel["capacities"], panel["B6"]
    _frame(ax, panel, 1.15 * panel["B2"][-1], capacities)
    free = "B2′: as if i.i.d.,\nno limit here"
    ends = [curve(ax, capacities, panel["B2'"], Look(GREY, ""), free, style="-.", width=1.2)]
    low, high = ([each[end] for each in text] for end in ("low", "high"))
    ax.fill_between(capacities, low, high, color=PINK, alpha=0.25, linewidth=0)
    ends.append(curve(ax, capacities, best(text), Look(PINK, ""), "B6, the limit", width=1.4))
    dots(ax, capacities, panel["observed"], VALUE, size=5, clip=False)
    _leading(ax, panel)
    ax.set_title(f"built-in target, after its own text,\nμ = {panel['mu']:.2f} nats, {panel['trials']:,} starts")
    name_ends(ax, [*ends, (capacities[-1], panel["observed"][-1]["best"], "E[X]", BLUE)])


def _frame(ax: Axes, panel: Data, top: float, ticks: list[int]) -> None:
    """Scales and limits, before anything is placed by them."""
    doubling(ax, ticks, ",")
    ax.set(xlim=(1, panel["capacities"][-1]), ylim=(0, top))


def _leading(ax: Axes, panel: Data) -> None:
    """B1's leading term until it leaves the panel, and where it goes."""
    right, last, _, _ = curve(ax, panel["capacities"], panel["B1"], Look(GREY, ""), style="--", width=1.2)
    top = ax.get_ylim()[1]
    leaves = math.exp(top * math.log(right) / last)
    note(ax, f"B1, leading term:\n{last:.1f} at P = {right:,}", (leaves, top), (3, -1), va="top")
