"""Tokens per call against drafted tokens: sequence, batch, k-ary and best trees (kobus2025; S1-S4, T1, §7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulations.counts.quantities import Mean
from simulations.counts.tally import Tally
from simulations.draws.alias import Floats
from simulations.simulators.trees import pair_of
from simulations.sweeps.base import Ask, Data, Scale, Sweep, Tallies
from simulations.sweeps.draft_trees import (
    EVERY_SIZE,
    EXTRAS,
    OPTIMAL,
    PAIR,
    READING,
    SIZES,
    STRATEGIES,
    TOKENS,
    along_text,
    iid_asks,
    iid_label,
    limits,
    mean_law,
    model_asks,
    model_label,
    model_tallies,
    model_theory,
    shapes,
    typical_law,
)
from simulations.sweeps.strategies import COLOURS, NAMES, captions, dots, names
from spectheory import total_variation
from spectheory.drafting import Shape, expected_tokens
from spectheory.plots.style import GREY, Axes, Figure, note


def asks(scale: Scale) -> tuple[Ask, ...]:
    """All trees under i.i.d. ranks, then along text."""
    return iid_asks(scale, largest=False) + model_asks(scale)


def data(scale: Scale, tallies: Tallies) -> Data:
    """Tokens per call with intervals, the exact lines, and T1."""
    races, theorem = model_tallies(tallies)
    law, law_along_text, tokens = typical_law(), mean_law(theorem), theorem.trials * TOKENS
    return {
        "sizes": list(SIZES),
        "iid": {
            "total_variation": float(total_variation(*pair_of({"pair": PAIR}))),
            "calls": tallies[iid_label("sequence", 1)].trials,
            "limit": limits(law),
            "strategies": {strategy: _iid(law, strategy, tallies) for strategy in STRATEGIES},
        },
        "models": {
            "texts": theorem.trials,
            "tokens": tokens,
            "runs": races.trials,
            "limit": limits(law_along_text),
            "reading": _exact(law_along_text, shapes(READING, OPTIMAL)),
            "strategies": {strategy: _along_text(strategy, tokens, races, theorem) for strategy in STRATEGIES},
        },
    }


def _iid(law: Floats, strategy: str, tallies: Tallies) -> Data:
    """A call outputs one token more than it accepts drafts."""
    observed = []
    for nodes, shape in shapes(law, strategy).items():
        found = Mean("accepted", 0, shape.depth).estimate(tallies[iid_label(strategy, nodes)])
        ends = {"low": found.low, "best": found.best, "high": found.high}
        observed.append({"k": nodes, "shape": str(shape), **{end: 1 + value for end, value in ends.items()}})
    return {"observed": observed, "exact": _exact(law, shapes(law, strategy, EVERY_SIZE))}


def _exact(law: Floats, drafted: Mapping[int, Shape]) -> list[dict[str, float]]:
    """Tokens per call if ranks are i.i.d. with this law."""
    return [{"k": nodes, "best": float(expected_tokens(shape, law))} for nodes, shape in drafted.items()]


def _along_text(strategy: str, tokens: int, races: Tally, theorem: Tally) -> Data:
    """Tokens of all texts over the calls they took."""
    observed, exact = [], []
    for nodes, shape in shapes(READING, strategy).items():
        name = f"{model_label(strategy, nodes)}: calls"
        calls = Mean(name).estimate(races)
        ends = {"low": calls.high, "best": calls.best, "high": calls.low}
        observed.append({"k": nodes, "shape": str(shape), **{end: tokens / value for end, value in ends.items()}})
        exact.append({"k": nodes, "best": tokens / float(theorem.moments[name].total)})
    return {"observed": observed, "exact": exact}


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Dots are simulated, lines exact; grey is T1."""
    left, right = figure.subplots(1, 2)
    iid, models = data["iid"], data["models"]
    draw_panel(left, data["sizes"], iid, "T1, upper bound\nof i.i.d. ranks", "-")
    draw_panel(right, data["sizes"], models, "T1 as if i.i.d.,\nno limit here", "--")
    for ax in (left, right):
        ax.set_ylabel("tokens per target call, with the\nrecovered or bonus token")
    captions(figure, left, right, iid, models, f"{models['tokens']:,} tokens of {models['texts']} texts")


def draw_panel(ax: Axes, sizes: list[int], panel: dict[str, Any], limit: str, style: str) -> None:
    """One panel: a line for each way to draft, and the limit T1."""
    labels = []
    for strategy, drafted in panel["strategies"].items():
        line = drafted["exact"]
        ax.plot([p["k"] for p in line], [p["best"] for p in line], color=COLOURS[strategy])
        dots(ax, strategy, [p["k"] for p in drafted["observed"]], drafted["observed"])
        name = NAMES[strategy] + (f" {_expansion(drafted['observed'][-1])}" if strategy == "k-ary" else "")
        labels.append((line[-1]["k"], line[-1]["best"], name, COLOURS[strategy]))
    if reading := panel.get("reading"):
        ax.plot([p["k"] for p in reading], [p["best"] for p in reading], color=COLOURS["tau*"], linestyle=":")
        labels.append((reading[-1]["k"], reading[-1]["best"], f"{NAMES['tau*']} as if i.i.d.", COLOURS["tau*"]))
    ks = range(1, len(panel["limit"]) + 1)
    ax.plot(ks, panel["limit"], color=GREY, linestyle=style)
    labels.append((len(panel["limit"]), panel["limit"][-1], limit, GREY))
    ax.set_xscale("log", base=2)
    ax.set_xticks(sizes, [str(k) for k in sizes])
    ax.set_xlabel("drafted tokens per call, k")
    ax.set_ylim(bottom=1)
    ax.grid(axis="y", color="0.92")
    _expansions(ax, panel["strategies"]["k-ary"]["observed"])
    names(ax, labels, max(ks))


def _expansions(ax: Axes, observed: list[dict[str, Any]]) -> None:
    """Which k-ary trees there are; the last one is named at the end of the line."""
    for seen in observed[:-1]:
        note(ax, _expansion(seen), (seen["k"], seen["best"]), (3, -12), COLOURS["k-ary"])


def _expansion(seen: dict[str, Any]) -> str:
    """The children by depth: 2x2x1 is ⟨2,2,1⟩."""
    return f"⟨{seen['shape'].split()[-1].replace('x', ',')}⟩"


SWEEP = Sweep(
    "tokens",
    "Tokens per call against drafted tokens, for four ways to draft",
    ("S1", "S2", "S3", "S4", "T1", "R2", "§7"),
    asks,
    data,
    draw,
    (9.0, 4.4),
    EXTRAS,
    theory=model_theory,
    further=lambda tallies: along_text(tallies, "calls"),
)
