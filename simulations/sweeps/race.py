"""The exponential race, illustrated: when each token's clock rings for target and draft (A2, R2; kobus2025)."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulations.counts.quantities import Share
from simulations.draws.streams import Stream, words
from simulations.sweeps.base import Ask, Data, Scale, Sweep, Tallies, ask
from spectheory import total_variation
from spectheory.plots.race import draw
from spectheory.verification import RaceVerification

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


SWEEP = Sweep(
    "race",
    "The exponential race: one clock per token, read by target and draft",
    ("A2", "R2"),
    asks,
    data,
    draw,
    (9.0, 4.4),
)
