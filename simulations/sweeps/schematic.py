"""Plain, speculative and batch decoding beside each other, from a recorded run of the built-in pair."""

from __future__ import annotations

from simulations.sweeps.base import Data, Scale, Sweep, Tallies
from simulations.sweeps.decoding_run import BRANCHES, DRAFTS, recorded
from spectheory.plots.schematic import draw

TITLES = {
    "plain": "plain decoding: every token takes a pass of the target",
    "token": f"speculative decoding: {DRAFTS} drafts a call, token verification",
    "batch": f"batch decoding: {BRANCHES} chains of {DRAFTS} drafts a call, recursive rejection",
}


def data(_: Scale, __: Tallies) -> Data:
    """The recorded calls; nothing is simulated."""
    run = recorded()
    return {
        "rows": [{"title": TITLES[name], "calls": calls} for name, calls in run["methods"].items()],
        **{name: run[name] for name in ("prompt", "settings", "pair", "hardware")},
    }


SWEEP = Sweep(
    "schematic",
    "Plain, speculative and batch decoding of one prompt, call by call",
    ("A1", "R3", "Y3"),
    lambda _: (),
    data,
    draw,
    (9.0, 6.4),
)
