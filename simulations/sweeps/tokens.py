"""Tokens per call against drafted tokens: sequence, batch, k-ary and best trees (kobus2025; S1-S4, T1, §7)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from simulations.counts import Mean, Tally
from simulations.draws import Floats
from simulations.simulators.trees import pair_of
from simulations.sweeps import draft_trees
from simulations.sweeps.base import Ask, Data, Scale, Tallies
from simulations.sweeps.curves import best, curve
from simulations.sweeps.draft_trees import LOOKS, NAMES, OPTIMAL, READING, SIZES, STRATEGIES, label_of, shapes
from spectheory import total_variation
from spectheory.drafting import Shape, expected_tokens
from spectheory.plots.style import GREY, Axes, Figure, Look, note

TITLE = "Tokens per call against drafted tokens, for four ways to draft"
STATEMENTS = ("S1", "S2", "S3", "S4", "T1", "R2", "§7")
SIZE = (9.0, 4.4)
EXTRAS = draft_trees.EXTRAS
theory = draft_trees.model_theory
further = partial(draft_trees.along_text, of="calls")


def asks(scale: Scale) -> tuple[Ask, ...]:
    """All trees under i.i.d. ranks, then along text."""
    return draft_trees.iid_asks(scale, largest=False) + draft_trees.model_asks(scale)


def data(scale: Scale, tallies: Tallies) -> Data:
    """Tokens per call with intervals, the exact lines, and T1."""
    races, theorem = draft_trees.model_tallies(tallies)
    law, law_along_text = draft_trees.typical_law(), draft_trees.mean_law(theorem)
    tokens = theorem.trials * draft_trees.TOKENS
    return {
        "sizes": list(SIZES),
        "iid": {
            "total_variation": float(total_variation(*pair_of({"pair": draft_trees.PAIR}))),
            "calls": tallies[f"i.i.d.: {label_of('sequence', 1)}"].trials,
            "limit": draft_trees.limits(law),
            "strategies": {strategy: _iid(law, strategy, tallies) for strategy in STRATEGIES},
        },
        "models": {
            "texts": theorem.trials,
            "tokens": tokens,
            "runs": races.trials,
            "limit": draft_trees.limits(law_along_text),
            "reading": _exact(law_along_text, shapes(READING, OPTIMAL)),
            "strategies": {strategy: _along_text(strategy, tokens, races, theorem) for strategy in STRATEGIES},
        },
    }


def _iid(law: Floats, strategy: str, tallies: Tallies) -> Data:
    """A call outputs one token more than it accepts drafts."""
    observed = []
    for nodes, shape in shapes(law, strategy).items():
        seen = Mean("accepted", 0, shape.depth).estimate(tallies[f"i.i.d.: {label_of(strategy, nodes)}"])
        ends = {"low": 1 + seen.low, "best": 1 + seen.best, "high": 1 + seen.high}
        observed.append({"k": nodes, "shape": str(shape), **ends})
    return {"observed": observed, "exact": _exact(law, shapes(law, strategy, draft_trees.EVERY_SIZE))}


def _exact(law: Floats, drafted: Mapping[int, Shape]) -> list[dict[str, float]]:
    """Tokens per call if ranks are i.i.d. with this law."""
    return [{"k": nodes, "best": float(expected_tokens(shape, law))} for nodes, shape in drafted.items()]


def _along_text(strategy: str, tokens: int, races: Tally, theorem: Tally) -> Data:
    """Tokens of all texts over the calls they took."""
    observed, exact = [], []
    for nodes, shape in shapes(READING, strategy).items():
        name = f"{label_of(strategy, nodes)}: calls"
        calls = Mean(name).estimate(races)
        ends = {"low": tokens / calls.high, "best": tokens / calls.best, "high": tokens / calls.low}
        observed.append({"k": nodes, "shape": str(shape), **ends})
        exact.append({"k": nodes, "best": tokens / float(theorem.moments[name].total)})
    return {"observed": observed, "exact": exact}


def draw(figure: Figure, data: Data) -> None:
    """Dots are simulated, lines exact; grey is T1."""
    left, right = figure.subplots(1, 2)
    draw_panel(left, data["sizes"], data["iid"], "T1, upper bound\nof i.i.d. ranks", "-")
    draw_panel(right, data["sizes"], data["models"], "T1 as if i.i.d.,\nno limit here", "--")
    for ax in (left, right):
        ax.set_ylabel("tokens per target call, with the\nrecovered or bonus token")
    texts = f"{data['models']['tokens']:,} tokens of {data['models']['texts']} texts"
    draft_trees.captions(figure, left, right, data, texts)


def draw_panel(ax: Axes, sizes: list[int], panel: Data, limit: str, style: str) -> None:
    """One panel: a line for each way to draft, and the limit T1."""
    k_ary, ends = panel["strategies"]["k-ary"]["observed"], []
    for strategy, drafted in panel["strategies"].items():
        line, seen = drafted["exact"], drafted["observed"]
        name = NAMES[strategy] + (f" {_expansion(seen[-1])}" if strategy == "k-ary" else "")
        ends.append(curve(ax, _ks(line), best(line), LOOKS[strategy], name, seen=seen, at=_ks(seen), filled=False))
    if reading := panel.get("reading"):
        name = f"{NAMES['tau*']} as if i.i.d."
        ends.append(curve(ax, _ks(reading), best(reading), LOOKS["tau*"], name, style=":"))
    ks = range(1, len(panel["limit"]) + 1)
    ends.append(curve(ax, ks, panel["limit"], Look(GREY, ""), limit, style=style))
    ax.set_xscale("log", base=2)
    ax.set_xticks(sizes, [str(k) for k in sizes])
    ax.set(xlabel="drafted tokens per call, k", ylim=(1, None))
    ax.grid(axis="y", color="0.92")
    for seen in k_ary[:-1]:  # the last one is named at the end of the line
        note(ax, _expansion(seen), (seen["k"], seen["best"]), (3, -12), LOOKS["k-ary"].colour)
    draft_trees.names(ax, ends, max(ks))


def _ks(points: list[Data]) -> list[int]:
    return [point["k"] for point in points]


def _expansion(seen: Data) -> str:
    """The children by depth: 2x2x1 is ⟨2,2,1⟩."""
    return f"⟨{seen['shape'].split()[-1].replace('x', ',')}⟩"
