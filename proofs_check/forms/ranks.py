"""Acceptances and laws of ranks in any arithmetic: the races, recursive rejection, lists, matching (A, R)."""

from __future__ import annotations

from math import comb

from proofs_check.algorithms.rank_laws import gumbel_list_hit
from proofs_check.prelude import *


def race(p: AnyPmf, q: AnyPmf) -> Real:
    """The race's acceptance (A2): the probability that both races have one winner."""
    winners = (x for x in range(len(p)) if not is_zero(p[x]) and not is_zero(q[x]))
    return sum(1 / sum(larger(b / p[x], d / q[x]) for b, d in zip(p, q, strict=True)) for x in winners)


def common_support(p: AnyPmf, q: AnyPmf) -> list[int]:
    """The tokens that the target can output and the draft can draw."""
    return [x for x in range(len(p)) if not is_zero(p[x]) and not is_zero(q[x])]


def rates(p: AnyPmf, q: AnyPmf, winner: int) -> list[Real]:
    """The rates (q_y p_i/q_i - p_y)+ of the tokens y that may come before the winner i; their sum is its g."""
    lift = p[winner] / q[winner]
    return [larger(lift * q[y], p[y]) - p[y] for y in range(len(p)) if y != winner]


def rank_of(overtaking: Sequence[Real]) -> tuple[Real, ...]:
    """P(R = r | winner), r = 1..V, from its rates, by inclusion and exclusion over who stays behind."""
    size = len(overtaking)
    staying = [1, *(sum(1 / (1 + sum(some)) for some in combinations(overtaking, n)) for n in range(1, size + 1))]
    return tuple(
        sum((-1) ** (n - stay) * comb(n, stay) * staying[n] for n in range(stay, size + 1))
        for stay in range(size, -1, -1)
    )


def odds(p: AnyPmf, q: AnyPmf) -> dict[int, Real]:
    """The hockey stick g_x = sum of (q_y p_x/q_x - p_y)+ of every token that both can say."""
    return {x: sum(rates(p, q, x)) for x in common_support(p, q)}


def at_rank(p: AnyPmf, q: AnyPmf, rank: int) -> Real:
    """P(R = rank), the sum of p_x g_x^(r-1)/(1+g_x)^r."""
    return sum(p[x] * g ** (rank - 1) / (1 + g) ** rank for x, g in odds(p, q).items())


def beyond(p: AnyPmf, q: AnyPmf, s: Real = 1) -> tuple[Real, ...]:
    """The parts (p - s q)+."""
    return tuple(larger(a, s * b) - s * b for a, b in zip(p, q, strict=True))


def residuals(p: AnyPmf, q: AnyPmf) -> Iterator[tuple[AnyPmf, Real]]:
    """The residuals p^m of i.i.d. candidates with TV(p^m, q), m = 1, 2, ..., as long as something is left."""
    tv: Real = 1
    while not is_zero(tv):
        left = beyond(p, q)
        tv = sum(left)
        yield p, tv
        p = left if is_zero(tv) else tuple(share / tv for share in left)


def surviving(p: AnyPmf, q: AnyPmf, rejections: int) -> Real:
    """The product of TV(p^m, q), m = 1..rejections; 0 from a TV of 0 on."""
    return math.prod(tv for _, (_, tv) in zip(range(rejections), residuals(p, q), strict=False))


def levels(p: AnyPmf, q: AnyPmf, ranks: int) -> list[tuple[Real, Real]]:
    """The pairs (s_r, G_(r-1)), r = 1..ranks: s_1 = 0, G_0 = 1, s_(m+1) = s_m + G_(m-1), G_m the sum of (p - s q)+."""
    pairs: list[tuple[Real, Real]] = [(0 * p[0], 1 + 0 * p[0])]
    while len(pairs) < ranks:
        s = sum(pairs[-1])
        pairs.append((s, sum(beyond(p, q, s))))
    return pairs


def closed_form(p: AnyPmf, q: AnyPmf, ranks: int) -> list[tuple[Real, ...]]:
    """P(R = r, X = x) = min((p_x - s_r q_x)+, G_(r-1) q_x), a tuple over x for r = 1..ranks."""
    return [
        tuple(smaller(left, mass * b) for left, b in zip(beyond(p, q, s), q, strict=True))
        for s, mass in levels(p, q, ranks)
    ]


def listed(p: AnyPmf, q: AnyPmf, k: int) -> Real:
    """The acceptance, integrated over the time of the output and that of the other races' candidate."""
    return sum(p[x] * gumbel_list_hit(tuple(p), tuple(q), x, k) for x in common_support(p, q))


def first(pmf: AnyPmf) -> int:
    """The most probable token, the lowest index first."""
    return min(range(len(pmf)), key=lambda x: (-pmf[x], x))


def independent(p: AnyPmf, q: AnyPmf) -> Real:
    """The sum of pq."""
    return sum(a * b for a, b in zip(p, q, strict=True))
