"""R8: the rules that take several candidates, side by side at one pair and one number of candidates."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import validate_pair
from spectheory.divergences import entropy, kl_divergence
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.verification.base import RankRule, Rule, at_least_one
from spectheory.verification.distinct import MOST_WORK
from spectheory.verification.gumbel_list import GumbelList
from spectheory.verification.kseq import KSeq
from spectheory.verification.matching import TopKMatch
from spectheory.verification.optimal import optimal_acceptance
from spectheory.verification.poisson import PoissonRace
from spectheory.verification.race import RaceVerification
from spectheory.verification.rank_entropy import one_pair, poisson_rank_entropy, rank_entropy
from spectheory.verification.recursive import RecursiveRejection
from spectheory.verification.recursive_entropy import recursive_rank_entropies

Floats = NDArray[np.float64]
Side = Literal["exact", "lower bound", "none"]

_MOST_RACE = 1 << 18
"""Largest V^2 k at which the race's list is integrated; each unit is some 400 evaluations, so this is seconds."""
_MOST_ORDERED = 8
"""Largest V of which all V^V orders of rejection are enumerated."""
_TOLERANCE = 1e-3
"""Width of the rank entropy of the Poisson race, nats: three digits are shown."""


@dataclass(frozen=True)
class RuleStanding:
    """What one rule gives with k candidates, beside the largest acceptance of any rule with i.i.d. candidates.

    Attributes
    ----------
    rule : str
        Name of the rule; ``optimal`` is R4 itself.
    acceptance : float, optional
        Probability that the output is among the k candidates; None where it was not computed.
    side : {"exact", "lower bound", "none"}
        What `acceptance` is.
    iid : bool
        Whether candidates are i.i.d. from the draft, so that R4 is an upper bound; else R4 may be exceeded.
    gap : float, optional
        R4 less `acceptance`; negative where a rule of distinct candidates exceeds R4. Of a lower bound: at most this.
    rank_entropy : Interval, optional
        H(R) of the whole rank, nats; None where it depends on k, is infinite or was not computed.
    above_kl : float, optional
        The best value of `rank_entropy` less KL; negative for distinct candidates at times, never for i.i.d. ones.
    note : str
        Why something is missing, or what the bound is.

    Examples
    --------
    >>> row = rule_order([0.5, 0.5], [0.9, 0.1], 2)[-1]
    >>> row.rule, row.acceptance, round(row.gap, 3)
    ('topk', 1.0, -0.31)
    """

    rule: str
    acceptance: float | None
    side: Side
    iid: bool
    gap: float | None
    rank_entropy: Interval | None
    above_kl: float | None
    note: str


def rule_order(target: Any, draft: Any, k: int) -> list[RuleStanding]:
    """Every rule with several candidates at one pair: acceptance, gap to R4, rank entropy against KL (R8).

    R1, R3 (i.i.d.), R5 and R6 never exceed R4; R2 is at least R1 and, like R7 and R3 with distinct candidates, may
    exceed R4. Costs O(V log V) or O(V) a step throughout, seconds at 30,000 tokens: what would cost O(V^2) is left out,
    or replaced by a lower bound, for large V, and the note says so.

    Parameters
    ----------
    target, draft : array ``[V]``
        Pmfs over one vocabulary.
    k : int
        Candidates at the position, at least 1.

    Returns
    -------
    list of RuleStanding
        R4 first, then the rules R1 to R7 in that order.

    Raises
    ------
    SettingError
        If k < 1.
    PmfError, ShapeError
        If the arrays are not pmfs, do not fit, or are more than one pair.

    Examples
    --------
    >>> for row in rule_order([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 2):
    ...     print(f"{row.rule:<19}{row.acceptance:.3f} {row.gap:+.3f}")
    optimal            0.860 +0.000
    poisson            0.804 +0.056
    race               0.889 -0.029
    recursive          0.760 +0.100
    recursive-distinct 0.820 +0.040
    kseq               0.791 +0.069
    gumbel-list        0.774 +0.086
    topk               0.500 +0.360
    """
    at_least_one("k", k)
    p, q, _ = validate_pair(target, draft)
    one_pair(p, q)
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    found = [_optimal(p, q, k), _poisson(p, q, k), _race(p, q, k), _recursive(p, q, k), _distinct(p, q, k)]
    found += [_judged_together(rule, p, q, k) for rule in (KSeq(), GumbelList())] + [_top_k(p, q, k)]
    most, kl = found[0].acceptance or 0.0, float(kl_divergence(p, q))
    return [_compared(row, most, kl) for row in found]


