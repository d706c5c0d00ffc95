"""TV, KL, H, M2, cross entropy and S_HM from two rows of logits: nanoseconds per entry, V = 131,072.

Two peers, both numpy: as one writes it, and in memory held ready with as few passes as possible ("lean"). The limit is
two exponentials of numpy per entry and one reading of both rows.
"""

from __future__ import annotations

import math
from dataclasses import astuple

import numpy as np
from _timing import Row, language_logits, nanoseconds, run

from spectheory.logit_statistics import pair_statistics

VOCABULARY, PAIRS = 131_072, 8
EQUAL = 1e-13
"""Relative: exponentials rounded by 1e-16, sums in lanes or pairwise; KL by differences loses a digit."""

Pair = tuple[np.ndarray, np.ndarray]
HELD = np.empty((5, VOCABULARY))


def plain(pair: Pair) -> tuple[float, ...]:
    """Each sum from its formula."""
    log_p, log_q = (x - x.max() for x in pair)
    log_p, log_q = (x - np.log(np.exp(x).sum()) for x in (log_p, log_q))
    p, q = np.exp(log_p), np.exp(log_q)
    return (
        np.abs(p - q).sum() / 2,
        (p * (log_p - log_q)).sum(),
        -(p * log_p).sum(),
        (p * log_p**2).sum(),
        -(p * log_q).sum(),
        (2 * p * q / (p + q)).sum(),
    )


def lean(pair: Pair) -> tuple[float, ...]:
    """The same without fresh memory, exponentials once, products as dot products, KL as a difference."""
    a, b, p, q, both = HELD
    for row, logs, pmf in ((pair[0], a, p), (pair[1], b, q)):
        np.subtract(row, row.max(), out=logs)
        np.exp(logs, out=pmf)
        whole = pmf.sum()
        logs -= math.log(whole)
        pmf /= whole
    entropy, cross = -(p @ a), -(p @ b)
    a *= a
    moment = p @ a
    np.subtract(p, q, out=both)
    distance = np.abs(both, out=both).sum() / 2
    np.add(p, q, out=both)
    p *= q
    p /= both
    return distance, cross - entropy, entropy, moment, cross, 2 * p.sum()


def two_exponentials(pair: Pair) -> None:
    """The floor: read both rows, take both exponentials."""
    np.exp(pair[0], out=HELD[0])
    np.exp(pair[1], out=HELD[1])


def measure() -> list[Row]:
    """Check equality, then time."""
    pairs = language_logits(VOCABULARY, PAIRS)
    rows: list[Row] = []
    for dtype in (np.float64, np.float32):
        typed = [(target.astype(dtype), draft.astype(dtype)) for target, draft in pairs]
        for target, draft in typed:
            ours = astuple(pair_statistics(target, draft))
            for peer in (plain, lean):
                wide = peer((target.astype(np.float64), draft.astype(np.float64)))
                np.testing.assert_allclose(ours, wide, rtol=20 * EQUAL)
        exponentials = nanoseconds(two_exponentials, pairs, VOCABULARY)
        own = nanoseconds(lambda pair: pair_statistics(*pair), typed, VOCABULARY)
        for label, peer in (("plain numpy", plain), ("lean numpy", lean)):
            # Peers get float64: single precision would not give these digits.
            time = nanoseconds(peer, pairs, VOCABULARY)
            work = f"{np.dtype(dtype).name} logits, against {label}"
            rows.append({"work": work, "ours": own, "peer": time, "limit": exponentials})
    return rows


if __name__ == "__main__":
    run(measure)
