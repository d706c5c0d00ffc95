"""TV, KL, H, M2, cross entropy and S_HM from two rows of logits: nanoseconds per entry, V = 131,072.

Two peers, both numpy: as one writes it, and in memory held ready with as few passes as possible ("lean"). The limit is
two exponentials of numpy per entry and one reading of both rows.
"""

from __future__ import annotations

import math
from dataclasses import astuple

import numpy as np
from _rows import Row
from _timing import language_logits, nanoseconds, run

from spectheory.logit_statistics import pair_statistics

VOCABULARY, PAIRS = 131_072, 8
EQUAL = 2e-12
"""Relative: sums of exponentials rounded by 1e-16; the lean peer's KL, a difference of sums, loses a digit or two."""

SAME = "both numpy peers to 2e-12"

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


def check(pair: Pair) -> None:
    """Ours is the peers', of the same logits in double precision."""
    ours = astuple(pair_statistics(*pair))
    for peer in (plain, lean):
        np.testing.assert_allclose(ours, peer((pair[0].astype(np.float64), pair[1].astype(np.float64))), rtol=EQUAL)


def measure() -> list[Row]:
    """Check equality, then time; peers get float64 throughout, since float32 would not give these digits."""
    pairs = language_logits(VOCABULARY, PAIRS)
    single = [(target.astype(np.float32), draft.astype(np.float32)) for target, draft in pairs]
    for pair in (*pairs, *single):
        check(pair)
    rows: list[Row] = []
    for label, chosen, wide in (
        ("one pair, float64", pairs[:1], pairs[:1]),
        (f"{PAIRS} pairs, float64", pairs, pairs),
        (f"{PAIRS} pairs, float32", single, pairs),
    ):
        limit = nanoseconds(two_exponentials, wide, VOCABULARY)
        ours = nanoseconds(lambda pair: pair_statistics(*pair), chosen, VOCABULARY)
        for name, peer in (("plain numpy", plain), ("lean numpy", lean)):
            time = nanoseconds(peer, wide, VOCABULARY)
            rows.append(Row(label, "ns per entry", ours, SAME, time, name, limit, "two exponentials"))
    return rows


if __name__ == "__main__":
    run(f"Six statistics of a pair from logits, V = {VOCABULARY:,}", measure)
