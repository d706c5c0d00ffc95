"""Top-k, top-p and min-p over the whole vocabulary, without sorting whole rows."""

from __future__ import annotations

from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.measure.columns.supports import cuts, kept


def log_pmf(logits: Tensor, sampling: Sampling) -> Tensor:
    """Log-probabilities ``[rows, V]`` (nats, -inf where cut), equal to those of :meth:`Sampling.log_pmf` but faster."""
    if not cuts(sampling, logits.shape[-1]):
        return sampling.log_pmf(logits)
    return kept(logits, sampling).over(logits.shape[-1]).to(logits.dtype)
