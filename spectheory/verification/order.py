"""R8: every rule side by side, at one pair and one number of candidates, or in the mean over pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import validate_pair
from spectheory.divergences import entropy, kl_divergence
from spectheory.errors import SettingError
from spectheory.intervals import CONFIDENCE, Interval, weakest
from spectheory.verification.base import RankRule, Rule, at_least_one
from spectheory.verification.block import BlockVerification
from spectheory.verification.distinct import MOST_WORK
from spectheory.verification.gumbel_list import GumbelList
from spectheory.verification.kseq import KSeq
from spectheory.verification.matching import ArgmaxDraft, GreedyMatch, IndependentMatch, TopKMatch
from spectheory.verification.optimal import optimal_acceptance
from spectheory.verification.poisson import PoissonRace
from spectheory.verification.race import RaceVerification
from spectheory.verification.rank_entropy import poisson_rank_entropy, rank_entropy
from spectheory.verification.recursive import RecursiveRejection
from spectheory.verification.recursive_entropy import recursive_rank_entropies
from spectheory.verification.token import TokenVerification

Floats = NDArray[np.float64]
Side = Literal["exact", "lower bound", "estimate", "none"]

_SEVERAL: tuple[Rule, ...] = (
    PoissonRace(),
    RaceVerification(),
    RecursiveRejection(),
    RecursiveRejection(replacement=False),
    KSeq(),
    GumbelList(),
    TopKMatch(),
)
_SINGLE: tuple[Rule, ...] = (
    TokenVerification(),
    BlockVerification(),
    IndependentMatch(),
    ArgmaxDraft(),
    GreedyMatch(),
)
_DISTINCT = ("race", "recursive-distinct")
"""Candidates are distinct; the first of them is a draw of the draft."""
_CHOSEN = ("topk", "argmax", "greedy")
"""Candidates are the draft's most probable tokens, not drawn."""

_BATCHES = 20
"""Independent estimates, from whose spread the interval comes."""
_TOLERANCE = 1e-5
"""Width of the rank entropy of the Poisson race, nats: four digits are shown."""


@dataclass(frozen=True)
class RuleStanding:
    """What one rule gives with k candidates, beside the largest acceptance of any rule with i.i.d. candidates.

    Attributes
    ----------
    rule : str
        Name of the rule; ``optimal`` is R4 itself.
    k : int
        Candidates it was given.
    acceptance : Interval, optional
        Probability that the output is among them; None where it was not computed.
    side : {"exact", "lower bound", "estimate", "none"}
        What ``acceptance.best`` is; the interval of an estimate is a 95% one.
    optimum : float, optional
        alpha*_k (R4) for as many candidates; None of a rule whose output is not the target's sample.
    rank_entropy : Interval, optional
        H(R) of the whole rank, nats; None where it depends on k, is infinite or was not computed.
    above_kl : float, optional
        The best value of `rank_entropy` less KL; negative for distinct candidates at times, never for i.i.d. ones.
    note : str
        Why something is missing, or what the bound is.

    Examples
    --------
    >>> row = rule_order([0.5, 0.5], [0.9, 0.1], 2)[7]
    >>> row.rule, row.acceptance.best, round(row.gap, 3), row.limited
    ('topk', 1.0, -0.31, False)
    """

    rule: str
    k: int
    acceptance: Interval | None
    side: Side = "exact"
    optimum: float | None = None
    rank_entropy: Interval | None = None
    above_kl: float | None = None
    note: str = ""

    @property
    def iid(self) -> bool:
        """Whether candidates, however many, are i.i.d. from the draft: what R4 and H(R) >= KL assume."""
        return self.rule not in (*_DISTINCT, *_CHOSEN)

    @property
    def limited(self) -> bool:
        """Whether R4 is an upper bound on the acceptance: of distinct candidates at k = 1 alone."""
        return self.iid or (self.k == 1 and self.rule in _DISTINCT)

    @property
    def gap(self) -> float | None:
        """R4 less the acceptance, negative only where R4 is no limit; of a lower bound: at most this."""
        return None if self.acceptance is None or self.optimum is None else self.optimum - self.acceptance.best


