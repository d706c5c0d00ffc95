"""Truncated knowledge (§9): every quantity from the top-m log-probabilities that servers give, as a certified interval.

The functions are those of full pmfs (:mod:`spectheory.divergences`, :mod:`spectheory.verification`), one position at
a time; ``mean_interval`` averages over positions.
"""

from spectheory.truncated.acceptance import (
    optimal_acceptance,
    poisson_race_acceptance,
    race_acceptance,
    token_acceptance,
)
from spectheory.truncated.candidates import (
    gumbel_list_acceptance,
    gumbel_list_acceptance_bound,
    kseq_acceptance,
    recursive_acceptance,
)
from spectheory.truncated.distinct import distinct_race_acceptance
from spectheory.truncated.divergences import (
    harmonic_mean_distance,
    harmonic_mean_similarity,
    hockey_stick,
    total_variation,
)
from spectheory.truncated.given import (
    independent_acceptance_given,
    poisson_race_acceptance_given,
    race_acceptance_given,
    token_acceptance_given,
)
from spectheory.truncated.matching import (
    argmax_acceptance,
    greedy_acceptance,
    independent_acceptance,
    top_k_acceptance,
    top_k_acceptance_given,
)
from spectheory.truncated.moments import entropy, second_log_moment
from spectheory.truncated.outward import mean_interval
from spectheory.truncated.rank_entropy import largest_rank_entropy, poisson_rank_entropy
from spectheory.truncated.ranks import (
    poisson_rank_pmf,
    poisson_rank_pmf_given,
    recursive_acceptance_given,
    recursive_rank_pmf,
    recursive_rank_pmf_given,
)
from spectheory.truncated.top import TopLogProbs
from spectheory.truncated.unbounded import chi_square, kl_divergence, renyi_divergence

__all__ = [
    "TopLogProbs",
    "argmax_acceptance",
    "chi_square",
    "distinct_race_acceptance",
    "entropy",
    "greedy_acceptance",
    "gumbel_list_acceptance",
    "gumbel_list_acceptance_bound",
    "harmonic_mean_distance",
    "harmonic_mean_similarity",
    "hockey_stick",
    "independent_acceptance",
    "independent_acceptance_given",
    "kl_divergence",
    "kseq_acceptance",
    "largest_rank_entropy",
    "mean_interval",
    "optimal_acceptance",
    "poisson_race_acceptance",
    "poisson_race_acceptance_given",
    "poisson_rank_entropy",
    "poisson_rank_pmf",
    "poisson_rank_pmf_given",
    "race_acceptance",
    "race_acceptance_given",
    "recursive_acceptance",
    "recursive_acceptance_given",
    "recursive_rank_pmf",
    "recursive_rank_pmf_given",
    "renyi_divergence",
    "second_log_moment",
    "token_acceptance",
    "token_acceptance_given",
    "top_k_acceptance",
    "top_k_acceptance_given",
    "total_variation",
]
