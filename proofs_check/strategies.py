"""Hypothesis strategies: pmfs as language models have them and as they break formulas.

`pmfs` and `pairs` are arrays of floats. The others are tuples of fractions, zeros and extremes included, so that no
rounding stands between a formula and its check.
"""

from proofs_check.library.strategies import (
    draft_trees,
    exact_pairs,
    exact_pmfs,
    extreme_pairs,
    markov_chains,
    models,
    pairs,
    pairs_at,
    pmfs,
    rank_laws,
    sparse_pmfs,
    theorem,
)

__all__ = [
    "draft_trees",
    "exact_pairs",
    "exact_pmfs",
    "extreme_pairs",
    "markov_chains",
    "models",
    "pairs",
    "pairs_at",
    "pmfs",
    "rank_laws",
    "sparse_pmfs",
    "theorem",
]