def rule_order(target: Any, draft: Any, k: int, *, rng: np.random.Generator | None = None) -> list[RuleStanding]:
    r"""Every rule at one pair: acceptance, gap to R4, rank entropy against KL (R8, exact); of several pairs the means.

    With as many candidates, :math:`\alpha_{R1}, \alpha_{R3}, \alpha_{R5}, \alpha_{R6} \le \alpha^*_k` (R3 i.i.d.)
    and :math:`\alpha_{R2} \ge \alpha_{R1}`; R2, R7 and R3 with distinct candidates may exceed R4. A rule that would
    take much more than ten seconds is bounded from below, estimated or left out, and the note says so. H(R) of R2
    and of R3 with distinct candidates is given at small V alone (a pair of 64 and 8 tokens).

    Parameters
    ----------
    target, draft : array ``[..., V]``
        Pmfs over one vocabulary; leading dimensions broadcast.
    k : int
        Candidates at the position, at least 1.
    rng : numpy.random.Generator, optional
        For an estimate of R3 with distinct candidates where it is too long to enumerate; without, there is none.

    Returns
    -------
    list of RuleStanding
        R4, the rules R1 to R7 in that order, then token and block verification and A4, which judge one candidate
        (k = 1) and are compared with alpha*_1.

    Raises
    ------
    SettingError
        If k < 1.
    PmfError, ShapeError
        If the arrays are not pmfs, or do not fit.

    Examples
    --------
    >>> for row in rule_order([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 2)[:-1]:
    ...     print(f"{row.rule:<19}{row.k} {row.acceptance.best:.3f} {row.gap:+.3f}")
    optimal            2 0.860 +0.000
    poisson            2 0.804 +0.056
    race               2 0.889 -0.029
    recursive          2 0.760 +0.100
    recursive-distinct 2 0.820 +0.040
    kseq               2 0.791 +0.069
    gumbel-list        2 0.774 +0.086
    topk               2 0.500 +0.360
    token              1 0.700 +0.000
    block              1 0.700 +0.000
    independent        1 0.290 +0.410
    argmax             1 0.200 +0.500
    """
    at_least_one("k", k)
    p, q, _ = validate_pair(target, draft)
    both = np.broadcast_arrays(*(np.asarray(pmf, dtype=np.float64) for pmf in (p, q)))
    p, q = (pmf.reshape(-1, pmf.shape[-1]) for pmf in both)
    optimum = {j: float(np.mean(optimal_acceptance(p, q, j))) for j in {1, k}}
    kl = float(np.mean(kl_divergence(p, q)))
    rows = [RuleStanding("optimal", k, Interval.exact(optimum[k]), note="the most with i.i.d. candidates (R4)")]
    rows += [_standing(rule, p, q, k, rng) for rule in _SEVERAL]
    rows += [_standing(rule, p, q, 1, rng) for rule in _SINGLE]
    return [_compared(row, optimum[row.k], kl) for row in rows]


def _compared(row: RuleStanding, optimum: float, kl: float) -> RuleStanding:
    """The row beside R4, unless its output is not the target's sample, and beside KL."""
    above = row.rank_entropy.best - kl if row.rank_entropy is not None and math.isfinite(kl) else None
    return replace(row, optimum=None if row.rule == GreedyMatch.name else optimum, above_kl=above)


def _standing(rule: Rule, p: Floats, q: Floats, k: int, rng: np.random.Generator | None) -> RuleStanding:
    acceptance, side, note = _acceptance(rule, p, q, k, rng)
    whole, missing = _entropy(rule, p, q)
    return RuleStanding(rule.name, k, acceptance, side, rank_entropy=whole, note=note or missing)


