"""The entropy of the rank R: what a draft tree can gain from it (T1), and what channel simulation says of it (§3)."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from spectheory.checks import choice, real
from spectheory.distributions import Array, as_floats, as_numpy, sum_tolerance, validate_pair
from spectheory.divergences import hockey_stick_at_ratios
from spectheory.errors import PmfError, SettingError, ShapeError
from spectheory.intervals import Interval

# A mixture of geometric laws with its odds merged, between two mixtures of few odds.
#
# Let :math:`P_\mu(r) = \int g^{r-1}/(1+g)^r \, d\mu(g)`. For a concave function :math:`\varphi` of the rank,
# :math:`\int E_g[\varphi(R)] \, d\mu` falls when mass is spread out at its mean: R - 1 is Poisson of mean g E with E ~
# Exp(1), and the second derivative in g of a Poisson mean of :math:`\varphi` is a mean of second differences. log r is
# concave. So is :math:`-\log P_\mu`, as a mixture of geometric laws is log-convex. If :math:`\nu` is :math:`\mu` spread
# out, then
#
# .. math:: H(P_\nu) \le E_\nu[-\log P_\mu] \le E_\mu[-\log P_\mu] = H(P_\mu),
#
# the first step by Gibbs. So merging tokens at their mean odds can only raise the entropy and E log R, and moving them
# to the ends of their cell at the same mean can only lower both. What is lost is of second order in the width of a
# cell.


Floats = NDArray[np.float64]


_LARGEST = math.log(sys.float_info.max)
"""The largest log(1 + g)."""


class Atoms(NamedTuple):
    """Weights and odds of a mixture."""

    weights: Floats
    odds: Floats


def _merged(weights: Floats, odds: Floats, step: float) -> tuple[Atoms, Atoms]:
    """Two mixtures around that of finite `odds`: a lower one, spread out to the ends of cells of log(1 + g) that are
    `step` wide, and an upper one, at the cells' means (exact up to rounding); twice the same if that saves nothing.
    """
    number, cell = np.unique(np.floor(np.log1p(odds) / step), return_inverse=True)
    if 2 * number.size >= odds.size:
        return (Atoms(weights, odds),) * 2
    left, right = _edge(number, step), _edge(number + 1, step)
    width = right - left
    share = np.clip((odds - left[cell]) / width[cell], 0.0, 1.0)
    mass, up = (_summed(cell, each) for each in (weights, weights * share))
    upper = Atoms(mass, left + width * np.minimum(up / mass, 1.0))
    ends, place = np.unique(np.concatenate([number, number + 1]), return_inverse=True)
    lower = Atoms(_summed(place, np.concatenate([np.maximum(mass - up, 0.0), up])), _edge(ends, step))
    return lower, upper


def _summed(place: NDArray[np.int64], values: Floats) -> Floats:
    """Sums of the values of each place."""
    return np.bincount(place, values).astype(np.float64, copy=False)


def _edge(number: Floats, step: float) -> Floats:
    """The odds at which a cell begins."""
    return np.expm1(np.minimum(number * step, _LARGEST))


# Certified means over a mixture of geometric laws: what the rank of the Poisson race is (R1), however heavy its tail.
#
# The mean rank of a real pair may be beyond 1e20, so ranks are not added one by one. They are taken in blocks that grow
# with the rank, and both functions averaged here, log r and the surprisal -log P(R = r) of a log-convex law, are
# concave: in a block of known mass and mean rank the average lies between the chord and Jensen's bound.


_ENTRIES = 1 << 18
"""Entries of one array at a time."""
_CHUNK = 256
"""Blocks after which the rest is looked at."""
_LAST_RANK = 1e307
"""Blocks end there; what is beyond is bounded as it is."""
_MOST_BLOCKS = 1 << 20
"""Blocks after which the rest is bounded as it is, however wide."""


def tolerance_in_nats(tolerance: float) -> float:
    """The width asked of an interval as a float."""
    inside = "must be in [1e-11, 1] nats"
    return real("tolerance", tolerance, lambda nats: 1e-11 <= nats <= 1, limit=inside, remedy="1e-6 is usual")


@dataclass(frozen=True)
class _GeometricMixture:
    r"""The law :math:`P(R=r) = \sum_x p_x g_x^{r-1}/(1+g_x)^r`, r = 1, 2, ..., of `weights` p and `odds` g >= 0."""

    weights: Floats
    odds: Floats

    def mean_of(self, what: Literal["log rank", "surprisal"], tolerance: float) -> Interval:
        """E log R, or the entropy E[-log P(R)], nats: certain up to rounding; at most `tolerance` wide below a million
        blocks.
        """
        tolerance = tolerance_in_nats(tolerance)
        if not np.any(self.odds > 0):
            return Interval.exact(0.0)
        growth = 4 * tolerance**0.5
        while True:
            # Cells a quarter as wide as blocks lose less than these.
            lower, upper = (_GeometricMixture(*atoms) for atoms in _merged(self.weights, self.odds, growth / 4))
            low, high, blocks = lower._sum(what, growth, tolerance)
            if lower.odds is not upper.odds:
                _, high, blocks = upper._sum(what, growth, tolerance)
            if high - low <= tolerance or blocks >= _MOST_BLOCKS:
                # In a short block the chord misses twice what Jensen's bound does, as do a cell's ends beside its mean.
                return Interval(low, low + (high - low) * 2 / 3, high, "bound")
            growth /= 2

    def _sum(self, what: str, growth: float, tolerance: float) -> tuple[float, float, int]:
        """Lower and upper sum over blocks whose ends grow by `growth`, and their number."""
        low = high = 0.0
        blocks = 0
        for start, length in _blocks(growth, min(_CHUNK, max(1, _ENTRIES // self.odds.size))):
            below, above = self._bounds(what, start, length)
            low, high, blocks = low + float(below.sum()), high + float(above.sum()), blocks + start.size
            rest = self._bounds(what, start[-1:] + length[-1:], np.array([np.inf]))
            narrow = rest[1][0] - rest[0][0] <= tolerance / 4
            if narrow or blocks >= _MOST_BLOCKS or start[-1] >= _LAST_RANK:
                return low + float(rest[0][0]), high + float(rest[1][0]), blocks
        raise AssertionError("the blocks have no end")

    def _bounds(self, what: str, start: Floats, length: Floats) -> tuple[Floats, Floats]:
        """Chord and Jensen sums ``[B]`` of blocks of ranks start, ..., start + length - 1; a length may be infinite."""
        mass, offset = self._moments(start, length)

        def value(at: Floats) -> Floats:
            return np.log(at) if what == "log rank" else -self._log_pmf(at)

        jensen = value(start + offset)
        # An endless block has no far end: the function grows, so it is at least what it is at the start.
        far = np.where(np.isinf(length), start, start + length - 1)
        first = value(start)
        chord = first + (value(far) - first) * np.where(length > 1, offset / np.maximum(length - 1, 1), 0.0)
        single = length == 1
        return mass * np.where(single, first, np.minimum(chord, jensen)), mass * np.where(single, first, jensen)

    def _moments(self, start: Floats, length: Floats) -> tuple[Floats, Floats]:
        """Mass of each block, and the mean of R - start in it."""
        first, rate, odds = self._going(start)
        endless = np.isinf(length)[:, None]
        bounded = np.where(endless, 1.0, length[:, None])
        with np.errstate(over="ignore"):
            shares = first * -np.expm1(-length[:, None] * rate)
            within = np.where(endless, odds, _mean_offset(rate, bounded))
        # R = 1 for sure where the odds are 0.
        mass = shares.sum(axis=1) + np.where(start == 1, self._certain, 0.0)
        return mass, (shares * within).sum(axis=1) / np.where(mass > 0, mass, 1.0)

    def _log_pmf(self, at: Floats) -> Floats:
        """Log of the law at ranks ``[B]``, real ones too; 0 where it is below the floats, and so is its weight."""
        first, _, odds = self._going(at)
        pmf = (first / (1 + odds)).sum(axis=1) + np.where(at == 1, self._certain, 0.0)
        return np.log(np.where(pmf > 0, pmf, 1.0))

    def _going(self, rank: Floats) -> tuple[Floats, Floats, Floats]:
        """P(X = x, R >= rank) ``[B, n]``, rates log(1 + 1/g) and odds ``[n]`` of the x with positive odds."""
        odds = self.odds[self.odds > 0]
        # log(1 + 1/g), without the quotient where it may be beyond the floats
        rate = np.log1p(np.minimum(odds, 1 / np.maximum(odds, 1.0))) - np.log(np.minimum(odds, 1.0))
        # Beyond the floats the exponent is infinite, and the chance 0 as it should be.
        with np.errstate(over="ignore"):
            return self.weights[self.odds > 0] * np.exp(-(rank[:, None] - 1) * rate), rate, odds

    @property
    def _certain(self) -> float:
        return float(self.weights[self.odds == 0].sum())


def _blocks(growth: float, count: int) -> Iterator[tuple[Floats, Floats]]:
    """Starts and lengths of the blocks 1, 2, ... whose ends grow by the factor 1 + growth, `count` at a time."""
    at = 1.0
    while True:
        starts = np.empty(count + 1)
        for i in range(count + 1):
            starts[i] = at
            if i < count:
                at = min(max(at + 1, math.floor(at * (1 + growth))), _LAST_RANK)
        yield starts[:-1], np.diff(starts)


def _mean_offset(rate: Floats, length: Floats) -> Floats:
    """Mean of j = 0, 1, ..., length - 1 under weights exp(-rate j), entrywise."""
    return _bent(rate) - length * _bent(length * rate)


def _bent(u: Floats) -> Floats:
    """1/(e^u - 1) - 1/u, which is -1/2 + u/12 - u^3/720 + ... near 0."""
    near = u < 0.02
    small = np.where(near, u, 0.0)
    series = -0.5 + small * (1 / 12 - small**2 * (1 / 720 - small**2 / 30240))
    far = np.where(near, 1.0, u)
    with np.errstate(over="ignore"):
        return np.where(near, series, 1 / np.expm1(far) - 1 / far)


# The entropy of a rank


def rank_entropy(rank_pmf: Any) -> Array:
    r"""Entropy of a rank cut at max_rank, in nats: the ranks beyond are one letter "none" (§3, T1, exact).

    .. math:: H = -\sum_{r \le B} \pi_r \log \pi_r - \pi_\infty \log \pi_\infty, \qquad \pi_\infty = 1 - \sum_r \pi_r .

    This is the H(R) of T1 with an alphabet of A = max_rank + 1 letters. It never exceeds the entropy of the whole rank,
    and it may lie far below KL: it is no H(R) of channel simulation (:func:`poisson_rank_entropy`). `rank_pmf` ``[...,
    max_rank]`` may sum to less than 1.

    Examples
    --------
    >>> round(float(rank_entropy([0.5, 0.25])), 6)
    1.039721
    """
    law = as_floats(rank_pmf, "the rank pmf")
    xp = array_namespace(law)
    if law.ndim == 0 or law.shape[-1] == 0 or not bool(xp.all(law >= 0)):
        raise PmfError("rank pmf is empty, or an entry negative or NaN", limit="P(R = r) >= 0", remedy="use rank_pmf")
    total, slack = xp.sum(law, axis=-1, keepdims=True), sum_tolerance(law.dtype, xp)
    if bool(xp.any(total > 1 + slack)):
        raise PmfError(
            f"rank pmf sums to {float(xp.max(total)):.10g}",
            limit=f"at most 1 within {slack:.1e}",
            remedy="pass P(R = r) of one rule",
        )
    none = xp.where(total < 1, 1 - total, xp.zeros_like(total))
    letters = xp.concat([law, none], axis=-1)
    return -xp.sum(letters * xp.log(xp.where(letters > 0, letters, xp.ones_like(letters))), axis=-1) + 0.0


def poisson_rank_entropy(target: Any, draft: Any, *, tolerance: float = 1e-6) -> Interval:
    """H(R) of the whole, untruncated rank of the Poisson race, nats (R1, bound: certain up to rounding).

    Never below KL (``li2018``); the law is a mixture of geometric ones, summed in blocks of ranks. A draft that lacks a
    token of the target is refused, as R is then infinite: cut the rank and use :func:`rank_entropy`.

    Examples
    --------
    >>> print(poisson_rank_entropy([0.5, 0.5], [0.25, 0.75]))
    0.909
    """
    p, g = _odds(target, draft)
    if np.any(np.isinf(g)):
        raise SettingError(
            f"the draft lacks tokens of target probability {p[np.isinf(g)].sum():.3g}",
            limit="their rank is infinite, and H(R) needs a finite rank",
            remedy="use spectheory.verification.rank_entropy of the cut rank",
        )
    return _GeometricMixture(p, g).mean_of("surprisal", tolerance)


def poisson_rank_entropy_given(target: Any, draft: Any) -> Array:
    r"""H(R|X) of the Poisson race, nats, ``[..., V]`` to ``[...]`` (R1, exact).

    .. math:: H(R|X) = \sum_x p_x\,[(1+g_x)\log(1+g_x) - g_x \log g_x]

    At least KL, at most H(R). Infinite where the draft lacks a token of the target.

    Examples
    --------
    >>> round(float(poisson_rank_entropy_given([0.5, 0.5], [0.25, 0.75])), 6)
    0.693147
    """
    p, q, xp = validate_pair(target, draft)
    g = hockey_stick_at_ratios(p, q, xp)
    one = xp.ones_like(g)
    # log(1+g) + g log(1 + 1/g), the second term 0 at g = 0 and 1 at infinity.
    inner = (g > 0) & (g < math.inf)
    safe = xp.where(inner, g, one)
    with np.errstate(over="ignore"):
        spread = safe * xp.log1p(1 / safe)
    # 1/g beyond the floats: g log(1/g) is below 1e-305.
    spread = xp.where(xp.isinf(spread) | (g == 0), 0 * one, spread)
    entropy = xp.log1p(g) + xp.where(g < math.inf, spread, one)
    return xp.sum(p * xp.where(p > 0, entropy, 0 * one), axis=-1)


def expected_log_rank(target: Any, draft: Any, *, tolerance: float = 1e-6) -> Interval:
    r"""E log R of the Poisson race, nats (R1, bound: certain up to rounding; ``li2018``).

    At most :func:`poisson_rank_log_bound`. Infinite where the draft lacks a token of the target.

    Examples
    --------
    >>> print(expected_log_rank([0.5, 0.5], [0.25, 0.75]))
    0.254
    """
    tolerance_in_nats(tolerance)
    p, g = _odds(target, draft)
    if np.any(np.isinf(g)):
        return Interval.exact(math.inf)
    return _GeometricMixture(p, g).mean_of("log rank", tolerance)


def poisson_rank_log_bound(target: Any, draft: Any) -> Array:
    r"""Upper bound :math:`\sum_x p_x \log(1+p_x/q_x) \le KL + \log 2` on E log R, nats, ``[..., V]`` to ``[...]``.

    Assumes the Poisson race, or any selection that stops no later in the mean given the output: E[R|x] = 1 + g_x is at
    most 1 + p_x/q_x (R1, upper bound; ``li2018``). Infinite where the draft lacks a token of the target.

    Examples
    --------
    >>> round(float(poisson_rank_log_bound([0.5, 0.5], [0.25, 0.75])), 6)
    0.804719
    """
    p, q, xp = validate_pair(target, draft)
    p, q = p + 0 * q, q + 0 * p
    both = (p > 0) & (q > 0)
    small, large = xp.minimum(p, q), xp.maximum(p, q)
    one = xp.ones_like(p)
    # log(1 + p/q) without the quotient that may be beyond the floats: log1p(small/large) + log(large/q).
    log1p = xp.log1p(small / xp.where(both, large, one))
    beyond = xp.log(xp.where(both & (p > q), p, one)) - xp.log(xp.where(both & (p > q), q, one))
    terms = xp.where(both, p * (log1p + beyond), 0 * one)
    return xp.sum(xp.where((p > 0) & (q == 0), math.inf * one, terms), axis=-1)


def rank_entropy_bound(mean_log_rank: float, unit: Literal["nats", "bits"] = "nats") -> float:
    r"""Upper bound :math:`H(R) \le E + \log(E+1) + 1` on any rank's entropy from :math:`E = E\log R` (``li2018``).

    Printed in bits: both logarithms, E and H(R) to base 2. With everything in nats it holds too and is *another* bound,
    not the same one converted. Assumes nothing but R in 1, 2, ...

    Examples
    --------
    >>> round(rank_entropy_bound(1.0), 6), rank_entropy_bound(1.0, unit="bits")
    (2.693147, 3.0)
    """
    choice("unit", unit, ("nats", "bits"), remedy="name one: the two bounds differ")
    mean_log_rank = checked_mean_log_rank(mean_log_rank)
    return mean_log_rank + math.log1p(mean_log_rank) / (math.log(2) if unit == "bits" else 1.0) + 1.0


def checked_mean_log_rank(mean_log_rank: float) -> float:
    """E log R as a float >= 0, which may be infinite."""
    remedy = "ranks are counted from 1"
    return real("E log R", mean_log_rank, lambda mean: mean >= 0, limit="must be >= 0", remedy=remedy)


def _one_pair(target: Array, draft: Array) -> None:
    """Refuse batches where the answer is one interval."""
    if target.ndim != 1 or draft.ndim != 1:
        raise ShapeError(
            f"target is {tuple(target.shape)} and draft {tuple(draft.shape)}",
            limit="one pair [V]",
            remedy="call it for each pair",
        )


def _odds(target: Any, draft: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The masses p and odds g of the tokens that a single target pmf can output."""
    p, q, xp = validate_pair(target, draft)
    _one_pair(p, q)
    g, mass = as_numpy(hockey_stick_at_ratios(p, q, xp)), as_numpy(p)
    return mass[mass > 0], g[mass > 0]


