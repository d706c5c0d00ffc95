"""Time of a prediction from a trace of 100,000 positions: all rules, k = 1..16, intervals over prompts.

Ours against the recursion written as a Python loop (the peer, on a part of the texts, scaled up); equality first.
"""

from __future__ import annotations

import time

import numpy as np
from _rows import Row, publish
from _timing import median_seconds

from spectheory.cost import ConstantRatio
from spectheory.prediction import plan
from spectheory.prediction.paths import calls_of_chains
from spectheory.trace import TextInfo, Trace
from spectheory.verification import TokenVerification

POSITIONS = 100_000
PEER_TEXTS = 4


def synthetic_trace(texts: int, rng: np.random.Generator) -> Trace:
    """A trace with the columns of token, block and race verification and of all limits."""
    log_target = -rng.exponential(1.5, POSITIONS)
    log_draft = np.minimum(0.0, log_target + rng.normal(0.0, 0.7, POSITIONS))
    ratio = np.exp(log_target - log_draft)
    columns = {
        "log_target": log_target,
        "log_draft": log_draft,
        "race_g": np.maximum(ratio - 1, 0.0) + rng.random(POSITIONS) * np.minimum(ratio, 1.0),
        "target_entropy": np.full(POSITIONS, 1.5),
        "target_second_moment": np.full(POSITIONS, 4.0),
        "rejection_rank": np.tile([0.7, 0.1, 0.05, 0.03, 0.02, 0.01, 0.01, 0.01], (POSITIONS, 1)),
    }
    return Trace(columns, tuple(TextInfo(str(i), POSITIONS // texts) for i in range(texts)))


def python_calls(survival: np.ndarray, start: int, end: int, k: int) -> float:
    """The calls recursion of one text as a plain loop."""
    calls = np.zeros(end + k + 2)
    for n in range(end - 1, start - 1, -1):
        steps = [1.0, *survival[n, :k], 0.0]
        calls[n] = 1 + sum((steps[i] - steps[i + 1]) * calls[n + i + 1] for i in range(k + 1) if n + i + 1 < end)
    return float(calls[start])


def main() -> None:
    """Check equality, then time."""
    rows = []
    for texts in (8, 800, 10_000):
        trace = synthetic_trace(texts, np.random.default_rng(0))
        survival = TokenVerification().path_survival(trace.columns, 16)
        ours = calls_of_chains(survival, trace.lengths, range(1, 17))
        length = POSITIONS // texts
        began = time.thread_time()
        for text in range(min(PEER_TEXTS, texts)):
            for k in (1, 16):
                peer = python_calls(survival, text * length, (text + 1) * length, k)
                assert abs(peer - ours[k].expected[text]) <= 1e-10 * peer
        peer_seconds = (time.thread_time() - began) / min(PEER_TEXTS, texts) * texts / (1 + 16) * 136 * 3
        median = median_seconds(lambda trace=trace: plan(trace, ConstantRatio(0.15)), 5)
        same, loop = "the recursion as a loop to 1e-10", "Python loop for the recursion alone"
        rows.append(Row(f"{texts:,} texts of {length:,}", "s", median, same, peer_seconds, loop, wanted=2.0))
    publish(__file__, f"A prediction from {POSITIONS:,} positions: all rules, k = 1..16, intervals over prompts", rows)


if __name__ == "__main__":
    main()
