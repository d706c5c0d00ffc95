"""The limit L of drafts by start, 100,000 positions x 16 depths; and how its time grows with text and depth.

Ours against the recursion written as a Python loop (the peer, on a part of the texts, scaled up); equality first. One
text of 100,000 tokens is the slowest case, since texts are worked through side by side.
"""

from __future__ import annotations

import time

import numpy as np
from _rows import Row, publish
from _timing import median_seconds

from spectheory.prediction.decoding_limit import least_calls

POSITIONS, DEPTH, PEER_TEXTS = 100_000, 16, 4
SIZES = ((100_000, 16, 800), (50_000, 16, 400), (200_000, 16, 1_600), (100_000, 8, 800), (100_000, 32, 800))
"""Positions, depth, texts of 125 tokens."""
LIMIT_SECONDS = 0.5


def survival_of(positions: int, depth: int) -> np.ndarray:
    """Block verification's survival of made-up ratios, unrelated from start to start."""
    steps = np.random.default_rng(0).normal(-0.2, 0.8, (positions, depth))
    return np.exp(np.minimum(0.0, np.minimum.accumulate(np.cumsum(steps, axis=1), axis=1)))


def python_limit(survival: np.ndarray, start: int, end: int) -> float:
    """L of one text as a plain loop."""
    depth = survival.shape[1]
    ahead = [0.0] * (end - start + depth + 2)
    for n in range(end - start - 1, -1, -1):
        kept, least, total = [1.0, *survival[start + n].tolist(), 0.0], ahead[n + 1], 1.0
        for i in range(depth + 1):
            least = min(least, ahead[n + i + 1])
            total += (kept[i] - kept[i + 1]) * least if least else 0.0
        ahead[n] = total
    return ahead[0]


def peer_seconds(survival: np.ndarray, length: int) -> float:
    """Seconds of the plain loop for all texts; its values equal ours."""
    lengths = np.full(len(survival) // length, length)
    ours = least_calls(survival, lengths, [survival.shape[1]])[survival.shape[1]]
    checked, began = min(PEER_TEXTS, len(lengths)), time.thread_time()
    for text in range(checked):
        peer = python_limit(survival, text * length, (text + 1) * length)
        assert abs(peer - ours[text]) <= 1e-10 * peer, text
    return (time.thread_time() - began) / checked * len(lengths)


def main() -> None:
    """Check equality, then time."""
    rows = []
    for positions, depth, texts in (*SIZES, (POSITIONS, DEPTH, 1)):
        survival, lengths = survival_of(positions, depth), np.full(texts, positions // texts)
        peer = peer_seconds(survival, positions // texts)
        ours = median_seconds(lambda s=survival, n=lengths, k=depth: least_calls(s, n, [k]), 5)  # type: ignore[misc]
        at, curve = {"positions": positions, "depth": depth}, "limit L" if texts > 1 else ""
        wanted = LIMIT_SECONDS if (positions, depth) == (POSITIONS, DEPTH) else None
        work = f"{positions:,} positions x {depth}, {texts} texts"
        rows.append(
            Row(work, "s", ours, "the recursion as a loop", peer, "Python loop", wanted=wanted, at=at, curve=curve)
        )
    survival, lengths = survival_of(POSITIONS, DEPTH), np.full(800, POSITIONS // 800)
    every = median_seconds(lambda: least_calls(survival, lengths, range(1, DEPTH + 1)), 3)
    in_text, in_depth = slope(rows, "positions", "depth", DEPTH), slope(rows, "depth", "positions", POSITIONS)
    publish(
        __file__,
        "The limit L of a whole decoding",
        rows,
        f"k = 1..{DEPTH} together take {every:.3f} s.",
        f"Time grows as text^{in_text:.2f} and depth^{in_depth:.2f}.",
    )


def slope(rows: list[Row], name: str, fixed: str, value: int) -> float:
    """Exponent of the time in one size at a value of the other, by least squares of logarithms."""
    of = [(row.at[name], row.ours) for row in rows if row.at and row.curve and row.at[fixed] == value]
    return float(np.polyfit(*np.log(of).T, 1)[0])


if __name__ == "__main__":
    main()