# The entropy of the whole rank of recursive rejection with i.i.d. candidates (R3), by one sort.
#
# The mass left after m rejections is :math:`G(s) = \sum_x (p_x - s q_x)_+` at :math:`s = s_{m+1}`, linear between
# neighbouring ratios p/q, and the next s is s + G. So while no ratio is passed each rejection takes the same share of
# G, the draft's mass of ratios above s: R is geometric piece by piece, and a piece is one closed form, however long.


def recursive_rank_entropies(target: Any, draft: Any) -> tuple[float, float]:
    """H(R|X) and H(R) of the whole rank of recursive rejection with i.i.d. candidates, nats (R3, exact): O(V log V).

    Never below KL: candidates are i.i.d. and R is finite (§3). A draft that lacks a token of the target is refused.

    Examples
    --------
    >>> conditional, entropy = recursive_rank_entropies([0.5, 0.5], [0.25, 0.75])
    >>> round(conditional, 6), round(entropy, 6)
    (0.908909, 1.12467)
    """
    p, q, _ = validate_pair(target, draft)
    _one_pair(p, q)
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    p, q = p[p > 0], q[p > 0]
    with np.errstate(divide="ignore", over="ignore"):
        unreachable = np.isinf(p / q)
    if np.any(unreachable):
        raise SettingError(
            f"the draft lacks tokens of target probability {p[unreachable].sum():.3g}",
            limit="their rank is infinite, and H(R) needs a finite rank",
            remedy="use spectheory.verification.rank_entropy of the cut rank",
        )
    order = np.argsort(p / q, kind="stable")
    return _Sweep(p[order], q[order]).run()


