"""Hypothesis strategies: pmfs as language models have them and as they break formulas.

The profile is deterministic, so a failure comes back on every run.
"""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TINIEST = 1e-300
"""Smallest positive weight: ratios of two pmf entries then stay below the largest float."""

theorem = settings(
    derandomize=True, database=None, deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow]
)
"""Settings of every property test."""


def weights() -> st.SearchStrategy[float]:
    """One unnormalised probability: zero, tiny, log-uniform or plain."""
    return st.one_of(
        st.just(0.0),
        st.sampled_from([TINIEST, 1e-18, 1e-9, 1.0, 1e6]),
        st.floats(-40, 0).map(lambda exponent: float(np.exp(exponent))),
        st.integers(1, 6).map(float),
    )


def pmfs(tokens: int) -> st.SearchStrategy[Floats]:
    """A pmf on `tokens` tokens."""
    return st.lists(weights(), min_size=tokens, max_size=tokens).filter(lambda w: max(w) > 0).map(_pmf)


def _pmf(values: list[float]) -> Floats:
    largest = max(values)
    scaled = np.array(values) / largest
    scaled[(scaled > 0) & (scaled < TINIEST)] = TINIEST
    return scaled / scaled.sum()


def pairs(max_tokens: int = 6) -> st.SearchStrategy[tuple[Floats, Floats]]:
    """A target and a draft over one vocabulary of 1 to `max_tokens` tokens."""
    return st.integers(1, max_tokens).flatmap(lambda tokens: st.tuples(pmfs(tokens), pmfs(tokens)))


def extreme_pairs() -> dict[str, tuple[Floats, Floats]]:
    """Named pairs at the ends of what floats can say.

    Examples
    --------
    >>> sorted(extreme_pairs())[:3]
    ['disjoint', 'draft lacks a token', 'equal']
    """
    rng = np.random.default_rng(20)

    def softmax(scale: float, tokens: int) -> Floats:
        logits = scale * rng.standard_normal(tokens)
        grown = np.exp(logits - logits.max())
        return grown / grown.sum()

    flat, other = rng.dirichlet(np.ones(50)), rng.dirichlet(np.ones(50))
    nearly = flat * (1 + 1e-9 * rng.standard_normal(50))
    return {
        "random": (flat, other),
        "peaked": (softmax(20.0, 50), softmax(20.0, 50)),
        "large": (softmax(3.0, 2000), softmax(3.0, 2000)),
        "tiny entries": (np.array([1e-300, 0.25, 0.75]), np.array([0.5, 1e-300, 0.5])),
        "tiny in both": (np.array([1e-300, 1e-200, 1.0]), np.array([1e-200, 1e-300, 1.0])),
        "one-hot": (np.array([0.0, 1.0, 0.0]), np.array([0.0, 1.0, 0.0])),
        "one-hot target": (np.array([0.0, 1.0, 0.0]), np.array([0.2, 0.5, 0.3])),
        "equal": (flat, flat.copy()),
        "nearly equal": (flat, nearly / nearly.sum()),
        "zeros in both": (np.array([0.0, 0.0, 0.5, 0.5]), np.array([0.0, 0.5, 0.0, 0.5])),
        "draft lacks a token": (np.array([0.5, 0.25, 0.25]), np.array([0.5, 0.5, 0.0])),
        "target lacks a token": (np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.25, 0.25])),
        "disjoint": (np.array([1.0, 0.0]), np.array([0.0, 1.0])),
        "one token": (np.array([1.0]), np.array([1.0])),
    }
