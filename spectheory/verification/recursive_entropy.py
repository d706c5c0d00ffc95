r"""The entropy of the whole rank of recursive rejection with i.i.d. candidates (R3), by one sort.

The mass left after m rejections is :math:`G(s) = \sum_x (p_x - s q_x)_+` at :math:`s = s_{m+1}`, linear between
neighbouring ratios p/q, and the next s is s + G. So while no ratio is passed each rejection takes the same share of G,
the draft's mass of ratios above s: R is geometric piece by piece, and a piece is one closed form, however long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import validate_pair
from spectheory.errors import SettingError
from spectheory.verification.geometric_mixture import mean_offset
from spectheory.verification.rank_entropy import one_pair

Floats = NDArray[np.float64]


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
    one_pair(p, q)
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    p, q = p[p > 0], q[p > 0]
    with np.errstate(divide="ignore", over="ignore"):
        lacking = np.isinf(p / q)
    if np.any(lacking):
        raise SettingError(
            f"the draft lacks tokens of target probability {p[lacking].sum():.3g}",
            limit="their rank is infinite, and H(R) needs a finite rank",
            remedy="use rank_entropy of the cut rank",
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
            mean = float(mean_offset(np.array(rate), np.array(count)))
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
        own = self.q[tokens] * (self.s * np.log(ratio[tokens]) - self.weighted)
        self.given += float(own.sum())
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
