"""Probability that the k-th drafted token is accepted, in the order of the strategy (kobus2025; S1, §7)."""

from __future__ import annotations

from typing import Any

from simulations.counts.quantities import Mean, Share
from simulations.counts.tally import Tally
from simulations.draws.alias import Floats
from simulations.sweeps.base import Ask, Data, Scale, Sweep, Tallies
from simulations.sweeps.draft_trees import (
    EXTRAS,
    READING,
    STRATEGIES,
    along_text,
    iid_asks,
    iid_label,
    model_asks,
    model_label,
    model_tallies,
    model_theory,
    order_of_adding,
    shapes,
    typical_law,
)
from simulations.sweeps.strategies import COLOURS, NAMES, captions, dots, names
from spectheory.drafting import Shape, node_weights
from spectheory.plots.style import Axes, Figure

BOTH = 0.975
"""Confidence of each of two intervals that are combined to one of 95%."""


def asks(scale: Scale) -> tuple[Ask, ...]:
    """The largest tree of each strategy under i.i.d. ranks, and the trees along text."""
    return iid_asks(scale, largest=True) + model_asks(scale)


def data(scale: Scale, tallies: Tallies) -> Data:
    """For each node, how many calls accept it, simulated with intervals and exact."""
    races, theorem = model_tallies(tallies)
    law = typical_law()
    return {
        "iid": {
            "calls": tallies[iid_label("batch", 32)].trials,
            "strategies": {
                strategy: _iid(law, shape, tallies[iid_label(strategy, shape.nodes)])
                for strategy, shape in _largest(law)
            },
        },
        "models": {
            "texts": theorem.trials,
            "runs": races.trials,
            "strategies": {
                strategy: _along_text(model_label(strategy, shape.nodes), shape, races, theorem)
                for strategy, shape in _largest(READING)
            },
        },
    }


def _largest(law: tuple[float, ...] | Floats) -> list[tuple[str, Shape]]:
    by_size = {strategy: shapes(law, strategy) for strategy in STRATEGIES}
    return [(strategy, drafted[max(drafted)]) for strategy, drafted in by_size.items()]


def _iid(law: Floats, shape: Shape, tally: Tally) -> Data:
    found = [Share("reached", node).estimate(tally) for node in order_of_adding(shape)]
    return {
        "observed": [{"low": each.low, "best": each.best, "high": each.high} for each in found],
        "exact": node_weights(shape, law).tolist(),
    }


def _along_text(label: str, shape: Shape, races: Tally, theorem: Tally) -> Data:
    """Calls that accepted a node over all calls: intervals of both, combined."""
    of_calls = f"{label}: calls"
    calls, expected = Mean(of_calls).estimate(races, BOTH), float(theorem.moments[of_calls].total)
    observed, exact = [], []
    for node in order_of_adding(shape):
        name = f"{label}: node {node + 1}"
        found = Mean(name).estimate(races, BOTH)
        low = max(found.low, 0.0) / calls.high
        observed.append({"low": low, "best": found.best / calls.best, "high": found.high / calls.low})
        exact.append(float(theorem.moments[name].total) / expected)
    return {"observed": observed, "exact": exact}


LEAST = 1e-3
"""Lower end of the axes."""


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Dots are simulated, lines exact."""
    left, right = figure.subplots(1, 2, sharey=True)
    iid, models = data["iid"], data["models"]
    for ax, panel in ((left, iid), (right, models)):
        draw_panel(ax, panel)
    left.set_ylabel("probability that the token is accepted")
    captions(figure, left, right, iid, models, f"{models['texts']} texts")


def draw_panel(ax: Axes, panel: dict[str, Any]) -> None:
    """One panel: a line for each way to draft."""
    labels = []
    most = max(len(drafted["exact"]) for drafted in panel["strategies"].values())
    for strategy, drafted in panel["strategies"].items():
        shown = [(k, value) for k, value in enumerate(drafted["exact"], start=1) if value >= LEAST]
        seen = [(k, each) for k, each in enumerate(drafted["observed"], start=1) if each["best"] >= LEAST]
        thin = strategy == "k-ary"  # its line goes up and down: depth by depth, first children first
        ax.plot(*zip(*shown, strict=True), color=COLOURS[strategy], linewidth=0.5 if thin else 1.3)
        dots(ax, strategy, [k for k, _ in seen], [each for _, each in seen], size=3.2)
        labels.append((*shown[-1], NAMES[strategy], COLOURS[strategy]))
    ax.set_yscale("log")
    ax.set_ylim(LEAST, 1)
    ax.set_xticks([1, *range(most // 4, most + 1, most // 4)])
    ax.set_xlabel("k-th drafted token, in the strategy's order")
    ax.grid(axis="y", color="0.92")
    names(ax, labels, most)


SWEEP = Sweep(
    "marginal",
    "Probability that the k-th drafted token is accepted",
    ("S1", "S2", "R2", "§7"),
    asks,
    data,
    draw,
    (9.0, 4.4),
    EXTRAS,
    theory=model_theory,
    further=lambda tallies: along_text(tallies, "node"),
)
