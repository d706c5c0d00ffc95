"""Near-ties: where rounding decides which token is the draft's first choice, so that both outcomes are right (§13).

A draft of first choices is accepted where it is the text's token, and nothing is random. But engines round: where the
draft's two largest logits are closer than the engine's number type can tell, its first choice is undecided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spectheory.judging.divergence import coarser, rounding_bound
from spectheory.trace import LAYERS, Trace

if TYPE_CHECKING:
    from spectheory.judging.starts import Calls

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]

NEEDED = ("draft_rank", "draft_gap", "draft_margin", "draft_scale")
"""Columns that near-ties are read from; without them there are none."""


def near_ties(trace: Trace, dtype: str) -> Flags:
    """Positions ``[N]`` whose token may or may not be the draft's first choice in a precision (an estimate).

    It is the first choice by less than rounding explains
    (:func:`~spectheory.judging.divergence.rounding_bound`), or falls short of it by less.
    """
    if not set(NEEDED) <= set(trace.columns):
        return np.zeros(len(trace), bool)
    rank, gap, margin, scale = (trace.columns[name] for name in NEEDED)
    bound = rounding_bound(1.0, coarser(trace, dtype), trace.provenance.get(LAYERS)) * np.asarray(scale, np.float64)
    return np.asarray(np.where(rank == 1, margin, gap) <= bound)


def as_seen(rank: Integers, ties: Flags, calls: Calls | None) -> Integers:
    """Ranks ``[N]`` in the draft with near-ties as listed calls found them: accepted ones 1, rejected ones 2."""
    if calls is None:
        return rank
    outcome = np.zeros(len(rank), dtype=np.int64)
    for at, accepted, judged in zip(calls.rows, calls.accepted, calls.judged, strict=True):
        outcome[at : at + accepted] = 1
        if accepted < judged:
            outcome[at + accepted] = 2
    return np.where(ties & (outcome > 0), outcome, rank)


def extremes(low: Floats, high: Floats, lengths: Integers, rewards: Flags) -> tuple[Floats, Floats]:
    """Least and most of each count ``[texts, A]``, whatever becomes of undecided drafts (exact).

    `low` and `high` ``[N, k]`` are survivals of 0 and 1, with every undecided draft rejected, and accepted; a call of
    accepted length j adds `rewards` ``[..., k + 1, A]``.
    """
    (tokens, k), counts = high.shape, rewards.shape[-1]
    reached = np.concatenate([np.ones((tokens, 1)), high], axis=1) > 0.5
    may_fail = np.concatenate([low[:, 0] < 0.5, np.ones(k, bool)])
    stops = np.concatenate([~reached[:, 1:], np.ones((tokens, 1), bool)], axis=1)
    possible = reached & (stops | may_fail[np.arange(tokens)[:, None] + np.arange(k + 1)])
    ends = np.cumsum(lengths)
    found = np.zeros((2, len(lengths), counts))
    for text, (start, end) in enumerate(zip(ends - lengths, ends, strict=True)):
        later = np.zeros((2, end - start + k + 1, counts))
        for n in range(end - start - 1, -1, -1):
            may = np.flatnonzero(possible[start + n])
            added = rewards[start + n] if rewards.ndim == 3 else rewards
            options = later[:, n + 1 + may] + added[may]
            later[0, n], later[1, n] = options[0].min(axis=0), options[1].max(axis=0)
        found[:, text] = later[:, 0]
    return found[0], found[1]
