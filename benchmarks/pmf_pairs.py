"""The race and six statistics of a pair at one position: nanoseconds per entry, V = 131,072.

The race's acceptance, its enclosure and all optimal acceptances from pmfs: the peer is numpy, one argsort and prefix
sums; the limit is one np.sort of the ratios. TV, KL, H, M2, cross entropy and S_HM from rows of logits: the peers are
numpy as one writes it, and in memory held ready with as few passes as possible ("lean"); the limit is two exponentials
per entry and one reading of both rows. On some processors numpy sorts several times slower with 512-bit vectors, so
everything is timed under both dispatches. The branch predictor learns an array that is sorted again and again, so there
is one pair, and eight in turn.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, astuple

import numpy as np
from _rows import Row, dispatch, language_logits, nanoseconds, publish, softmax

from spectheory.logit_statistics import pair_statistics
from spectheory.verification import RaceVerification, optimal_rejections, race_enclosure

RACE = RaceVerification()
VOCABULARY, PAIRS, MAX_K = 131_072, 8, 16
EQUAL, SUMS = 1e-12, 2e-12
"""The peer adds V terms one after another, each rounded by 1e-16; a lean KL, a difference, loses a digit or two."""
Pair = tuple[np.ndarray, np.ndarray]
HELD = np.empty((5, VOCABULARY))


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
    power, acceptances = np.ones_like(q), []
    for _ in range(MAX_K):
        power *= below_q
        acceptances.append(max(float(np.max(power - below_p)), 0.0))
    return np.array(acceptances)


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


def races(pairs: list[Pair]) -> Iterator[Row]:
    """From pmfs."""
    for pair in pairs:
        exact, enclosure = numpy_race(pair), race_enclosure(*pair)
        assert abs(float(RACE.acceptance(*pair)) - exact) <= EQUAL
        assert enclosure.low <= exact <= enclosure.high <= enclosure.low + 1e-9
        np.testing.assert_allclose(optimal_rejections(*pair, MAX_K), numpy_optimal(pair), rtol=0, atol=EQUAL)
    for label, chosen in (("one pair", pairs[:1]), (f"{PAIRS} pairs", pairs)):
        limit = nanoseconds(np.sort, [p / q for p, q in chosen], VOCABULARY), "one np.sort"
        race, optimal = (nanoseconds(peer, chosen, VOCABULARY, 3) for peer in (numpy_race, numpy_optimal))
        for work, ours, peer in (
            ("race, exact", lambda pair: float(RACE.acceptance(*pair)), race),
            ("race, enclosure below 1e-9", lambda pair: race_enclosure(*pair), race),
            (f"optimal, k = 1..{MAX_K}", lambda pair: optimal_rejections(*pair, MAX_K), optimal),
        ):
            time, name = nanoseconds(ours, chosen, VOCABULARY), f"{label}: {work}"
            yield Row(name, "ns per entry", time, f"numpy to {EQUAL:g}", peer, "numpy argsort", *limit)


def statistics(pairs: list[Pair]) -> Iterator[Row]:
    """From logits; peers get float64 throughout, since float32 would not give these digits."""
    single = [(target.astype(np.float32), draft.astype(np.float32)) for target, draft in pairs]
    for p, q in (*pairs, *single):
        for peer in (plain, lean):
            ours = astuple(pair_statistics(p, q))
            np.testing.assert_allclose(ours, peer((p.astype(np.float64), q.astype(np.float64))), rtol=SUMS)
    for label, chosen, wide in (
        ("one pair, float64", pairs[:1], pairs[:1]),
        (f"{PAIRS} pairs, float64", pairs, pairs),
        (f"{PAIRS} pairs, float32", single, pairs),
    ):
        limit = nanoseconds(two_exponentials, wide, VOCABULARY), "two exponentials"
        nanos = nanoseconds(lambda pair: pair_statistics(*pair), chosen, VOCABULARY)
        for name, peer in (("plain numpy", plain), ("lean numpy", lean)):
            time, work = nanoseconds(peer, wide, VOCABULARY), f"six statistics, {label}"
            yield Row(work, "ns per entry", nanos, f"both numpy peers to {SUMS:g}", time, name, *limit)


def measure() -> list[Row]:
    """Check equality, then time."""
    logits = language_logits(VOCABULARY, PAIRS)
    return [*races([(softmax(p), softmax(q)) for p, q in logits]), *statistics(logits)]


def under_each_dispatch(title: str) -> None:
    """Publish the rows with and without numpy's vectors of 512 bits, a process and a thread each."""
    if sys.argv[1:] == ["--here"]:
        print(json.dumps([asdict(row) for row in measure()]))
        return
    features_here, rows = dispatch().split(), []
    wide = [name for name in features_here if "AVX512" in name or name == "X86_V4"]
    for without in ([], wide) if wide else ([],):
        how = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NPY_DISABLE_CPU_FEATURES": " ".join(without)}
        command = [sys.executable, __file__, "--here"]
        made = subprocess.run(command, env=os.environ | how, check=True, stdout=subprocess.PIPE, text=True).stdout
        features = " ".join(name for name in features_here if name not in without) or "baseline"
        rows += [Row(**row | {"work": f"{row['work']} (numpy: {features})"}) for row in json.loads(made)]
    publish(__file__, title, rows)


if __name__ == "__main__":
    under_each_dispatch(f"The race, all optimal acceptances and six statistics of a pair, V = {VOCABULARY:,}")
