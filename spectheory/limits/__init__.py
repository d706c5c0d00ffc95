"""Limits: channel (T1), drafts that do not sample (B1-B6, B8, B9), several chains (§12), drafts at a price (B10),
rejections, bias, entropies.

Shared contract: pmfs, texts and settings are checked once, as the package's docstring says. Bounds on E[X] do not count
the recovered or bonus token; tokens per call do. Each function names its assumptions. An i.i.d. formula applied to real
text gives an *i.i.d. reading*, which real text may exceed.
"""

from spectheory.limits.bias import (
    BiasFrontier,
    bias_frontier,
    biased_loss,
    mean_bias_frontier,
    mixture_target,
    optimal_recovery,
    rejection_probability,
    uno_loss,
)
from spectheory.limits.branching import branching_bound, branching_speedup
from spectheory.limits.channel import tunstall_bound
from spectheory.limits.cost_optimal import least_decoding_cost
from spectheory.limits.cross_entropy import (
    acceptance_at_least,
    first_choice_at_least,
    first_choice_at_most,
    race_acceptance_at_least,
    sufficient_divergence,
    total_variation_at_most,
)
from spectheory.limits.imperfect import ImperfectTree, imperfect_tree
from spectheory.limits.mean_acceptance import least_tokens_per_call, most_tokens_per_call, tokens_per_call_between
from spectheory.limits.random_trees import random_tree_totals, random_tree_value, stationary_tree_value
from spectheory.limits.rejections import (
    batch_expected_rejections,
    batch_limit,
    expected_calls,
    expected_rejections,
    rejection_profile,
    rejections_of_text,
)
from spectheory.limits.renewal import renewal_bound
from spectheory.limits.several_chains import several_chain_terms, several_chains_bound
from spectheory.limits.step_law import StepLaw
from spectheory.limits.text import branching_bound_from_text, window_bound

__all__ = [
    "BiasFrontier",
    "ImperfectTree",
    "StepLaw",
    "acceptance_at_least",
    "batch_expected_rejections",
    "batch_limit",
    "bias_frontier",
    "biased_loss",
    "branching_bound",
    "branching_bound_from_text",
    "branching_speedup",
    "expected_calls",
    "expected_rejections",
    "first_choice_at_least",
    "first_choice_at_most",
    "imperfect_tree",
    "least_decoding_cost",
    "least_tokens_per_call",
    "mean_bias_frontier",
    "mixture_target",
    "most_tokens_per_call",
    "optimal_recovery",
    "race_acceptance_at_least",
    "random_tree_totals",
    "random_tree_value",
    "rejection_probability",
    "rejection_profile",
    "rejections_of_text",
    "renewal_bound",
    "several_chain_terms",
    "several_chains_bound",
    "stationary_tree_value",
    "sufficient_divergence",
    "tokens_per_call_between",
    "total_variation_at_most",
    "tunstall_bound",
    "uno_loss",
    "window_bound",
]
