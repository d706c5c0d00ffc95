"""The recursion of the path theorem (§7) as one triangular banded system for all texts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TextCalls:
    """Calls that each text takes, conditional on the text (exact), ``[texts]`` each.

    `expected` and `variance` are those of the number of target calls; the variance is NaN where it was not asked for.
    `full` is the expected number of calls, the last one excepted, in which every draft was accepted: the draft's first
    pass after such a call is on two tokens.
    """

    expected: Floats
    full: Floats
    variance: Floats


def tokens_left(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Tokens from each position to the end of its text, its own included, ``[N]``."""
    return np.repeat(np.cumsum(lengths), lengths) - np.arange(int(np.sum(lengths)))


class CallSystem:
    """The recursion C = 1 + A C as a unit upper triangular banded system; A[n, n + step] = P(tau = step - 1 | n)."""

    def __init__(self, lengths: NDArray[np.int64], depth: int, prefill_emits_token: bool) -> None:
        self.tokens = int(np.sum(lengths))
        self.width = depth + 1
        ends = np.cumsum(lengths)
        self.remaining = tokens_left(lengths)
        self.prefill_emits_token = prefill_emits_token
        self.first = ends - lengths + int(prefill_emits_token)
        self.longer = lengths > int(prefill_emits_token)
        # LAPACK wants Fortran order: row j of this array is column j of the band.
        self.band = np.zeros((self.tokens, self.width + 1))
        self.full = np.zeros(self.tokens)

    def put(self, step: int, probability: Floats) -> None:
        """Set the probability of moving `step` positions; a step past the end of its text leads nowhere."""
        inside = np.where(self.remaining > step, probability, 0.0)
        self.full = inside
        self.band[step:, self.width - step] = -inside[: max(self.tokens - step, 0)]

    def solve(self, *, variance: bool) -> TextCalls:
        """The calls of each text."""
        calls, full = self.solved(np.stack([np.ones(self.tokens), self.full]))
        expected = self.at_start(calls)
        spread = np.full_like(expected, np.nan)
        if variance:
            # E[T^2] = 1 + 2 A C + A E[T^2], and A C = C - 1.
            (square,) = self.solved((2 * calls - 1)[None])
            spread = np.maximum(self.at_start(square) - expected**2, 0.0)
        return TextCalls(expected + float(self.prefill_emits_token), self.at_start(full), spread)

    def values(self) -> Floats:
        """Calls left from each position."""
        return self.solved(np.ones((1, self.tokens)))[0]

    def visits(self) -> Floats:
        """Expected calls that start at each position."""
        starts = np.zeros((1, self.tokens))
        starts[0, self.first[self.longer]] = 1.0
        return self.solved(starts, trans="T")[0]

    def at_start(self, values: Floats) -> Floats:
        """Values ``[..., N]`` where each text's first call starts, ``[..., texts]``; 0 where there is none."""
        if not self.tokens:
            return np.zeros((*values.shape[:-1], len(self.first)))
        return np.where(self.longer, values[..., np.minimum(self.first, self.tokens - 1)], 0.0)

    def solved(self, rows: Floats, trans: str = "N") -> Floats:
        """What rewards ``[rows, N]`` of the calls by their start add up to from each position."""
        solution, info = lapack.dtbtrs(self.band.T, rows.T, uplo="U", trans=trans, diag="U")
        if info != 0:
            raise AssertionError(f"the triangular solver reported {info}")
        return solution.T


def system_of(
    survival: Floats, lengths: NDArray[np.int64], prefill_emits_token: bool, leaves: Floats | None = None
) -> CallSystem:
    """The whole band of one law of tau."""
    depth = survival.shape[1]
    system = CallSystem(lengths, depth, prefill_emits_token)
    for step in range(1, depth + 1):
        system.put(step, (survival[:, step - 2] if step > 1 else 1.0) - survival[:, step - 1])
    system.put(depth + 1, survival[:, depth - 1])
    if leaves is not None:
        inside = system.remaining[:, None] > np.arange(2, depth + 2)
        system.full = np.sum(np.where(inside, leaves, 0.0), axis=1)
    return system
