"""Several candidates at one position (§3), run through in fractions: the joint law of rank and output.

Each algorithm is written as its paper writes it, every candidate and every coin; ranks are 1, 2, ..., and rank 0 means
that none of the candidates was output. No closed form of the library is used: what :mod:`spectheory.verification`
states is compared with what comes out. The two rules whose clocks are continuous (R1, R6) are integrated.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from proofs_check.algorithms.enumeration import Pmf, normalised, positive_part
from proofs_check.statement.fractions import Fraction, law, law_of, total

JointLaw = dict[tuple[int, int], Fraction]
"""(rank, output) to probability; rank 0: none of the candidates."""

Ranked = Iterator[tuple[tuple[int, int], Fraction]]
"""Pairs (rank, output), each with its probability."""


def rank_law(joint: JointLaw, max_rank: int) -> list[Fraction]:
    """P(R = r), r = 1..max_rank."""
    shares = law((rank, share) for (rank, _), share in joint.items())
    return [shares.get(rank, Fraction(0)) for rank in range(1, max_rank + 1)]


def output_law(joint: JointLaw, tokens: int) -> Pmf:
    """The law of the output alone."""
    return tuple(total(share for (_, x), share in joint.items() if x == token) for token in range(tokens))


@law_of
def recursive_rejection(p: Pmf, q: Pmf, candidates: int, *, replacement: bool) -> Ranked:
    """Recursive rejection (R3) with i.i.d. candidates (miao2024specinfer) or distinct ones (chen2024sequoia).

    Draw a candidate, accept it with probability min(1, p/q), else go on with norm (p - q)+; without replacement the
    rejected token is taken out of q, and an empty q becomes uniform over the tokens not yet rejected. After the last
    candidate the output is drawn from what is left.
    """
    states = [(p, q, frozenset[int](), Fraction(1))]
    for rank in range(1, candidates + 1):
        following = []
        for left, draft, rejected, weight in states:
            for x, mass in enumerate(draft):
                if mass == 0:
                    continue
                accept = min(Fraction(1), left[x] / mass)
                yield (rank, x), weight * mass * accept
                if accept < 1:
                    gone = rejected | {x}
                    rest = draft if replacement else _without(draft, gone)
                    passed = weight * mass * (1 - accept)
                    following.append((normalised(positive_part(left, draft)), rest, gone, passed))
        states = following
    for left, _, _, weight in states:
        yield from (((0, x), weight * share) for x, share in enumerate(left))


def _without(q: Pmf, gone: frozenset[int]) -> Pmf:
    """The draft on the tokens that are left, or uniform over them."""
    kept = tuple(Fraction(0) if x in gone else share for x, share in enumerate(q))
    return normalised(kept if any(kept) else tuple(Fraction(int(x not in gone)) for x in range(len(q))))


@law_of
def k_seq(p: Pmf, q: Pmf, k: int, rho: Fraction) -> Ranked:
    """k-SEQ (R5, sun2023spectr): every list of k i.i.d. candidates, accepted with probability min(1, p/(rho q))."""
    left = list(p)
    for candidates in product([x for x, share in enumerate(q) if share > 0], repeat=k):
        weight = prod(q[x] for x in candidates)
        for rank, x in enumerate(candidates, 1):
            accept = min(Fraction(1), p[x] / (rho * q[x]))
            yield (rank, x), weight * accept
            left[x] -= weight * accept
            weight *= 1 - accept
    if min(left) < 0:
        raise ValueError(f"rho = {rho} leaves {min(left)} of a token: too small")
    yield from (((0, x), share) for x, share in enumerate(left))


@law_of
def poisson_race(p: Pmf, q: Pmf, max_rank: int) -> Ranked:
    r"""The Poisson functional representation (R1, li2018), integrated over the arrival time of the winner.

    Candidates :math:`X_i` ~ q i.i.d. arrive at the times :math:`T_i` of a Poisson process of rate 1; the output is the
    :math:`X_i` with the least :math:`T_i/\rho(X_i)`, :math:`\rho = p/q`. Let the r-th candidate be x and arrive at t.
    Each of the r - 1 before it came at a uniform time on [0, t] and is no better with probability
    :math:`A = \sum_y (q_y - p_y/\rho_x)_+`; the better ones after it are Poisson of mean tB,
    :math:`B = \sum_y (p_y/\rho_x - q_y)_+`, a token the draft lacks as the limit :math:`q_y \to 0`. So

    .. math:: P(R = r, X = x) = q_x A^{r-1}\int_0^\infty \frac{t^{r-1}e^{-t}}{(r-1)!}e^{-tB}\,dt
        = q_x\,\frac{A^{r-1}}{(1+B)^r} .
    """
    for rank, x in product(range(1, max_rank + 1), range(len(p))):
        if p[x] > 0 and q[x] > 0:
            as_good = tuple(share * q[x] / p[x] for share in p)
            worse, better = sum(positive_part(q, as_good)), sum(positive_part(as_good, q))
            yield (rank, x), q[x] * worse ** (rank - 1) / (1 + better) ** rank


@law_of
def top_k(p: Pmf, q: Pmf, k: int) -> Ranked:
    """The draft's k most probable tokens, lowest index first among equals, against an output drawn from p (R7)."""
    order = sorted(range(len(q)), key=lambda y: (-q[y], y))
    for x, share in enumerate(p):
        yield (order.index(x) + 1 if order.index(x) < k else 0, x), share


