"""Prompts drawn at random, as tokens and calls of each, and intervals over them: the percentile bootstrap and ours."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from spectheory.intervals import CONFIDENCE, Interval
from spectheory.prediction.over_prompts import left_out, ratio

Floats = NDArray[np.float64]
Family = Callable[[np.random.Generator, int], tuple[Floats, Floats]]
"""Tokens and target calls of so many prompts."""
Method = Callable[[Floats, Floats], Interval]
"""The interval of tokens per call."""
DRAFTS = 5
RESAMPLES = 1000


def mild(rng: np.random.Generator, prompts: int) -> tuple[Floats, Floats]:
    """Prompts of 64 tokens with acceptance rates .73 +- .06."""
    tokens = np.full(prompts, 64.0)
    return tokens, _calls(tokens, rng.beta(40, 15, prompts), rng.normal(1.0, 0.05, prompts))


def heterogeneous(rng: np.random.Generator, prompts: int) -> tuple[Floats, Floats]:
    """Acceptance rates .67 +- .16; a third of the texts end early, anywhere."""
    early = rng.random(prompts) < 0.3
    tokens = np.where(early, rng.integers(1, 128, prompts), 128.0)
    noise = rng.normal(1.0, 0.3 / np.sqrt(tokens / 8))
    return tokens, _calls(tokens, rng.beta(5, 2.5, prompts), noise)


def skewed(rng: np.random.Generator, prompts: int) -> tuple[Floats, Floats]:
    """A tenth of the prompts are very easy (acceptance rate .97) and long."""
    easy = rng.random(prompts) < 0.1
    tokens = np.where(easy, 512.0, rng.integers(16, 128, prompts))
    return tokens, _calls(tokens, np.where(easy, 0.97, rng.beta(20, 20, prompts)), np.ones(prompts))


def redrawn(tokens: Floats, calls: Floats) -> Family:
    """The prompts of a trace, drawn with replacement."""

    def draw(rng: np.random.Generator, prompts: int) -> tuple[Floats, Floats]:
        of = rng.integers(len(tokens), size=prompts)
        return tokens[of], calls[of]

    return draw


def _calls(tokens: Floats, rate: Floats, noise: Floats) -> Floats:
    """Calls with chains of five drafts: between one and six tokens each."""
    per_call = (1 - rate ** (DRAFTS + 1)) / (1 - rate)
    return np.clip(tokens / per_call * noise, np.maximum(1.0, tokens / (DRAFTS + 1)), tokens)


def truth(family: Family) -> float:
    """Tokens per call of a million prompts."""
    tokens, calls = family(np.random.default_rng(2026), 1_000_000)
    return float(tokens.sum() / calls.sum())


def jackknife(tokens: Floats, calls: Floats) -> Interval:
    """What `spectheory` shows."""
    return ratio(left_out(tokens), left_out(calls), limits=(1.0, DRAFTS + 1.0))


def percentile(tokens: Floats, calls: Floats) -> Interval:
    """The percentile bootstrap, the peer."""
    rng, prompts = np.random.default_rng(0), len(tokens)
    drawn = rng.multinomial(prompts, np.full(prompts, 1 / prompts), size=RESAMPLES)
    best = float(tokens.sum() / calls.sum())
    low, high = np.quantile(drawn @ tokens / (drawn @ calls), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(min(float(low), best), best, max(float(high), best), "statistical")


def bca(above: Floats, below: Floats) -> Interval:
    """The bootstrap corrected for bias and skewness, another peer."""
    rng, prompts = np.random.default_rng(0), len(above)
    drawn = rng.multinomial(prompts, np.full(prompts, 1 / prompts), size=RESAMPLES)
    found, best = np.sort(drawn @ above / (drawn @ below)), float(above.sum() / below.sum())
    bias = ndtri(np.clip((found < best).mean(), 1 / RESAMPLES, 1 - 1 / RESAMPLES))
    off = left_out(above)[1:] / left_out(below)[1:]
    off = off.mean() - off
    skewness = float((off**3).sum() / max(6 * (off**2).sum() ** 1.5, 1e-300))
    ends = bias + ndtri(np.array([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]))
    low, high = np.quantile(found, ndtr(bias + ends / (1 - skewness * ends)))
    return Interval(min(float(low), best), best, max(float(high), best), "statistical")


def covered(family: Family, method: Method, prompts: int, trials: int, value: float, seed: int = 0) -> int:
    """In how many trials the interval holds the true value."""
    rng, held = np.random.default_rng([seed, prompts]), 0
    for _ in range(trials):
        found = method(*family(rng, prompts))
        held += found.low <= value <= found.high
    return held