@dataclass
class _Sweep:
    """One pass over the ratios p/q in ascending order; `s`, `weighted`: sums of the masses G and of G log G so far.

    `left` is the current G. Until a token's ratio is passed, P(R = r, X = x) = G q_x: so these sums give its ranks.
    """

    p: Floats
    q: Floats
    s: float = 0.0
    left: float = 1.0
    weighted: float = 0.0
    given: float = 0.0
    whole: float = 0.0

    def run(self) -> tuple[float, float]:
        """H(R|X) and H(R)."""
        ratio = self.p / self.q
        above = np.minimum(np.cumsum(self.q[::-1])[::-1], 1.0)
        # G at each ratio, summed up from steps that are positive: b (r' - r) for the step between neighbours.
        steps = np.append(above[1:] * np.diff(ratio), 0.0)
        left_at = np.cumsum(steps[::-1])[::-1]
        first = 0
        while first < ratio.size and self.left > 0:
            share, goal = float(above[first]), float(left_at[first])
            self._ranks(share, _ranks_before(self.left, goal, share))
            if goal == 0:  # the largest ratio is never passed
                self._finish(slice(first, None), ratio, np.zeros(0))
                break
            after = self.s + self.left
            passed = max(int(np.searchsorted(ratio, after, side="right")), first + 1)
            self._pass(slice(first, passed), ratio, above, left_at, after)
            first = passed
        return self.given, self.whole

    def _ranks(self, share: float, count: float) -> None:
        """Take `count` ranks, possibly without end, at which nothing is passed: each leaves 1 - share of G."""
        if count == 0:
            return
        rate = -math.log1p(-share) if share < 1 else 0.0  # of one rank at most, if share is 1
        if math.isinf(count):
            ranks, mean = 1 / share, (1 - share) / share
        else:
            ranks = -math.expm1(-count * rate) / share
            mean = float(_mean_offset(np.array(rate), np.array(count)))
        # With u = 1 - share: ranks = sum of u^j over the j-th of these ranks, spread = sum of -u^j log u^j.
        spread = rate * ranks * mean
        self.whole += share * self.left * (spread - ranks * (math.log(share) + math.log(self.left)))
        self.weighted += self.left * (ranks * math.log(self.left) - spread)
        self.s += self.left * ranks
        self.left *= 0.0 if math.isinf(count) else math.exp(-count * rate)

    def _pass(self, tokens: slice, ratio: Floats, above: Floats, left_at: Floats, after: float) -> None:
        """Take one rank at which the ratios of `tokens` are passed: each gives what it has left."""
        parts = np.maximum(self.q[tokens] * (ratio[tokens] - self.s), 0.0)
        self._finish(tokens, ratio, parts)
        further = tokens.stop < ratio.size
        mass = float(parts.sum()) + (self.left * float(above[tokens.stop]) if further else 0.0)
        self.whole += float(_surprisal(np.array(mass), 1.0))
        self.weighted += self.left * math.log(self.left)
        self.s = after
        at = tokens.stop
        self.left = float(left_at[at] + above[at] * max(ratio[at] - after, 0.0)) if further else 0.0

    def _finish(self, tokens: slice, ratio: Floats, parts: Floats) -> None:
        """Add the ranks of tokens, given each: G/r at all ranks so far, and the part at the rank that passes it."""
        entropies = self.q[tokens] * (self.s * np.log(ratio[tokens]) - self.weighted)
        self.given += float(entropies.sum())
        if parts.size:
            self.given += float(_surprisal(parts, self.p[tokens]).sum())


def _ranks_before(left: float, goal: float, share: float) -> float:
    """How many ranks leave at least `goal` of the mass `left`, when each leaves the share 1 - share; 0 at the least."""
    if goal == 0:
        return math.inf
    if goal >= left or share >= 1:
        return 0.0
    return float(math.floor(math.log(goal / left) / math.log1p(-share)))


def _surprisal(share: Floats, whole: Any) -> Floats:
    """Entrywise -share log(share/whole), 0 at 0."""
    positive = share > 0
    return np.where(positive, share * (np.log(whole) - np.log(np.where(positive, share, 1.0))), 0.0)
