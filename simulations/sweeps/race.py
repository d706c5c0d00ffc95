"""The exponential race, illustrated: when each token's clock rings for target and draft (A2, R2; kobus2025)."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulations.counts import Share
from simulations.draws import Stream, words
from simulations.sweeps.base import Ask, Data, Scale, Tallies, ask
from spectheory import total_variation
from spectheory.plots.style import BLUE, ORANGE, Axes, Figure, caption, note
from spectheory.verification import RaceVerification

TITLE = "The exponential race: one clock per token, read by target and draft"
STATEMENTS = ("A2", "R2")
SIZE = (9.0, 4.4)

TARGET = (0.42, 0.26, 0.14, 0.10, 0.05, 0.03)
DRAFT = (0.24, 0.34, 0.08, 0.16, 0.12, 0.06)
TOKENS = ("the", "a", "one", "this", "some", "no")


def asks(scale: Scale) -> tuple[Ask, ...]:
    """Many races, dense and target first."""
    parameters = {"target": TARGET, "draft": DRAFT, "max_rank": len(TARGET)}
    return tuple(
        ask(kind, kind, parameters, scale, trials=scale.pick(200_000, 4_000_000)) for kind in ("race", "race-dense")
    )


def data(scale: Scale, tallies: Tallies) -> Data:
    """One race that accepts and one that rejects, the first of their stream, and how often races accept."""
    stream = Stream(words(scale.seed, 2))
    shown: dict[bool, dict[str, Any]] = {}
    while len(shown) < 2:
        clocks = np.array([stream.exponential() for _ in TARGET])
        arrivals = {"target": (clocks / TARGET).tolist(), "draft": (clocks / DRAFT).tolist()}
        first = {who: int(np.argmin(times)) for who, times in arrivals.items()}
        rank = 1 + sum(time < arrivals["draft"][first["target"]] for time in arrivals["draft"])
        shown.setdefault(rank == 1, {"arrivals": arrivals, "first": first, "rank": rank})
    return {
        "tokens": TOKENS,
        "target": TARGET,
        "draft": DRAFT,
        "accepted": shown[True],
        "rejected": shown[False],
        "acceptance": float(RaceVerification().acceptance(TARGET, DRAFT)),
        "most": 1 - float(total_variation(TARGET, DRAFT)),
        "observed": {
            name: {"trials": tally.trials, **vars(Share("rank", 1).estimate(tally))} for name, tally in tallies.items()
        },
    }


_FIRST = {"accepted": "both arrive first with the same token", "rejected": "different tokens arrive first"}


def draw(figure: Figure, data: Data) -> None:
    """Two races side by side, on one scale of time."""
    axes = figure.subplots(1, 2, sharey=True)
    for ax, outcome in zip(axes, _FIRST, strict=True):
        draw_race(ax, data, outcome)
    seen = data["observed"]["race"]
    axes[0].set_ylabel("token, with its probability\nunder target P and draft Q")
    caption(
        figure,
        f"One clock E for target and draft.  {seen['trials']:,} races: accepted {seen['best']:.4f} "
        f"[{seen['low']:.4f}, {seen['high']:.4f}] (95%);\nexact (A2) {data['acceptance']:.4f};  "
        f"most of any lossless rule, 1 - TV = {data['most']:.4f}",
    )


def draw_race(ax: Axes, data: Data, outcome: str) -> None:
    """One race: the arrivals of every token for target and draft."""
    race, tokens = data[outcome], data["tokens"]
    rows = range(len(tokens))
    for who, name, marker, colour, lift in (
        ("target", "output", "o", BLUE, 0.14),
        ("draft", "draft token", "D", ORANGE, -0.14),
    ):
        times, first = race["arrivals"][who], race["first"][who]
        ax.hlines([y - lift for y in rows], 1e-9, times, color=colour, linewidth=0.8, alpha=0.5)
        ax.plot(times, [y - lift for y in rows], marker, color=colour, markersize=5, markerfacecolor="white")
        ax.plot([times[first]], [first - lift], marker, color=colour, markersize=8)
        at, words = (times[first], first - lift), f"{name}: “{tokens[first]}”"
        note(ax, words, at, (9, 0), colour, 9, va="center", fontweight="bold")
    labels = [f"{t}  P {p:.2f}  Q {q:.2f}" for t, p, q in zip(tokens, data["target"], data["draft"], strict=True)]
    ax.set_yticks(rows, labels)
    rank = f"Rank of the output in the draft's race: R = {race['rank']}"
    ax.set(
        title=f"{outcome.capitalize()}: {_FIRST[outcome]}\n{rank}",
        xlabel="arrival time  E/P (circles), E/Q (diamonds)",
        xlim=(0, 1.05 * max(max(race["arrivals"][who]) for who in ("target", "draft"))),
        ylim=(len(tokens) - 0.5, -0.5),
    )
