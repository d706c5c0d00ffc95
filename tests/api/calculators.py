"""Every calculator on arrays with a right call, a row each; what all of them promise is in test_calculators.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import spectheory
from spectheory import limits, verification
from spectheory.drafting import KAry, exit_law, expected_tokens, node_weights, survival
from spectheory.verification import (
    BiasedVerification,
    GumbelList,
    KSeq,
    PoissonRace,
    RaceVerification,
    RelaxedAcceptance,
    TargetThresholds,
    TypicalAcceptance,
)
from spectheory.verification.optimal import optimal_rejections

DISTINCT = verification.RecursiveRejection(replacement=False)

OF_PAIRS: dict[str, Callable[..., Any]] = {
    name: getattr(spectheory, name)
    for name in (
        *("chi_square", "harmonic_mean_distance", "harmonic_mean_similarity", "kl_divergence", "total_variation"),
    )
}
"""Of two pmfs ``[..., V]``: leading axes broadcast, and stand in front of what comes out."""
OF_PAIRS |= {
    **{
        f"renyi {a}": lambda p, q, a=a: spectheory.renyi_divergence(p, q, a) for a in (0.5, 1.0, 2.0, 3.0, 10.0, np.inf)
    },
    "hockey stick": lambda p, q: spectheory.hockey_stick(p, q, 1.5),
    "inequalities": lambda p, q: verification.race_inequalities(p, q).reciprocals,
    "optimal": lambda p, q: verification.optimal_acceptance(p, q, 3),
    "optimal to k": lambda p, q: verification.optimal_acceptances(p, q, 3),
    "rejections to k": lambda p, q: optimal_rejections(p, q, 3),
    "mixture": lambda p, q: limits.mixture_target(p, q, 0.3),
    "front, loss": lambda p, q: limits.bias_frontier(p, q, points=3).loss,
    "front, reject": lambda p, q: limits.bias_frontier(p, q, points=3).reject,
    "front, uno": lambda p, q: limits.bias_frontier(p, q, points=3).uno,
    "biased loss": lambda p, q: limits.biased_loss(p, q, p**0),
    "uno loss": lambda p, q: limits.uno_loss(p, q, p**0),
    "rejection": lambda p, q: limits.rejection_probability(p, q, p**0),
    "recovery": lambda p, q: limits.optimal_recovery(p, q, p**0),
    "k-seq": lambda p, q: KSeq().acceptance(p, q, 3),
    "k-seq given": lambda p, q: KSeq().acceptance_given(p, q, 3),
    "k-seq ranks": lambda p, q: KSeq().rank_pmf(p, q, 3),
    "k-seq rho": lambda p, q: KSeq().rho(p, q, 3),
    "biased": lambda p, q: BiasedVerification(0.5).acceptance(p, q),
    "biased given": lambda p, q: BiasedVerification(0.5).acceptance_given(p, q),
    "thresholds": lambda p, q: TargetThresholds(0.9, 0.8).output_law(p, q),
    "typical": lambda p, q: TypicalAcceptance(0.3, 0.5).acceptance(p, q),
    "relaxed": lambda p, q: RelaxedAcceptance(2, 0.3).acceptance_given(p, q),
    "gumbel": lambda p, q: GumbelList().acceptance(p, q, 3),
    "gumbel given": lambda p, q: GumbelList().acceptance_given(p, q, 3),
    "gumbel bound": lambda p, q: GumbelList().acceptance_bound(p, q, 3),
    "entropy of ranks": verification.poisson_rank_entropy_given,
    "bound of log-ranks": verification.poisson_rank_log_bound,
    "mean rank, poisson": PoissonRace().expected_rank,
    "mean rank, race": RaceVerification().expected_rank,
    "mean rank, recursive": verification.RecursiveRejection().expected_rank,
}
for _rule in (*verification.RULES.values(), DISTINCT):
    OF_PAIRS[f"{_rule.name} acceptance"] = _rule.acceptance
    OF_PAIRS[f"{_rule.name} given"] = _rule.acceptance_given
    if isinstance(_rule, verification.RankRule):
        OF_PAIRS[f"{_rule.name} of 3"] = lambda p, q, rule=_rule: rule.acceptance(p, q, 3)
        OF_PAIRS[f"{_rule.name} ranks"] = lambda p, q, rule=_rule: rule.rank_pmf(p, q, 3)
        OF_PAIRS[f"{_rule.name} ranks given"] = lambda p, q, rule=_rule: rule.rank_pmf_given(p, q, 0, 3)

RNG = np.random.default_rng(7)
P, Q = RNG.dirichlet(np.full(7, 0.6), (2, 3)), RNG.dirichlet(np.full(7, 0.6), (2, 3))
CHAINS = (*RNG.dirichlet(np.ones(4), (2, 5, 4)), np.full(4, 0.25))
TOKENS = RNG.integers(7, size=(2, 3))
LAW = RNG.dirichlet(np.ones(4), 3)

OTHERS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "entropy": (spectheory.entropy, (P,)),
    "second log-moment": (spectheory.second_log_moment, (P,)),
    "mean front": (lambda tv: limits.mean_bias_frontier(tv, points=3).loss, (P[0],)),
    "rejections": (limits.expected_rejections, CHAINS),
    "rejections, 3 drafts": (lambda *chains: limits.rejection_profile(*chains, drafts=3), CHAINS),
    "rejections, all drafts": (limits.batch_limit, CHAINS),
    "tokens": (lambda law: expected_tokens(KAry((2, 3)), law), (LAW,)),
    "weights": (lambda law: node_weights(KAry((2, 3)), law), (LAW,)),
    "survival": (lambda law: survival(KAry((2, 3)), law), (LAW,)),
    "exit law": (lambda law: exit_law(KAry((2, 2)), law), (LAW,)),
    "rank entropy": (verification.rank_entropy, (LAW,)),
    "estimated ranks": (
        lambda p, q: DISTINCT.rank_pmf_estimate(p, q, 3, 50, rng=np.random.default_rng(1))[0],
        (P, Q),
    ),
    "ranks of tokens": (lambda p, q: PoissonRace().rank_pmf_given(p, q, TOKENS, 3), (P, Q)),
}
"""Of other arrays, or of pairs whose leading axes the call fixes."""
CALCULATORS = {name: (function, (P, Q)) for name, function in OF_PAIRS.items()} | OTHERS
