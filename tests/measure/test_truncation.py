"""Top-k, top-p and min-p by the largest entries equal those by whole sorts."""

from __future__ import annotations

import math

import pytest
import torch

from spectheory.distributions import Sampling
from spectheory.errors import LogitsError
from spectheory.measure.columns.pmf import log_pmf
from tests.made_up import each

SETTINGS = [
    Sampling(temperature=0.7),
    Sampling(top_k=1),
    Sampling(top_k=5),
    Sampling(top_k=10_000),
    Sampling(top_p=0.3),
    Sampling(temperature=2, top_p=0.999),
    Sampling(top_p=1.0),
    Sampling(temperature=0.7, top_k=50, top_p=0.9),
    Sampling(temperature=0, top_k=3),
    Sampling(top_k=10_000, top_p=1.0),
    Sampling(min_p=0.1),
    Sampling(min_p=0.0),
    Sampling(temperature=0.7, top_k=50, min_p=0.02),
    Sampling(top_p=0.99, min_p=0.05),
    Sampling(temperature=2, top_k=50, top_p=0.9, min_p=1.0),
]


@each("sampling", SETTINGS)
@each("kind", ["random", "tied", "excluded"])
def test_same_as_sorting(sampling: Sampling, kind: str) -> None:
    """In float64, where the two ways of adding up a nucleus do not round to different lengths."""
    logits = 3 * torch.randn(40, 300, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    if kind == "tied":
        logits = (logits / 2).round()
    if kind == "excluded":
        logits[:, ::3] = -math.inf
    torch.testing.assert_close(log_pmf(logits, sampling), sampling.log_pmf(logits), rtol=1e-12, atol=1e-12)


def test_ties_at_the_cut() -> None:
    """Top-k keeps them all; a nucleus needs some, and takes those of lowest index."""
    logits = torch.tensor([[0.0, 1.0, 1.0, 1.0, 1.0, 0.0]])
    assert log_pmf(logits, Sampling(top_k=2)).exp().tolist() == [[0, 0.25, 0.25, 0.25, 0.25, 0]]
    assert log_pmf(logits, Sampling(top_k=2, top_p=0.4)).exp().tolist() == [[0, 0.5, 0.5, 0, 0, 0]]


def test_logits_that_scale_to_one_number_are_not_tied() -> None:
    """Relative to a logit of 100 both others round to the same single-precision number."""
    logits = torch.tensor([[100.0, 2e-8, 1e-8]])
    for value in (log_pmf(logits, Sampling(top_k=2)), Sampling(top_k=2).log_pmf(logits)):
        assert (value > -math.inf).tolist() == [[True, True, False]]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_rows_without_a_pmf(bad: float) -> None:
    logits = torch.zeros(3, 5)
    logits[2] = bad
    with pytest.raises(LogitsError, match="row 2"):
        log_pmf(logits, Sampling(top_k=2))