def _acceptance(
    rule: Rule, p: Floats, q: Floats, k: int, rng: np.random.Generator | None
) -> tuple[Interval | None, Side, str]:
    """Mean acceptance, what it is, and why it is not exact where that would take minutes."""
    pairs, tokens = p.shape
    if isinstance(rule, RaceVerification) and k > 1 and 2 * pairs * tokens**2 * k > MOST_WORK:
        note = f"O(V^2 k) at {pairs} x {tokens} tokens left out; the bound is the Poisson race"
        return _at_least(PoissonRace().acceptance(p, q, k)), "lower bound", note
    if isinstance(rule, GumbelList) and 32 * p.size > MOST_WORK:
        note = f"200 passes over {pairs} x {tokens} tokens left out; the bound is the printed one"
        return _at_least(rule.acceptance_bound(p, q, k)), "lower bound", note
    if isinstance(rule, RecursiveRejection) and not rule.replacement and k > 1:
        if k >= tokens:  # the last of as many candidates as tokens is the output for sure
            return Interval.exact(1.0), "exact", ""
        if pairs * tokens**k > MOST_WORK:
            note = f"{pairs} x {tokens}^{k} orders of rejection left out; "
            if rng is None:
                return None, "none", note + "rng or rank_pmf_estimate gives an estimate"
            return _estimated(rule, p, q, k, rng), "estimate", note + "drawn at random, 95% interval"
    return Interval.exact(float(np.mean(rule.acceptance(p, q, k)))), "exact", ""


def _at_least(bounds: Any) -> Interval:
    low = float(np.mean(bounds))
    return Interval(low, low, max(low, 1.0), "bound")


def _estimated(rule: RecursiveRejection, p: Floats, q: Floats, k: int, rng: np.random.Generator) -> Interval:
    """P(R <= k) of distinct candidates from drawn rejections: the mean of independent batches, Student."""
    from scipy.stats import t as student

    trials = max(2, min(1000, MOST_WORK // (2 * _BATCHES * p.size * k)))
    means = [float(np.mean(rule.rank_pmf_estimate(p, q, k, trials, rng=rng)[0].sum(axis=-1))) for _ in range(_BATCHES)]
    best = float(np.mean(means))
    width = float(student.ppf((1 + CONFIDENCE) / 2, _BATCHES - 1) * np.std(means, ddof=1)) / _BATCHES**0.5
    return Interval(max(best - width, 0.0), best, max(min(best + width, 1.0), best), "statistical")


def _entropy(rule: Rule, p: Floats, q: Floats) -> tuple[Interval | None, str]:
    """Mean H(R) of the whole rank, or why there is none."""
    pairs, tokens = p.shape
    if isinstance(rule, KSeq | GumbelList):
        return None, "no H(R): the law of R depends on k"
    if isinstance(rule, TopKMatch):  # R names the output
        return Interval.exact(float(np.mean(entropy(p)))), ""
    if isinstance(rule, RaceVerification):
        return _of_law(rule, p, q) if 64 * pairs * tokens**3 <= MOST_WORK else None, ""
    if isinstance(rule, RecursiveRejection) and not rule.replacement:
        return _of_law(rule, p, q) if pairs * tokens**tokens <= MOST_WORK else None, ""
    return _of_iid(rule, p, q) if isinstance(rule, PoissonRace | RecursiveRejection) else (None, "")


def _of_law(rule: RankRule, p: Floats, q: Floats) -> Interval:
    """H(R) over all V ranks of distinct tokens (and "none")."""
    return Interval.exact(float(np.mean(rank_entropy(rule.rank_pmf(p, q, p.shape[1])))))


def _of_iid(rule: PoissonRace | RecursiveRejection, p: Floats, q: Floats) -> tuple[Interval | None, str]:
    """H(R) of endless i.i.d. candidates, pair by pair."""
    if 32 * p.size > MOST_WORK:
        return None, f"no H(R): {len(p)} x {p.shape[1]} tokens would take minutes"
    pairs = zip(p, q, strict=True)
    try:
        if isinstance(rule, PoissonRace):
            return _mean([poisson_rank_entropy(*pair, tolerance=_TOLERANCE) for pair in pairs]), ""
        return _mean([Interval.exact(recursive_rank_entropies(*pair)[1]) for pair in pairs]), ""
    except SettingError:
        return None, "no H(R): the draft lacks tokens of the target, whose rank is infinite"


def _mean(found: Sequence[Interval]) -> Interval:
    low, best, high = (float(np.mean([getattr(one, end) for one in found])) for end in ("low", "best", "high"))
    return Interval(low, best, high, weakest(*(one.kind for one in found)))
