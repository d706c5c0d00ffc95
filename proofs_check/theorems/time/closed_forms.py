"""The roofline of a pass in any arithmetic (C3), and two models so small that they meet both of its limits."""

from __future__ import annotations

from proofs_check.prelude import *
from spectheory.cost import Accelerator, ModelShape

Sizes = tuple[int, int, int, int, int, int, int]
"""Layers, hidden, intermediate, heads, heads of keys and values, their width, vocabulary."""

CARD = Accelerator("made up", {"bf16": 20_000.0}, bandwidth=1_000.0, overhead=0.125)
"""So slow that tiny models meet both of its limits."""

TARGET: Sizes = (2, 4, 8, 2, 1, 2, 11)

DRAFT: Sizes = (1, 4, 4, 2, 2, 2, 11)


def matrices(sizes: Sizes, gated: bool) -> list[tuple[int, int]]:
    """Every matrix that a token is multiplied with: queries, keys, values and output of each layer, MLP, vocabulary."""
    layers, hidden, intermediate, heads, kv_heads, width, vocabulary = sizes
    attention = [
        (hidden, heads * width),
        (hidden, kv_heads * width),
        (hidden, kv_heads * width),
        (heads * width, hidden),
    ]
    mlp = [(hidden, intermediate)] * (2 if gated else 1) + [(intermediate, hidden)]
    return [*(attention + mlp) * layers, (hidden, vocabulary)]


def counted(sizes: Sizes, context: int, *, tied: bool = False, gated: bool = True) -> tuple[int, int, int, int]:
    """Weights, weights that a pass reads, operations of a token, cached numbers of a token; matrix by matrix."""
    layers, hidden, _, heads, kv_heads, width, vocabulary = sizes
    multiplied = sum(rows * columns for rows, columns in matrices(sizes, gated))
    norms = sum(hidden for _ in range(2 * layers + 1))
    scores_and_values = sum(2 * context * width for _ in range(layers) for _ in range(heads) for _ in range(2))
    cached = sum(width for _ in range(layers) for _ in range(kv_heads) for _ in range(2))
    own_embedding = 0 if tied else vocabulary * hidden
    return multiplied + norms + own_embedding, multiplied + norms, 2 * multiplied + scores_and_values, cached


def shape_of(sizes: Sizes, *, tied: bool = False, gated: bool = True) -> ModelShape:
    """The library's model of these sizes."""
    return ModelShape.dense(*sizes, tied=tied, gated=gated)


def times(sizes: Sizes, context: int) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """Seconds on :data:`CARD`: to read the weights, to read a cache, to compute a token, and beside; 16-bit numbers."""
    _, read, operations, cached = counted(sizes, context)
    bandwidth, peak = Fraction(CARD.bandwidth), Fraction(CARD.peak["bf16"])
    return 2 * read / bandwidth, 2 * cached * context / bandwidth, operations / peak, Fraction(CARD.overhead)


def seconds(time: Sequence[Real], tokens: int, batch: Real) -> Real:
    """The roofline of a pass on so many tokens of each of `batch` sequences."""
    weights, cache, token, overhead = time
    return larger(weights + batch * cache, batch * tokens * token) + overhead


# Tokens per call and speed-up where drafts are accepted independently at one rate (C1).


def tokens(alpha: Real, k: int) -> Real:
    """The sum of alpha^i, i = 0..k: expected tokens per call."""
    return sum(math.prod([alpha] * i) for i in range(k + 1))


def speedup(alpha: Real, k: int, c: Real) -> Real:
    """Tokens per call over the time of a call, in target steps."""
    return tokens(alpha, k) / (k * c + 1)