def _row(
    rule: Rule | str,
    acceptance: Any,
    *,
    iid: bool,
    side: Side = "exact",
    rank_entropy: Interval | None = None,
    note: str = "",
) -> RuleStanding:
    name = rule if isinstance(rule, str) else rule.name
    value = None if acceptance is None else float(acceptance)
    return RuleStanding(name, value, side, iid, None, rank_entropy, None, note)


def _compared(row: RuleStanding, most: float, kl: float) -> RuleStanding:
    """The row with its distance to R4 and to KL."""
    gap = None if row.acceptance is None else most - row.acceptance
    above = row.rank_entropy.best - kl if row.rank_entropy is not None and math.isfinite(kl) else None
    return RuleStanding(row.rule, row.acceptance, row.side, row.iid, gap, row.rank_entropy, above, row.note)


def _optimal(p: Floats, q: Floats, k: int) -> RuleStanding:
    return _row("optimal", optimal_acceptance(p, q, k), iid=True, note="the most with i.i.d. candidates (R4)")


def _poisson(p: Floats, q: Floats, k: int) -> RuleStanding:
    rule = PoissonRace()
    whole, note = _finite(lambda: poisson_rank_entropy(p, q, tolerance=_TOLERANCE))
    return _row(rule, rule.acceptance(p, q, k), iid=True, rank_entropy=whole, note=note)


def _recursive(p: Floats, q: Floats, k: int) -> RuleStanding:
    rule = RecursiveRejection()
    whole, note = _finite(lambda: Interval.exact(recursive_rank_entropies(p, q)[1]))
    return _row(rule, rule.acceptance(p, q, k), iid=True, rank_entropy=whole, note=note)


def _finite(entropy_of_rank: Callable[[], Interval]) -> tuple[Interval | None, str]:
    """The entropy, or why there is none: a draft that lacks a token of the target."""
    try:
        return entropy_of_rank(), ""
    except SettingError as error:
        return None, f"no rank entropy: {error.what}"


def _race(p: Floats, q: Floats, k: int) -> RuleStanding:
    """The list of distinct tokens; where it is too long the Poisson race, which wastes candidates on duplicates."""
    rule = RaceVerification()
    if k == 1 or p.size**2 * k <= _MOST_RACE:
        return _row(rule, rule.acceptance(p, q, k), iid=False, rank_entropy=_whole(rule, p, q, p.size**3 <= _MOST_RACE))
    note = f"O(V^2 k) at {p.size} tokens left out; the bound is the Poisson race"
    return _row(rule, PoissonRace().acceptance(p, q, k), iid=False, side="lower bound", note=note)


def _distinct(p: Floats, q: Floats, k: int) -> RuleStanding:
    rule = RecursiveRejection(replacement=False)
    if 1 < k < p.size and p.size**k > MOST_WORK:
        return _row(rule, None, iid=False, side="none", note=f"V^k orders at {p.size} tokens: see rank_pmf_estimate")
    whole = _whole(rule, p, q, p.size <= _MOST_ORDERED)
    # As many candidates as tokens: the last of them is the output for sure.
    return _row(rule, rule.acceptance(p, q, k) if k < p.size else 1.0, iid=False, rank_entropy=whole)


def _whole(rule: RankRule, p: Floats, q: Floats, cheap: bool) -> Interval | None:
    """H(R) over all V ranks of distinct tokens (and "none")."""
    return Interval.exact(float(rank_entropy(rule.rank_pmf(p, q, p.size)))) if cheap else None


def _judged_together(rule: KSeq | GumbelList, p: Floats, q: Floats, k: int) -> RuleStanding:
    return _row(rule, rule.acceptance(p, q, k), iid=True, note="the law of its rank depends on k")


def _top_k(p: Floats, q: Floats, k: int) -> RuleStanding:
    """R names the output: H(R) = H(p)."""
    rule = TopKMatch()
    return _row(rule, rule.acceptance(p, q, k), iid=False, rank_entropy=Interval.exact(float(entropy(p))))
