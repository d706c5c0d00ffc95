"""Limits of deterministic drafts: bounds B1 to B3' and B6 against best trees (pankratov2026)."""

from __future__ import annotations

import math
from typing import Any

from simulations.counts.estimates import Estimate
from simulations.counts.quantities import Mean
from simulations.models.families import CAPACITIES, FAMILIES
from simulations.predicted.random_trees import moments, renewal_bounds
from simulations.sweeps.base import Ask, Data, Scale, Sweep, Tallies, ask
from spectheory.limits import branching_bound
from spectheory.plots.branching import draw

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


SWEEP = Sweep(
    "branching",
    "Tokens that a drafter who does not sample can predict, and what bounds them",
    ("B1", "B2", "B2'", "B3'", "B6"),
    asks,
    data,
    draw,
    (9.0, 7.4),
    extras=("models:torch", "models:transformers"),
)
