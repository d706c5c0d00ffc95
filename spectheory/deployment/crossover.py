"""The context from which on speculation no longer pays on a server that was timed, or only then does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import brentq

from spectheory.cost.model import CostModel
from spectheory.cost.served import SAME, ServedCost, ServedFit
from spectheory.intervals import Interval

_LOOKED_AT = 33
"""Contexts at which the sign is looked at; a chain's speed-up is monotone in the context, so few crossings hide."""


class Chains(Protocol):
    """Chains of k drafts: their tokens per call, and the speed-up that they give with a cost."""

    @property
    def k(self) -> int:
        """Drafts of a call."""

    @property
    def per_call(self) -> Interval:
        """Tokens per call."""

    @property
    def speedup(self) -> Callable[[CostModel], Interval]:
        """The speed-up with a cost."""


@dataclass(frozen=True)
class Crossover:
    """Where the best chain's speed-up is 1 at a batch: below this context it is above 1, or beyond it (`beyond`).

    `context` is a 95% interval of the errors of the speed-up of `k` drafts there; it ends at the contexts that ran.
    """

    batch: int
    k: int
    context: Interval
    beyond: bool


def crossovers(fit: ServedFit, tokens: Sequence[Chains], batches: Sequence[int]) -> list[Crossover]:
    """The first crossing at each batch, between the shortest and the longest context of the runs; none where there is
    none.

    The speed-up of k drafts is tokens per call times a plain step over a call (C3, C4), which is monotone in the
    context, as both times are affine in it; tokens per call are taken as the same at every context.
    """
    least, most = fit.contexts
    if most <= (1 + SAME) * least:
        return []
    found = (_crossing(fit, tokens, batch) for batch in batches)
    return [each for each in found if each]


def _crossing(fit: ServedFit, tokens: Sequence[Chains], batch: int) -> Crossover | None:
    def over_one(context: float) -> float:
        return max(_ratio(fit, each, batch, context) for each in tokens) - 1

    places = np.linspace(*fit.contexts, _LOOKED_AT)
    signs = np.array([over_one(place) > 0 for place in places])
    turns = np.flatnonzero(signs[1:] != signs[:-1])
    if not turns.size:
        return None
    first, last = places[turns[0]], places[turns[0] + 1]
    at = float(brentq(over_one, first, last))
    best = max(tokens, key=lambda each: _ratio(fit, each, batch, at))
    ends = sorted(_where(fit, best, batch, side) for side in ("low", "high"))
    return Crossover(batch, best.k, Interval(min(ends[0], at), at, max(ends[1], at), "statistical"), not signs[0])


def _ratio(fit: ServedFit, chains: Chains, batch: int, context: float) -> float:
    """The speed-up, without its interval."""
    plain, call = (fit.seconds(batch, context, k).best for k in (0, chains.k))
    return chains.per_call.best * plain / call


def _where(fit: ServedFit, chains: Chains, batch: int, side: str) -> float:
    """Where one end of the speed-up's interval is 1: the end of the contexts towards which it is, if nowhere."""

    def over_one(context: float) -> float:
        return float(getattr(chains.speedup(ServedCost(fit, batch, context)), side)) - 1

    least, most = fit.contexts
    at_ends = over_one(least), over_one(most)
    if at_ends[0] * at_ends[1] < 0:
        return float(brentq(over_one, least, most, rtol=1e-6))
    return least if abs(at_ends[0]) < abs(at_ends[1]) else most
