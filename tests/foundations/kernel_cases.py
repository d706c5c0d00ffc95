"""Pairs and twins that the tests of the kernels share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from proofs_check.library.strategies import Floats
from proofs_check.twins.oracle import MP, Real
from spectheory import kernels

RELATIVE = 1e-12
"""The array twin adds V terms one after another, each rounded by 1e-16; V = 8192."""

TOKENS = 8192


@contextmanager
def taken_at_any_size() -> Iterator[None]:
    """Kernels whatever the vocabulary."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "SMALLEST", 1)
        yield


@contextmanager
def without_numba() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "installed", lambda: False)
        yield


def softmax(values: Floats) -> Floats:
    grown = np.exp(values - values.max())
    return grown / grown.sum()


def language_like(tokens: int, seed: int = 0, scale: float = 3.0) -> tuple[Floats, Floats]:
    """Softmax of normal logits, and of the same logits with noise."""
    rng = np.random.default_rng(seed)
    values = scale * rng.standard_normal(tokens)
    return softmax(values), softmax(values + rng.standard_normal(tokens))


def normalised(values: Floats) -> Floats:
    return values / values.sum()


def hard_pairs(tokens: int) -> dict[str, tuple[Floats, Floats]]:
    """Ratios that fill one bucket, two, or thousands of powers of two; supports that differ."""
    rng = np.random.default_rng(3)
    p, q = language_like(tokens, seed=3)
    half = np.arange(tokens) < tokens // 2
    nested = np.exp2(-np.exp2(rng.integers(0, 9, tokens)))
    return {
        "language": (p, q),
        "sharper draft": (p, normalised(p**4)),
        "equal": (p, p.copy()),
        "two ratios": (p, normalised(np.where(half, p, 2 * p))),
        "within 1e-12": (p, normalised(p * (1 + 1e-12 * rng.uniform(-1, 1, tokens)))),
        "half within 1e-12": (p, normalised(np.where(half, p, q) * (1 + 1e-12 * rng.uniform(-1, 1, tokens)))),
        "one outlier": (p, normalised(np.where(np.arange(tokens) == 5, 1e-300, q))),
        "hundreds of powers": (p, normalised(np.exp(rng.uniform(-600, 0, tokens)))),
        "clusters in clusters": (p, normalised(p * (1 + nested * rng.uniform(-1, 1, tokens)))),
        "subnormal draft": (p, normalised(np.where(half, 1e-310, q))),
        "top 50 of the target": (normalised(np.where(p >= np.sort(p)[-50], p, 0)), q),
        "top 50 of the draft": (p, normalised(np.where(q >= np.sort(q)[-50], q, 0))),
        "half supports": (normalised(np.where(half, p, 0)), normalised(np.where(np.roll(half, tokens // 4), q, 0))),
        "disjoint": (normalised(np.where(half, p, 0)), normalised(np.where(half, 0, q))),
        "one-hot": (np.eye(1, tokens)[0], q),
    }


HARD = hard_pairs(TOKENS)


def close(value: Any, exact: Real, tolerance: float) -> bool:
    return bool(abs(MP.mpf(float(value)) - exact) <= tolerance * abs(exact))


def assert_same_g(g: Floats, twin: Floats) -> None:
    """Equal relative to 1 + g, the form the race uses."""
    np.testing.assert_array_equal(g == np.inf, twin == np.inf)
    finite = np.isfinite(twin)
    assert np.all(np.abs(g[finite] - twin[finite]) <= RELATIVE * (1 + twin[finite]))
