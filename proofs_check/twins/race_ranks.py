"""R2 in exact arithmetic: the law of the rank of the output among the race's distinct drafts.

Given the winner i ~ p and its time u ~ Exp(1), the tokens that ring before it in the draft race are independent events
of probability 1 - exp(-u lambda_y). So the probability that exactly the set S came is the integral of
exp(-u) prod_S (1 - exp(-u lambda)) prod_{not S} exp(-u lambda); multiplied out, every term is an exponential. The work
doubles with every token; exact in fractions or multiprecision numbers alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

Real = Any
"""A fraction or a multiprecision number."""


def rank_given(p: Sequence[Real], q: Sequence[Real], winner: int) -> list[Real]:
    """P(R = r | output `winner`), r = 1..V; all zero where the draft cannot draw it."""
    tokens, zero = len(p), p[0] * 0
    law = [zero] * tokens
    if q[winner] == 0:
        return law
    rates = [max(q[y] * p[winner] / q[winner] - p[y], zero) for y in range(tokens) if y != winner]
    everyone = range(len(rates))
    for count in range(tokens):
        for came in combinations(everyone, count):
            late = sum((rates[y] for y in everyone if y not in came), zero)
            for size in range(count + 1):
                for chosen in combinations(came, size):
                    law[count] += (-1) ** size / (1 + late + sum((rates[y] for y in chosen), zero))
    return law


def rank_law(p: Sequence[Real], q: Sequence[Real]) -> list[Real]:
    """P(R = r), r = 1..V: the mean over the winner."""
    given = [rank_given(p, q, winner) for winner in range(len(p))]
    return [sum((p[i] * given[i][r] for i in range(len(p))), p[0] * 0) for r in range(len(p))]
