"""A2 and D3 from one ratio order: the race's acceptance, and g at every ratio."""

from __future__ import annotations

import numpy as np

from spectheory.kernels import Floats, rows
from spectheory.kernels.compiling import compiled, scratch
from spectheory.kernels.ratio_order import ratio_order

BLOCK = 128
"""Tokens per plain sum; the sums of blocks are added with error compensation."""


def race_acceptance(target: Floats, draft: Floats) -> Floats:
    r"""Acceptance of the race, :math:`\sum_x p_x/(1+g(p_x/q_x))`, ``[..., V]`` to ``[...]`` (A2, exact)."""
    found = np.empty(np.broadcast_shapes(target.shape[:-1], draft.shape[:-1]))
    for at, (p, q) in rows(target, draft):
        ratios, mass, left = ratio_order(p, q, q)
        found[at] = _acceptance(ratios, mass, left.imag[left.real == 0].sum(), scratch("terms", BLOCK))
    return found[()]


def hockey_stick_at_ratios(target: Floats, draft: Floats) -> Floats:
    """All values :math:`g(p_x/q_x)`, ``[..., V]``; inf outside the draft's support (D3, exact)."""
    found = np.zeros(np.broadcast_shapes(target.shape, draft.shape))
    index = np.arange(target.shape[-1], dtype=np.float64)
    for at, (p, q) in rows(target, draft):
        ratios, tokens, left = ratio_order(p, q, index)
        below = q[left.imag[left.real == 0].astype(np.int64)].sum()
        found[(*at, left.imag[left.real == np.inf].astype(np.int64))] = np.inf
        _hockey_stick(ratios, tokens, q, below, found[at])
    return found


@compiled
def _add(total: float, lost: float, term: float) -> tuple[float, float]:
    """Add a term to a sum, and its rounding error to the errors (two-sum)."""
    new = total + term
    back = new - total
    return new, lost + ((total - (new - back)) + (term - back))


@compiled
def _acceptance(ratios: Floats, mass: Floats, below: float, terms: Floats) -> float:
    total = total_lost = p_sum = p_lost = q_lost = 0.0
    q_sum = below
    for start in range(0, ratios.size, BLOCK):
        r, q = ratios[start : start + BLOCK], mass[start : start + BLOCK]
        p_above, q_below = (1.0 - p_sum) - p_lost, q_sum + q_lost
        p_block = q_block = block = 0.0
        for i in range(r.size):
            p = r[i] * q[i]
            # 1 + g(r) = 1 - p(below) + r q(below): at its own ratio a token adds nothing.
            terms[i] = p / ((p_above - p_block) + r[i] * (q_below + q_block))
            p_block += p
            q_block += q[i]
        for i in range(r.size):
            block += terms[i]
        total, total_lost = _add(total, total_lost, block)
        p_sum, p_lost = _add(p_sum, p_lost, p_block)
        q_sum, q_lost = _add(q_sum, q_lost, q_block)
    return total + total_lost


@compiled
def _hockey_stick(ratios: Floats, tokens: Floats, draft: Floats, below: float, found: Floats) -> None:
    """Write g at the tokens, which are in ratio order."""
    p_sum = p_lost = q_lost = 0.0
    q_sum = below
    for start in range(0, ratios.size, BLOCK):
        p_block = q_block = 0.0
        for i in range(start, min(start + BLOCK, ratios.size)):
            token = np.uint64(tokens[i])
            r, q = ratios[i], draft[token]
            g = r * ((q_sum + q_lost) + q_block) - ((p_sum + p_lost) + p_block)
            found[token] = g if g > 0.0 else 0.0
            p_block += r * q
            q_block += q
        p_sum, p_lost = _add(p_sum, p_lost, p_block)
        q_sum, q_lost = _add(q_sum, q_lost, q_block)
