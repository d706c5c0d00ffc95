"""R6, compiled: k independent races at one position, output first. Only draft arrivals up to the drafts are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulations.draws.alias import Floats, Tokens, alias, drawn
from simulations.draws.streams import Words, uniform
from simulations.kernels.race_counts import Counts
from simulations.models.positions import one_pair, whole_number
from spectheory.kernels.compiling import compiled


def lazy_gumbel_list(target: Any, draft: Any, k: int, trials: int, *, state: Words) -> Counts:
    r"""Count hits of Gumbel list sampling in the law of :func:`simulations.kernels.gumbel_list.gumbel_list` (R6).

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

    Draws of a trial, in order: the output (alias table), t unless its p/q is infinite; race j, then if it misses
    the other races until one hits: for each arrival its gap, an exponential, and its token (alias table), which the
    last gap of race j lacks.

    Returns array ``[3, V]`` of int: trials by output: row 0 misses, row 1 hits by another race than the one the output
    comes from (looked for if its own misses), row 2 hits by that race. Runs add up.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> lazy_gumbel_list([0.5, 0.5], [0.5, 0.5], 2, 1000, state=words(1)).sum(axis=1).tolist()
    [0, 0, 1000]
    """
    races, runs = whole_number("k", k), whole_number("trials", trials)
    p, q = one_pair(target, draft)
    with np.errstate(over="ignore"):
        ratios = np.divide(p, q, out=np.full(p.size, np.inf), where=q > 0)
    counts = np.zeros((3, p.size), dtype=np.int64)
    _trials(ratios, *alias(p), *alias(q), races, runs, counts, state)
    return counts


@compiled
def _trials(
    ratios: Floats,
    keep_p: Floats,
    other_p: Tokens,
    keep_q: Floats,
    other_q: Tokens,
    k: int,
    trials: int,
    counts: Counts,
    state: Words,
) -> None:
    for _ in range(trials):
        output = drawn(keep_p, other_p, uniform(state))
        hit = 0
        if ratios[output] < np.inf:
            t = -np.log(1.0 - uniform(state)) / k
            hit = 2 if _draft(ratios, keep_q, other_q, t, output, t * ratios[output], state) == output else 0
            for _ in range(k - 1):
                if hit == 0:
                    hit = 1 if _draft(ratios, keep_q, other_q, t, output, np.inf, state) == output else 0
        counts[hit, output] += 1


@compiled
def _draft(ratios: Floats, keep: Floats, other: Tokens, t: float, output: int, until: float, state: Words) -> int:
    """The token of the first arrival after its own t p/q; the output if none comes in time."""
    s = 0.0
    while True:
        s -= np.log(1.0 - uniform(state))
        if s >= until:
            return output
        y = drawn(keep, other, uniform(state))
        if s > t * ratios[y]:
            return y
