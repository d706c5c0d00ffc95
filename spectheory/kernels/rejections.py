"""Masses of positive parts of combinations of two pmfs: one pass each, terms in the pmfs' precision, sums in double."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.kernels import Floats
from spectheory.kernels.compiling import compiled, plus


@compiled
def residual_masses(p: NDArray[Any], q: NDArray[Any], left: Floats) -> None:
    r"""Write :math:`G_0 = 1, G_m = \sum(p - s_{m+1} q)_+, s_{m+1} = s_m + G_{m-1}` to `left` ``[rows, ranks]`` (R3)."""
    for row in range(p.shape[0]):
        masses, taken = left[row], 0.0
        masses[0] = 1.0
        for rank in range(1, masses.size):
            taken += masses[rank - 1]
            masses[rank] = min(_above(p[row], q[row], p.dtype.type(taken)), masses[rank - 1])


@compiled
def uno_losses(p: NDArray[Any], q: NDArray[Any], kept: Floats, losses: Floats, shares: Floats) -> None:
    """Write the masses of (1-t) min(p,q) + t q above kept p for each share t to `losses` ``[rows, shares]`` (Y5)."""
    for row in range(p.shape[0]):
        for i in range(shares.size):
            part, both = p.dtype.type(shares[i]), p.dtype.type(1 - shares[i])
            losses[row, i] = _above_kept(p[row], q[row], p.dtype.type(kept[row, i]), part, both)


@compiled
def _above(p: NDArray[Any], q: NDArray[Any], taken: float) -> float:
    total, none = 0.0, taken * 0
    for i in range(p.size):
        rest = p[i] - taken * q[i]
        total = plus(total, np.float64(rest if rest > none else none))
    return total


@compiled
def _above_kept(p: NDArray[Any], q: NDArray[Any], kept: float, part: float, both: float) -> float:
    total, none = 0.0, kept * 0
    for i in range(p.size):
        lower = p[i] if p[i] < q[i] else q[i]
        rest = both * lower + (part * q[i] - kept * p[i])
        total = plus(total, np.float64(rest if rest > none else none))
    return total


# Sequences of rejected tokens and the rank laws they estimate, for recursive rejection over distinct candidates (R3).
#
# The loops of :mod:`spectheory.measure.columns.rejection`: the same heights give the same tokens, except where a
# height is within rounding of the boundary between two.


BLOCK = 1024
"""Entries whose mass is added up before a token is looked for among them."""
CANCELLED = 1e-6
"""Where less of a draft is left than this, the rest is added up again instead of subtracted."""


@compiled
def distinct_laws(
    p: NDArray[Any],
    q: NDArray[Any],
    at: NDArray[np.int64],
    ratio: Floats,
    heights: Floats,
    laws: Floats,
    starved: NDArray[np.bool_],
    least: float,
) -> None:
    """Write the mean law ``[rows, ranks]`` of the sequences, and where less than `least` of the draft was left.

    `ratio` is q/p at the token; `heights` ``[rows, sequences, ranks - 1]`` are uniform numbers. `q` is restored.
    """
    sequences, ranks = heights.shape[1], heights.shape[2] + 1
    sums = np.empty((2, -(-p.shape[1] // BLOCK)))
    one, none = p.dtype.type(1), p.dtype.type(0)
    for row in range(p.shape[0]):
        whole = _total(q[row])
        mass = _masses(p[row], q[row], none, one, sums[0])
        accepted, starved[row] = min(ratio[row], 1.0), False
        laws[row] = 0.0
        laws[row, 0] = accepted
        for s in range(sequences):
            token = _token(p[row], q[row], none, one, sums[0], heights[row, s, 0] * mass)
            short = _sequence(
                p[row], q[row], at[row], ratio[row], whole, token, mass, heights[row, s], least, sums[1], laws[row]
            )
            starved[row] = starved[row] or short
        for rank in range(1, ranks):
            laws[row, rank] /= sequences


@compiled
def _sequence(
    p: NDArray[Any],
    q: NDArray[Any],
    at: int,
    ratio: float,
    whole: float,
    token: int,
    mass: float,
    heights: Floats,
    least: float,
    sums: Floats,
    law: Floats,
) -> bool:
    """Add one sequence's shares to the law; return whether the draft ran out of single precision."""
    left, taken, rest, open_, starved = 1.0 - law[0], 1.0, whole, True, False
    values, tokens = np.zeros(law.size, q.dtype), np.zeros(law.size, np.int64)
    for rank in range(1, law.size):
        values[rank], tokens[rank] = q[token], token
        rest -= q[token]
        q[token] = 0
        open_ = open_ and token != at
        if rest < CANCELLED:
            rest = _total(q)
        starved = starved or (mass > 0.0 and rest < least)
        weight = mass / max(rest, least)
        share = min(left, weight * ratio) if open_ else 0.0
        law[rank] += share
        left -= share
        if rank + 1 < law.size:
            of_p, of_q = p.dtype.type(taken), p.dtype.type(weight)
            mass = _masses(p, q, of_p, of_q, sums)
            token = _token(p, q, of_p, of_q, sums, heights[rank] * mass)
            taken += weight
    for rank in range(law.size - 1, 0, -1):  # a token may be listed twice where a sequence had ended
        q[tokens[rank]] = values[rank]
    return starved


@compiled
def _total(values: NDArray[Any]) -> float:
    total = 0.0
    for i in range(values.size):
        total = plus(total, np.float64(values[i]))
    return total


@compiled
def _masses(p: NDArray[Any], q: NDArray[Any], taken: float, weight: float, sums: Floats) -> float:
    """Write the masses of (weight q - (p - taken q)_+)_+ in each block; return their sum."""
    total = 0.0
    for b in range(sums.size):
        here = slice(b * BLOCK, (b + 1) * BLOCK)
        sums[b] = _mass(p[here], q[here], taken, weight)
        total += sums[b]
    return total


@compiled
def _mass(p: NDArray[Any], q: NDArray[Any], taken: float, weight: float) -> float:
    none, total = taken * 0, 0.0
    for i in range(p.size):
        residual = p[i] - taken * q[i]
        excess = weight * q[i] - (residual if residual > none else none)
        total = plus(total, np.float64(excess if excess > none else none))
    return total


@compiled
def _token(p: NDArray[Any], q: NDArray[Any], taken: float, weight: float, sums: Floats, height: float) -> int:
    """The token with mass at this height of the cumulative mass; the last one where there is none."""
    block, before = 0, 0.0
    for b in range(sums.size):
        if sums[b] > 0.0:
            block = b
            if before + sums[b] > height:
                break
            before += sums[b]
    token = p.size - 1
    for i in range(block * BLOCK, min((block + 1) * BLOCK, p.size)):
        excess = weight * q[i] - max(p[i] - taken * q[i], 0)
        if excess > 0:
            token = i
            before += excess
            if before > height:
                break
    return token
