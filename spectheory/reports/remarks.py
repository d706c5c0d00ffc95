"""Sentences that several answers need."""

from __future__ import annotations

IN_LOOP = (
    "Speed-ups include the measured time of our decoding loop around the passes; --passes-alone leaves it out. An "
    "engine has a loop of its own."
)
NO_COST = "No speed-up without costs: give --c or a latency table."
