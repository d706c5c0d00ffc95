"""Truncated knowledge (§9): every quantity from the top-m log-probabilities that servers give, as a certified interval.

The functions mirror those of full pmfs (:mod:`spectheory.divergences`, :mod:`spectheory.verification`), one position
at a time; :func:`mean_interval` averages over positions. All of them share one contract:

- `target` and `draft` are :class:`TopLogProbs` over one vocabulary; two vocabularies are a ``ShapeError``. Numbers out
  of range (k below 1, a token outside the vocabulary, an output the target cannot give) are a ``SettingError``.
- The answer is an :class:`~spectheory.Interval` that holds the value of every pair of pmfs that agrees with the lists
  (nats; probabilities in [0, 1]). It is ``exact`` where the lists decide the value, else of kind ``bound``; ``best`` is
  the middle, or the low end where the high one is infinite, and claims nothing.
- Unless a function says more, the high end of an acceptance (the low end of a divergence) is attained at the best
  completion, and the other end at the disjoint tails if ceil(s/a) + ceil(t/b) <= n; otherwise that end is certain but
  loose. :mod:`spectheory.truncated.completions` defines both and proves it. Ends are rounded outward.
"""

from spectheory.truncated.divergences import (
    chi_square,
    entropy,
    harmonic_mean_distance,
    harmonic_mean_similarity,
    hockey_stick,
    kl_divergence,
    renyi_divergence,
    second_log_moment,
    total_variation,
)
from spectheory.truncated.rank_entropy import largest_rank_entropy, poisson_rank_entropy
from spectheory.truncated.ranks import gumbel_list_acceptance_bound, optimal_acceptance
from spectheory.truncated.rules import acceptance, acceptance_given, bounds_given, rank_pmf, rank_pmf_given
from spectheory.truncated.top import TopLogProbs, mean_interval

__all__ = [
    "TopLogProbs",
    "acceptance",
    "acceptance_given",
    "bounds_given",
    "chi_square",
    "entropy",
    "gumbel_list_acceptance_bound",
    "harmonic_mean_distance",
    "harmonic_mean_similarity",
    "hockey_stick",
    "kl_divergence",
    "largest_rank_entropy",
    "mean_interval",
    "optimal_acceptance",
    "poisson_rank_entropy",
    "rank_pmf",
    "rank_pmf_given",
    "renyi_divergence",
    "second_log_moment",
    "total_variation",
]
