"""The race's acceptance, its enclosure and all optimal acceptances: nanoseconds per entry, float64, V = 131,072.

The peer is numpy: one argsort and prefix sums. The limit is one np.sort of the ratios. On some processors numpy sorts
several times slower with 512-bit vectors, so everything is timed under both dispatches. The branch predictor learns an
array that is sorted again and again, so there is one pair, and eight in turn.
"""

from __future__ import annotations

import numpy as np
from _rows import Row
from _timing import language_logits, nanoseconds, run, softmax

from spectheory.verification import RaceVerification, optimal_rejections, race_enclosure

RACE = RaceVerification()
VOCABULARY, PAIRS, MAX_K = 131_072, 8, 16
EQUAL = 1e-12
"""The peer adds V terms one after another, each rounded by 1e-16."""

SAME = "numpy to 1e-12"

Pair = tuple[np.ndarray, np.ndarray]


def numpy_race(pair: Pair) -> float:
    """A2 by argsort and prefix sums."""
    p, q = pair
    order = np.argsort(p / q)
    p, q = p[order], q[order]
    return float(np.sum(p / (1 + np.maximum(p / q * np.cumsum(q) - np.cumsum(p), 0))))


def numpy_optimal(pair: Pair) -> np.ndarray:
    """R4 by argsort and prefix sums, every k."""
    p, q = pair
    order = np.argsort(p / q)
    below_p, below_q = np.cumsum(p[order]), np.cumsum(q[order])
    power, found = np.ones_like(q), []
    for _ in range(MAX_K):
        power *= below_q
        found.append(max(float(np.max(power - below_p)), 0.0))
    return np.array(found)


def check(pair: Pair) -> None:
    """Ours is the peer's."""
    exact, found = numpy_race(pair), race_enclosure(*pair)
    assert abs(float(RACE.acceptance(*pair)) - exact) <= EQUAL
    assert found.low <= exact <= found.high <= found.low + 1e-9
    np.testing.assert_allclose(optimal_rejections(*pair, MAX_K), numpy_optimal(pair), rtol=0, atol=EQUAL)


def measure() -> list[Row]:
    """Check equality, then time."""
    pairs = [(softmax(target), softmax(draft)) for target, draft in language_logits(VOCABULARY, PAIRS)]
    for pair in pairs:
        check(pair)
    rows: list[Row] = []
    for label, chosen in (("one pair", pairs[:1]), (f"{PAIRS} pairs", pairs)):
        ratios = [p / q for p, q in chosen]
        limit = nanoseconds(np.sort, ratios, VOCABULARY)
        argsort = nanoseconds(numpy_race, chosen, VOCABULARY, 3)
        for work, ours, peer in (
            ("race, exact", lambda pair: float(RACE.acceptance(*pair)), argsort),
            ("race, enclosure below 1e-9", lambda pair: race_enclosure(*pair), argsort),
            (
                f"optimal, k = 1..{MAX_K}",
                lambda pair: optimal_rejections(*pair, MAX_K),
                nanoseconds(numpy_optimal, chosen, VOCABULARY, 3),
            ),
        ):
            time = nanoseconds(ours, chosen, VOCABULARY)
            rows.append(
                Row(f"{label}: {work}", "ns per entry", time, SAME, peer, "numpy argsort", limit, "one np.sort")
            )
    return rows


if __name__ == "__main__":
    run(f"The race and all optimal acceptances of two pmfs, V = {VOCABULARY:,}", measure)
