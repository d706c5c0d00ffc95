"""KL(P||Q) <= H(R|X) <= H(R): the rank as a channel code, for the rules of which it is true (li2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from spectheory.checks import instance
from spectheory.distributions import validate_pair
from spectheory.divergences import kl_divergence
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.verification.base import RankRule, Rule
from spectheory.verification.poisson import PoissonRace
from spectheory.verification.rank_entropy import (
    _one_pair,
    poisson_rank_entropy,
    poisson_rank_entropy_given,
    recursive_rank_entropies,
    tolerance_in_nats,
)
from spectheory.verification.recursive import RecursiveRejection


@dataclass(frozen=True)
class RankInformation:
    """KL(P||Q), H(R|X) and H(R) of the whole rank, nats, in ascending order.

    Examples
    --------
    >>> info = entropy_at_least_kl(PoissonRace(), [0.5, 0.5], [0.25, 0.75])
    >>> info.kl <= info.conditional.low <= info.entropy.low
    True
    """

    kl: float
    conditional: Interval
    entropy: Interval


def entropy_at_least_kl(rule: Rule, target: Any, draft: Any, *, tolerance: float = 1e-6) -> RankInformation:
    """KL(P||Q) <= H(R|X) <= H(R), all in nats, for a rule of which it holds (§3; ``li2018``).

    Assumes that the candidates are i.i.d. from Q and that R is almost surely finite and not cut: the Poisson race (R1)
    and recursive rejection with i.i.d. candidates (R3), of which the draft lacks no token of the target. Then the rank
    picks the output out of a list that knows nothing of P, and is a code for it. **It is false otherwise**, and other
    rules are refused: distinct tokens at p = (.999, .001), q = (.001, .999) have KL = 6.893 and H(R) = .0144 (R2); one
    cut candidate at p = (.999, .001), q = (.01, .99) has 4.59 and .06. H(R) of the Poisson race is at most `tolerance`
    wide; all else is exact.

    Examples
    --------
    >>> info = entropy_at_least_kl(PoissonRace(), [0.5, 0.5], [0.25, 0.75])
    >>> print(f"{info.kl:.3f}", info.conditional, info.entropy)
    0.144 0.693 0.909
    """
    tolerance_in_nats(tolerance)
    _admit(rule)
    p, q, _ = validate_pair(target, draft)
    _one_pair(p, q)
    kl = float(kl_divergence(p, q))
    if math.isinf(kl):
        raise SettingError(
            "the draft lacks a token of the target",
            limit="then R and KL are infinite, and H(R) >= KL says nothing",
            remedy="give every token of the target some draft probability",
        )
    if isinstance(rule, PoissonRace):
        entropy = poisson_rank_entropy(p, q, tolerance=tolerance)
        return RankInformation(kl, Interval.exact(float(poisson_rank_entropy_given(p, q))), entropy)
    return RankInformation(kl, *map(Interval.exact, recursive_rank_entropies(p, q)))


def _admit(rule: Rule) -> None:
    """Let in the rules of which the theorem holds; say why not the others."""
    instance("rule", rule, Rule, remedy="spectheory.verification.PoissonRace() is one")
    if isinstance(rule, PoissonRace | RecursiveRejection) and rule.drafts == "drawn":
        return
    if isinstance(rule, RankRule) and rule.drafts != "drawn":
        why = "its candidates are distinct, not i.i.d. from the draft, and H(R) may lie below KL"
    elif rule.several and not isinstance(rule, RankRule):
        why = "its rank is cut at k candidates and its law depends on k, so H(R) may lie below KL"
    else:
        why = "it is not known to have i.i.d. candidates and an uncut rank, and H(R) may lie below KL"
    raise SettingError(
        f"H(R) >= KL is asked of rule {rule.name!r}",
        limit=why,
        remedy="use the Poisson race or recursive rejection with i.i.d. candidates, or "
        "spectheory.verification.rank_entropy without the claim",
    )
