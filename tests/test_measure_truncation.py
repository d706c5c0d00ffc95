"""Top-k and top-p by the largest entries equal those by whole sorts."""

from __future__ import annotations

import math

import pytest
import torch

from spectheory.distributions import Sampling
from spectheory.errors import LogitsError
from spectheory.measure import truncation
from spectheory.measure.truncation import log_pmf

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
]


@pytest.mark.parametrize("sampling", SETTINGS, ids=str)
@pytest.mark.parametrize("kind", ["random", "tied", "excluded"])
def test_same_as_sorting(sampling: Sampling, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float64, where the two ways of adding up a nucleus do not round to different lengths."""
    monkeypatch.setattr(truncation, "_FIRST_GUESS", 4)
    logits = 3 * torch.randn(40, 300, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    if kind == "tied":
        logits = (logits / 2).round()
    if kind == "excluded":
        logits[:, ::3] = -math.inf
    torch.testing.assert_close(log_pmf(logits, sampling), sampling.log_pmf(logits), rtol=1e-12, atol=1e-12)


def test_ties_keep_the_lowest_index() -> None:
    assert log_pmf(torch.zeros(1, 5), Sampling(top_k=2)).exp().tolist() == [[0.5, 0.5, 0, 0, 0]]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_rows_without_a_pmf(bad: float) -> None:
    logits = torch.zeros(3, 5)
    logits[2] = bad
    with pytest.raises(LogitsError, match="row 2"):
        log_pmf(logits, Sampling(top_k=2))