Exponentials = dict[Fraction, Fraction]
"""A sum of c e^{-a w}: rate a to coefficient c."""


def gumbel_list_hit(p: Pmf, q: Pmf, x: int, k: int) -> Fraction:
    r"""P(output among the k drafts | output = x) of Gumbel list sampling (R6, rowan2025), x of positive p and q.

    Race j* rings x first, at E = t := w p_x/k with w ~ Exp(1), and every other clock (j, y) is then at
    :math:`w p_y/k` plus a fresh exponential. Race j* drafts x unless a clock y of it rings before :math:`t q_y/q_x`.
    Another race drafts x, ringing at s >= t, unless one of its clocks rings before :math:`s q_y/q_x`:

    .. math:: h = \int_t^\infty \exp\Big(-(s-t) - \sum_{y \ne x} (s q_y/q_x - t p_y/p_x)_+\Big) ds .

    The exponent is linear in s between the points where a term sets in, each a multiple of t: so h is a sum of
    exponentials in w, as is :math:`(1 - e^{-wa})(1-h)^{k-1}`, and the integral over w a sum of fractions.
    """
    others = [y for y in range(len(p)) if y != x]
    t = p[x] / k  # times and bends are multiples of w

    def late(s: Fraction) -> Fraction:
        return total(max(s * q[y] / q[x] - t * p[y] / p[x], Fraction(0)) for y in others)

    bends = {y: t * p[y] / p[x] * q[x] / q[y] for y in others if q[y] > 0}
    points = sorted({t, *(bend for bend in bends.values() if bend > t)})
    other_race: Exponentials = {}
    for i, s in enumerate(points):
        slope = 1 + total(q[y] / q[x] for y, bend in bends.items() if bend <= s)
        _put(other_race, s - t + late(s), 1 / slope)
        if i + 1 < len(points):
            _put(other_race, points[i + 1] - t + late(points[i + 1]), -1 / slope)
    miss: Exponentials = {Fraction(0): Fraction(1)}
    _put(miss, late(t), Fraction(-1))
    missed = {rate: -share for rate, share in other_race.items()}
    _put(missed, Fraction(0), Fraction(1))
    for _ in range(k - 1):
        miss = law((a + b, share * other) for (a, share), (b, other) in product(miss.items(), missed.items()))
    return 1 - total(share / (1 + rate) for rate, share in miss.items())


def _put(terms: Exponentials, rate: Fraction, share: Fraction) -> None:
    terms[rate] = terms.get(rate, Fraction(0)) + share
