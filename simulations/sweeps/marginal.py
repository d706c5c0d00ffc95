"""Probability that the k-th drafted token is accepted, in the order of the strategy (kobus2025; S1, §7)."""

from __future__ import annotations

from functools import partial

from simulations.counts import Mean, Share, Tally
from simulations.draws import Floats
from simulations.sweeps import draft_trees
from simulations.sweeps.base import Ask, Data, Scale, Tallies
from simulations.sweeps.curves import curve
from simulations.sweeps.draft_trees import LOOKS, NAMES, READING, STRATEGIES, label_of, order_of_adding, shapes
from spectheory.drafting import Shape, node_weights
from spectheory.plots.style import Axes, Figure

TITLE = "Probability that the k-th drafted token is accepted"
STATEMENTS = ("S1", "S2", "R2", "§7")
SIZE = (9.0, 4.4)
EXTRAS = draft_trees.EXTRAS
theory = draft_trees.model_theory
further = partial(draft_trees.along_text, of="node")

BOTH = 0.975
"""Confidence of each of two intervals that are combined to one of 95%."""


def asks(scale: Scale) -> tuple[Ask, ...]:
    """The largest tree of each strategy under i.i.d. ranks, and the trees along text."""
    return draft_trees.iid_asks(scale, largest=True) + draft_trees.model_asks(scale)


def data(scale: Scale, tallies: Tallies) -> Data:
    """For each node, how many calls accept it, simulated with intervals and exact."""
    races, theorem = draft_trees.model_tallies(tallies)
    law = draft_trees.typical_law()
    return {
        "iid": {
            "calls": tallies[f"i.i.d.: {label_of('batch', 32)}"].trials,
            "strategies": {
                strategy: _iid(law, shape, tallies[f"i.i.d.: {label_of(strategy, shape.nodes)}"])
                for strategy, shape in _largest(law)
            },
        },
        "models": {
            "texts": theorem.trials,
            "runs": races.trials,
            "strategies": {
                strategy: _along_text(label_of(strategy, shape.nodes), shape, races, theorem)
                for strategy, shape in _largest(READING)
            },
        },
    }


def _largest(law: tuple[float, ...] | Floats) -> list[tuple[str, Shape]]:
    by_size = {strategy: shapes(law, strategy) for strategy in STRATEGIES}
    return [(strategy, drafted[max(drafted)]) for strategy, drafted in by_size.items()]


def _iid(law: Floats, shape: Shape, tally: Tally) -> Data:
    seen = [Share("reached", node).estimate(tally) for node in order_of_adding(shape)]
    return {
        "observed": [{"low": each.low, "best": each.best, "high": each.high} for each in seen],
        "exact": node_weights(shape, law).tolist(),
    }


def _along_text(label: str, shape: Shape, races: Tally, theorem: Tally) -> Data:
    """Calls that accepted a node over all calls: intervals of both, combined."""
    of_calls = f"{label}: calls"
    calls, expected = Mean(of_calls).estimate(races, BOTH), float(theorem.moments[of_calls].total)
    observed, exact = [], []
    for node in order_of_adding(shape):
        name = f"{label}: node {node + 1}"
        seen = Mean(name).estimate(races, BOTH)
        low = max(seen.low, 0.0) / calls.high
        observed.append({"low": low, "best": seen.best / calls.best, "high": seen.high / calls.low})
        exact.append(float(theorem.moments[name].total) / expected)
    return {"observed": observed, "exact": exact}


LEAST = 1e-3
"""Lower end of the axes."""


def draw(figure: Figure, data: Data) -> None:
    """Dots are simulated, lines exact."""
    left, right = figure.subplots(1, 2, sharey=True)
    draw_panel(left, data["iid"]["strategies"])
    draw_panel(right, data["models"]["strategies"])
    left.set_ylabel("probability that the token is accepted")
    draft_trees.captions(figure, left, right, data, f"{data['models']['texts']} texts")


def draw_panel(ax: Axes, strategies: Data) -> None:
    """One panel: a line for each way to draft."""
    most, ends = max(len(drafted["exact"]) for drafted in strategies.values()), []
    for strategy, drafted in strategies.items():
        line = [(k, value) for k, value in enumerate(drafted["exact"], start=1) if value >= LEAST]
        shown = [(k, each) for k, each in enumerate(drafted["observed"], start=1) if each["best"] >= LEAST]
        at, seen = zip(*shown, strict=True)
        width = 0.5 if strategy == "k-ary" else 1.3  # its line goes up and down: depth by depth, first children first
        across, up = zip(*line, strict=True)
        how: Data = {"seen": seen, "at": at, "width": width, "filled": False, "size": 3.2}
        ends.append(curve(ax, across, up, LOOKS[strategy], NAMES[strategy], **how))
    ticks = [1, *range(most // 4, most + 1, most // 4)]
    ax.set(yscale="log", ylim=(LEAST, 1), xticks=ticks, xlabel="k-th drafted token, in the strategy's order")
    ax.grid(axis="y", color="0.92")
    draft_trees.names(ax, ends, most)
