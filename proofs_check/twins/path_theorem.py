"""The path theorem (§7) in fractions: the twin of :mod:`spectheory.prediction.paths` that knows no rounding.

It states, for a text and the statistics along it, the survival of a call's accepted drafts and the law of all calls.
:mod:`proofs_check.algorithms.enumeration` runs the algorithms themselves; the two share no line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import Any

from proofs_check.algorithms.enumeration import Model, Pmf, Prefix
from proofs_check.statement.fractions import Fraction, end_of, law, total

Survival = Callable[[int, int], Fraction]
"""P(tau >= i) of a call whose first draft stands at position n, as a function of (n, i)."""

PositionLaw = Callable[[Pmf, Pmf, int], Fraction]
"""Probability that a position's draft is accepted, given target pmf, draft pmf and the text's token there."""


def likelihood_ratio(p: Pmf, q: Pmf, token: int) -> Fraction:
    """The ratio rho = q(x)/p(x) of a token the target can draw."""
    return q[token] / p[token]


def token_acceptance(p: Pmf, q: Pmf, token: int) -> Fraction:
    """Token verification: min(1, rho) (A1)."""
    return min(Fraction(1), likelihood_ratio(p, q, token))


def race_acceptance(p: Pmf, q: Pmf, token: int) -> Fraction:
    """Exponential race: 1/(1 + g(1/rho)), g(c) = sum_y (c q_y - p_y)+; 0 where rho = 0 (A2)."""
    rho = likelihood_ratio(p, q, token)
    if rho == 0:
        return Fraction(0)
    return 1 / (1 + total(max(b / rho - a, Fraction(0)) for a, b in zip(p, q, strict=True)))


def independent_acceptance(p: Pmf, q: Pmf, token: int) -> Fraction:
    """Independent match: q(x) (A4)."""
    return q[token]


def argmax_acceptance(p: Pmf, q: Pmf, token: int) -> Fraction:
    """Argmax draft: 1 where x is the draft's first choice (A4)."""
    return Fraction(int(q.index(max(q)) == token))


def product_survival(accept: PositionLaw, target: Model, draft: Model, text: Prefix) -> Survival:
    """Survival of a rule that decides each position by itself: the product of a(x) over the positions."""
    at = [accept(target(text[:n]), draft(text[:n]), token) for n, token in enumerate(text)]
    return lambda n, i: prod(at[n : n + i], start=Fraction(1))


def block_survival(target: Model, draft: Model, text: Prefix) -> Survival:
    """Survival of block verification: min(1, min_{j<=i} prod_{l<=j} rho_{n+l})."""
    rho = _ratios(target, draft, text)
    return lambda n, i: min(prod(rho[n : n + j], start=Fraction(1)) for j in range(i + 1))


def one_call_terms(target: Model, draft: Model, text: Prefix) -> Survival:
    """The terms min(1, prod_{l<=i} rho_{n+l}) of the one-call bound; *not* a survival function."""
    rho = _ratios(target, draft, text)
    return lambda n, i: min(Fraction(1), prod(rho[n : n + i], start=Fraction(1)))


def _ratios(target: Model, draft: Model, text: Prefix) -> list[Fraction]:
    return [likelihood_ratio(target(text[:n]), draft(text[:n]), token) for n, token in enumerate(text)]


def accepted_law(survival: Survival, n: int, k: int, length: int) -> list[Fraction]:
    """P(tau = i) for i = 0..min(k, length - n), the last entry counting every tau from there on."""
    most = min(k, length - n)
    alive = [survival(n, i) for i in range(most + 1)]
    return [alive[i] - (alive[i + 1] if i < most else 0) for i in range(most + 1)]


def calls(survival: Survival, k: int, length: int, *, prefill: bool = False) -> tuple[Fraction, Fraction]:
    """Mean and variance of the calls a text takes: C(n) = 1 + sum_i P(tau=i|n) C(n+i+1), C = 0 from the end on."""
    mean = [Fraction(0)] * (length + k + 2)
    square = list(mean)
    for n in range(length - 1, -1, -1):
        law = accepted_law(survival, n, k, length)
        later = total(share * mean[n + i + 1] for i, share in enumerate(law))
        later_square = total(share * square[n + i + 1] for i, share in enumerate(law))
        mean[n], square[n] = 1 + later, 1 + 2 * later + later_square
    first = 1 if prefill else 0
    return mean[first] + first, square[first] - mean[first] ** 2


def least_calls(most: Survival, k: int, length: int) -> Fraction:
    """L(0): L(n) = 1 + sum_i (M_i - M_(i+1)) min over j <= i of L(n+j+1), L = 0 from the end on (§12)."""
    ahead = [Fraction(0)] * (length + k + 2)
    for n in range(length - 1, -1, -1):
        law = accepted_law(most, n, k, length)
        ahead[n] = 1 + total(share * min(ahead[n + 1 : n + i + 2]) for i, share in enumerate(law))
    return ahead[0]


def full_acceptances(survival: Survival, k: int, length: int) -> Fraction:
    """Expected number of calls, the one that ends the text left out, that accept all k drafts."""
    expected = [Fraction(0)] * (length + k + 2)
    for n in range(length - 1, -1, -1):
        law = accepted_law(survival, n, k, length)
        expected[n] = total(share * expected[n + i + 1] for i, share in enumerate(law))
        if n + k + 1 < length:
            expected[n] += law[k]
    return expected[0]


def all_calls_law(survival: Survival, k: int, length: int) -> dict[tuple[int, ...], Fraction]:
    """Law of the accepted drafts of every call, given the text: independent calls, the last cut to the text."""

    def next_call(state: tuple[int, tuple[int, ...]]) -> Iterable[tuple[Any, Fraction]] | None:
        n, accepted = state
        if n >= length:
            return None
        return (((n + i + 1, (*accepted, i)), share) for i, share in enumerate(accepted_law(survival, n, k, length)))

    return law((accepted, share) for (_, accepted), share in end_of((0, ()), next_call).items())
