"""Columns of a trace in plain numpy, the peer of the benchmarks of `position_statistics`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectheory.trace import RECORDED_RANKS


def numpy_statistics(
    target: NDArray[np.floating], draft: NDArray[np.floating], tokens: NDArray[np.int64], race: bool
) -> dict[str, NDArray[np.floating]]:
    """The same columns in plain numpy, whole arrays at a time."""
    at = np.arange(len(tokens)), tokens
    log_p, log_q = (x - x.max(-1, keepdims=True) for x in (target, draft))
    log_p -= np.log(np.exp(log_p).sum(-1, keepdims=True))
    log_q -= np.log(np.exp(log_q).sum(-1, keepdims=True))
    p, q = np.exp(log_p), np.exp(log_q)
    c = np.exp(log_p[at] - log_q[at])
    rho, left, taken, ranks = 1 / c, np.ones_like(c), np.zeros_like(c), []
    for _ in range(RECORDED_RANKS):
        ranks.append(np.minimum(np.maximum(1 - taken * rho, 0), left * rho))
        taken = taken + left
        left = np.maximum(p - taken[:, None] * q, 0).sum(-1)
    columns = {
        "log_target": log_p[at],
        "log_draft": log_q[at],
        "total_variation": np.abs(p - q).sum(-1) / 2,
        "kl": (p * (log_p - log_q)).sum(-1),
        "target_entropy": -(p * log_p).sum(-1),
        "target_second_moment": (p * log_p**2).sum(-1),
        "draft_entropy": -(q * log_q).sum(-1),
        "harmonic_similarity": (2 * p * q / (p + q)).sum(-1),
        "race_g": np.maximum(c[:, None] * q - p, 0).sum(-1),
        "draft_rank": 1 + (log_q > log_q[at][:, None]).sum(-1),
        "target_rank": 1 + (log_p > log_p[at][:, None]).sum(-1),
        "greedy_agreement": log_p.argmax(-1) == log_q.argmax(-1),
        "rejection_rank": np.stack(ranks, axis=1),
    }
    if race:
        order = np.argsort(p / q, axis=-1)
        p, q = np.take_along_axis(p, order, -1), np.take_along_axis(q, order, -1)
        g = p / q * np.cumsum(q, -1) - np.cumsum(p, -1)
        columns["race_acceptance"] = (p / (1 + np.maximum(g, 0))).sum(-1)
    return columns
