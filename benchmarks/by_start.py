"""Columns by start and depth: bytes on disk, seconds to read them and to predict every rule at k = 1..8.

A made-up head of 100,000 starts and 8 depths, whose numbers never repeat and whose ids and ranks are those of a large
vocabulary, beside the columns of a measurement, each in its precision. Ours
against the readable recursion of a text as a Python loop (the peer, on a part of the texts, scaled up). Calls are
compared first, and those of the head's per-position reading must differ.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from _rows import Row, median_seconds, publish
from _traces import VOCABULARY, made_up
from recursions import python_calls

from spectheory.cost import ConstantRatio
from spectheory.drafting import Chain
from spectheory.prediction import plan
from spectheory.prediction.paths import calls_of_chains
from spectheory.trace import Trace
from spectheory.trace.columns import BY_START
from spectheory.verification import PATH_RULES

STARTS, DEPTH, TEXTS = 100_000, 8, 800
RANKED = ("race", "poisson", "recursive", "recursive-distinct", "topk")
RULES = ("token", "block", "argmax", "greedy", "independent", *RANKED)
PEER_TEXTS, REPEATS = 4, 5
ROUNDED = 2.0**-12
"""Relative: columns by start keep 12, 16 or 19 bits."""
READ_BACK = "every column is read back to the bits it keeps"
SAME, LOOP = "the recursion as a loop", "Python loop for the recursion alone"
LIMITS = {"megabytes": 47.0, "seconds": 3.0}


def checked_peer(trace: Trace) -> float:
    """Seconds of the recursion alone as a Python loop for all rules and k; its calls equal ours."""
    length, steps = STARTS // TEXTS, 0.0
    plain = {name: values for name, values in trace.columns.items() if name not in BY_START}
    for name in RULES:
        survival = PATH_RULES[name].path_survival(trace.columns, DEPTH)
        by_position = PATH_RULES[name].path_survival(plain, DEPTH)
        ours = calls_of_chains(survival, trace.lengths, range(1, DEPTH + 1))
        wrong = calls_of_chains(by_position, trace.lengths, [DEPTH])[DEPTH].expected.sum()
        assert abs(wrong / ours[DEPTH].expected.sum() - 1) > 1e-3, f"{name}: the per-position reading is as good"
        started = time.thread_time()
        for text in range(PEER_TEXTS):
            for k in range(1, DEPTH + 1):
                peer = python_calls(survival, text * length, (text + 1) * length, k)
                assert abs(peer - ours[k].expected[text]) <= 1e-10 * peer, (name, text, k)
        steps += time.thread_time() - started
    return steps * TEXTS / PEER_TEXTS


def main() -> None:
    """Check equality, then time."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.parquet"
        made = made_up(STARTS, np.random.default_rng(0), text=STARTS // TEXTS, depth=DEPTH)
        write = median_seconds(lambda: made.write(path), REPEATS)
        megabytes = path.stat().st_size / 1e6
        trace = Trace.read(path)
        assert all(np.allclose(trace.columns[name], values, rtol=ROUNDED) for name, values in made.columns.items())
        read = median_seconds(lambda: Trace.read(path), REPEATS)
    peer = checked_peer(trace)
    rules, chains = [PATH_RULES[name] for name in RULES], [Chain(k) for k in range(1, DEPTH + 1)]
    ours = median_seconds(lambda: plan(trace, ConstantRatio(0.1), rules=rules, shapes=chains), REPEATS)
    rows = [
        Row(f"bytes of a trace, {STARTS:,} starts x {DEPTH}", "MB", megabytes, READ_BACK, wanted=LIMITS["megabytes"]),
        Row("writing it", "s", write, READ_BACK),
        Row("reading it", "s", read, READ_BACK),
        Row(f"{len(RULES)} rules, k = 1..{DEPTH}", "s", ours, SAME, peer, LOOP, wanted=LIMITS["seconds"]),
    ]
    publish(__file__, f"A head's trace, V = {VOCABULARY:,}: size on disk, and time to predict", rows)


if __name__ == "__main__":
    main()
