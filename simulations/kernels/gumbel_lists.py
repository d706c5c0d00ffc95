"""Gumbel lists: k independent races at one position, dense, and output first (R6; rowan2025)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simulations.draws import Alias, Counts, Floats, Words, alias, token_of, uniform
from simulations.models.pairs import checked_stream, one_pair, whole_number
from spectheory.kernels.compiling import compiled

# Dense
#
# A clock -log(1-u) is never below its uniform u, so a token whose u is too large already is passed over by a
# multiplication; few logarithms are left.


def gumbel_list(target: Any, draft: Any, k: int, trials: int, *, state: Words) -> Counts:
    r"""Count hits of Gumbel list sampling (R6; ``rowan2025``).

    Clocks :math:`E^{(j)}_y` ~ Exp(1); drafts :math:`X^{(j)} = \arg\min_y E^{(j)}_y/q_y`, j = 1..k; output
    :math:`Y = \arg\min_y \min_j E^{(j)}_y/p_y`: a hit if it is among the drafts. Tokens without probability never win.

    :func:`simulations.kernels.gumbel_lists.lazy_gumbel_list` has the same law without reading every entry.

    Returns array ``[3, V]`` of int: trials by output: row 0 misses, row 1 hits by another race than the one the output
    comes from, row 2 hits by that race. Runs add up; rows 1 and 2 are the hits, row 2 alone what the paper's bound
    counts.

    Examples
    --------
    >>> from simulations.draws import words
    >>> gumbel_list([0.5, 0.5], [0.5, 0.5], 2, 1000, state=words(1)).sum(axis=1).tolist()
    [0, 0, 1000]
    """
    races, runs = whole_number("k", k), whole_number("trials", trials)
    p, q = one_pair(target, draft)
    counts = np.zeros((3, p.size), dtype=np.int64)
    _dense_trials(p, q, races, runs, counts, checked_stream(state))
    return counts


@compiled
def _dense_trials(p: Floats, q: Floats, k: int, trials: int, counts: Counts, state: Words) -> None:
    drafts = np.empty(k, np.int64)
    for _ in range(trials):
        first, output, winner = math.inf, 0, 0
        for j in range(k):
            soonest, draft = math.inf, 0
            for y in range(p.size):
                u = uniform(state)
                if u < soonest * q[y] or u < first * p[y]:
                    clock = -math.log1p(-u)
                    if clock < soonest * q[y]:
                        soonest, draft = clock / q[y], y
                    if clock < first * p[y]:
                        first, output, winner = clock / p[y], y, j
            drafts[j] = draft
        hit = 0
        for j in range(k):
            if drafts[j] == output:
                hit = max(hit, 2 if j == winner else 1)
        counts[hit, output] += 1


# Output first: only draft arrivals up to the drafts are drawn


def lazy_gumbel_list(target: Any, draft: Any, k: int, trials: int, *, state: Words) -> Counts:
    r"""Count hits of Gumbel list sampling in the law of :func:`simulations.kernels.gumbel_lists.gumbel_list` (R6).

    Output first, with :math:`r = p/q`. The clocks divided by p are Vk independent exponentials of rates p_y. Their
    least comes at a time t ~ Exp(k), of token Y ~ p, in a race j drawn uniformly, all three independent. Exponentials
    do not age: given these, all other clocks lie beyond :math:`t\,p_y` by fresh Exp(1) times. Divided by q_y instead,
    token y rings at :math:`t\,r_y` plus an Exp of rate q_y, which is the first arrival after :math:`t\,r_y` of a
    Poisson process of rate q_y. The processes of all tokens make one of rate 1 with tokens ~ q. So a race's draft is
    its first arrival (s, y) with :math:`s > t\,r_y`; in race j token Y rings at :math:`t\,r_Y` itself and is the draft
    if no such arrival comes before. No entry but those drawn is read, and nothing is cut off: the law is exact.
    (An output whose p/q is beyond the floats counts as a miss; it is one but for less than 1e-300.)

    The winning clock of a draft race is Exp(1) over all trials, hence by Wald's identity a race takes at most one
    arrival on average, at any p and q.

    Returns array ``[3, V]`` of int: trials by output: row 0 misses, row 1 hits by another race than the one the output
    comes from (looked for if its own misses), row 2 hits by that race. Runs add up.

    Examples
    --------
    >>> from simulations.draws import words
    >>> lazy_gumbel_list([0.5, 0.5], [0.5, 0.5], 2, 1000, state=words(1)).sum(axis=1).tolist()
    [0, 0, 1000]
    """
    races, runs = whole_number("k", k), whole_number("trials", trials)
    p, q = one_pair(target, draft)
    with np.errstate(over="ignore"):
        ratios = np.divide(p, q, out=np.full(p.size, np.inf), where=q > 0)
    counts = np.zeros((3, p.size), dtype=np.int64)
    _lazy_trials(ratios, alias(p), alias(q), races, runs, counts, checked_stream(state))
    return counts


@compiled
def _lazy_trials(
    ratios: Floats, targets: Alias, drafts: Alias, k: int, trials: int, counts: Counts, state: Words
) -> None:
    for _ in range(trials):
        output = token_of(targets, state)
        hit = 0
        if ratios[output] < np.inf:
            t = -np.log(1.0 - uniform(state)) / k
            hit = 2 if _draft(ratios, drafts, t, output, t * ratios[output], state) == output else 0
            for _ in range(k - 1):
                if hit == 0:
                    hit = 1 if _draft(ratios, drafts, t, output, np.inf, state) == output else 0
        counts[hit, output] += 1


@compiled
def _draft(ratios: Floats, drafts: Alias, t: float, output: int, until: float, state: Words) -> int:
    """The token of the first arrival after its own t p/q; the output if none comes in time."""
    s = 0.0
    while True:
        s -= np.log(1.0 - uniform(state))
        if s >= until:
            return output
        y = token_of(drafts, state)
        if s > t * ratios[y]:
            return y
