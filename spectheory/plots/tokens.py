"""Tokens per call against drafted tokens, under i.i.d. ranks and along real text."""

from __future__ import annotations

from typing import Any

from spectheory.plots.strategies import COLOURS, NAMES, captions, dots, names
from spectheory.plots.style import GREY, Axes, Figure, note


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
