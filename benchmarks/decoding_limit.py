"""The limit L of drafts by start, 100,000 positions x 16 depths; and how its time grows with text and depth.

Ours against the recursion written as a Python loop (the peer, on a part of the texts, scaled up); equality first. One
text of 100,000 tokens is the slowest case, since texts are worked through side by side.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from _machine import print_machine
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
    """Check equality, then time; with --out write the numbers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    print_machine()
    rows = []
    for positions, depth, texts in (*SIZES, (POSITIONS, DEPTH, 1)):
        survival, lengths = survival_of(positions, depth), np.full(texts, positions // texts)
        peer = peer_seconds(survival, positions // texts)
        ours = median_seconds(lambda s=survival, n=lengths, k=depth: least_calls(s, n, [k]), 5)  # type: ignore[misc]
        rows.append({"positions": positions, "depth": depth, "texts": texts, "seconds": ours, "python_seconds": peer})
        print(
            f"{positions:7d} positions x {depth:2d}, {texts:5d} texts: ours {ours:6.3f} s (limit set for 100,000 x 16: "
            f"{LIMIT_SECONDS} s), Python loop {peer:6.2f} s, ratio {peer / ours:5.1f}"
        )
    survival, lengths = survival_of(POSITIONS, DEPTH), np.full(800, POSITIONS // 800)
    every = median_seconds(lambda: least_calls(survival, lengths, range(1, DEPTH + 1)), 3)
    print(f"k = 1..16 together: {every:.3f} s")
    found = {"rows": rows, "all_lengths_seconds": every, "limit_seconds": LIMIT_SECONDS, **slopes(rows)}
    print(f"exponent of time in text {found['in_text']:.2f}, in depth {found['in_depth']:.2f}")
    if asked.out:
        asked.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def slopes(rows: list[dict[str, float]]) -> dict[str, float]:
    """Exponents of the time in text and in depth, by least squares of logarithms."""

    def slope(name: str, fixed: str, at: int) -> float:
        of = [row for row in rows if row[fixed] == at and row["texts"] > 1]
        return float(np.polyfit(*(np.log([row[key] for row in of]) for key in (name, "seconds")), 1)[0])

    return {"in_text": slope("positions", "depth", DEPTH), "in_depth": slope("depth", "positions", POSITIONS)}


if __name__ == "__main__":
    main()
