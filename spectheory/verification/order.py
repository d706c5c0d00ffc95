"""R8: every rule side by side, at one pair and one number of candidates, or in the mean over pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spectheory.checks import generator, instances
from spectheory.distributions import as_numpy, validate_pair
from spectheory.divergences import kl_divergence
from spectheory.intervals import Interval
from spectheory.verification.base import Drafts, Floats, Rule, Side, at_least_one
from spectheory.verification.optimal import optimal_acceptance
from spectheory.verification.registry import BUILT_IN


@dataclass(frozen=True)
class RuleStanding:
    """What one rule gives with k candidates, beside the largest acceptance of any rule with i.i.d. candidates.

    `acceptance` is the probability that the output is among the candidates, `side` what it is (the interval of an
    estimate is a 95% one), `optimum` alpha*_k (R4), None for a rule whose output is no sample of the target.
    `rank_entropy` is H(R) of the whole rank in nats, `above_kl` its best value less KL, negative only if candidates are
    not i.i.d. `note` says why something is missing, or what the bound is. The rule ``optimal`` is R4 itself.

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
    drafts: Drafts = "drawn"
    rank_entropy: Interval | None = None
    above_kl: float | None = None
    note: str = ""

    @property
    def iid(self) -> bool:
        """Whether candidates, however many, are i.i.d. from the draft: what R4 and H(R) >= KL assume."""
        return self.drafts == "drawn"

    @property
    def limited(self) -> bool:
        """Whether R4 is an upper bound on the acceptance: of distinct candidates at k = 1 alone."""
        return self.iid or (self.k == 1 and self.drafts == "distinct")

    @property
    def gap(self) -> float | None:
        """R4 less the acceptance, negative only where R4 is no limit; of a lower bound: at most this."""
        return None if self.acceptance is None or self.optimum is None else self.optimum - self.acceptance.best


def rule_order(
    target: Any,
    draft: Any,
    k: int,
    *,
    rules: Sequence[Rule] | None = None,
    rng: np.random.Generator | None = None,
) -> list[RuleStanding]:
    r"""Every rule at one pair: acceptance, gap to R4, rank entropy against KL (R8, exact); of several pairs the means.

    With as many candidates, :math:`\alpha_{R1}, \alpha_{R3}, \alpha_{R5}, \alpha_{R6} \le \alpha^*_k` (R3 i.i.d.) and
    :math:`\alpha_{R2} \ge \alpha_{R1}`; R2, R7 and R3 with distinct candidates may exceed R4. A rule that would take
    much more than ten seconds is bounded from below, estimated (R3 with distinct candidates, if there is an `rng`) or
    left out, and the note says so. H(R) of R2 and of R3 with distinct candidates is given at small V alone (a pair of
    64 and 8 tokens).

    `rules` are by default all that read a draft model. The result begins with R4 and the rules that judge k candidates,
    in the order of their statements, then those that judge one, which are compared with alpha*_1.

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
    k = at_least_one("k", k)
    rng = None if rng is None else generator(rng)
    p, q, _ = validate_pair(target, draft)
    both = np.broadcast_arrays(as_numpy(p), as_numpy(q))
    p, q = (pmf.reshape(-1, pmf.shape[-1]) for pmf in both)
    optimum = {j: float(np.mean(optimal_acceptance(p, q, j))) for j in {1, k}}
    kl = float(np.mean(kl_divergence(p, q)))
    note = "the most with i.i.d. candidates (R4)"
    rows = [RuleStanding("optimal", k, Interval.exact(optimum[k]), optimum=optimum[k], note=note)]
    usual = (rule for rule in BUILT_IN if rule.uses_draft and not rule.grows)
    compared = instances(
        "rules", usual if rules is None else rules, Rule, remedy="[spectheory.verification.PoissonRace()] is one"
    )
    several = sorted((rule for rule in compared if rule.several), key=lambda rule: rule.statement or "user")
    for rule in (*several, *(rule for rule in compared if not rule.several)):
        row = _standing(rule, p, q, k if rule.several else 1, rng)
        above = row.rank_entropy.best - kl if row.rank_entropy is not None and math.isfinite(kl) else None
        rows.append(replace(row, optimum=optimum[row.k] if rule.output == "sample" else None, above_kl=above))
    return rows


def _standing(rule: Rule, p: Floats, q: Floats, k: int, rng: np.random.Generator | None) -> RuleStanding:
    """One rule at its number of candidates."""
    accepted = rule.mean_acceptance(p, q, k, rng)
    entropy, missing = rule.mean_rank_entropy(p, q)
    return RuleStanding(
        rule.name,
        k,
        accepted.value,
        accepted.side,
        drafts=rule.drafts,
        rank_entropy=entropy,
        note=accepted.note or missing,
    )
