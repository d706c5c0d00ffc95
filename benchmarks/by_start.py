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
from typing import Any

import numpy as np
from _rows import Row, median_seconds, publish
from recursions import python_calls

from spectheory.cost import ConstantRatio
from spectheory.drafting import Chain
from spectheory.prediction import plan
from spectheory.prediction.paths import calls_of_chains
from spectheory.trace import COLUMNS, MEASURED, RECORDED_RANKS, TextInfo, Trace
from spectheory.trace.columns import BY_START, START_RANKS
from spectheory.verification import PATH_RULES
from spectheory.verification.by_start import PREFIX

STARTS, DEPTH, TEXTS = 100_000, 8, 800
VOCABULARY = 151_936
RULES = ("token", "block", "argmax", "greedy", "independent", "race", "poisson", "recursive", "topk")
PEER_TEXTS, REPEATS = 4, 5
ROUNDED = 2.0**-12
"""Relative: columns by start keep 12, 16 or 19 bits."""
READ_BACK = "every column is read back to the bits it keeps"
SAME, LOOP = "the recursion as a loop", "Python loop for the recursion alone"
LIMITS = {"megabytes": 40.0, "seconds": 3.0}


def made_up_head(rng: np.random.Generator) -> Trace:
    """Every column of a measurement and every column by start; drafts get worse with depth."""
    log_target = _single(-rng.exponential(1.5, STARTS))
    ahead = log_target[np.minimum(np.add.outer(np.arange(STARTS), np.arange(DEPTH)), STARTS - 1)]
    log_draft = np.minimum(0.0, ahead + rng.normal(-0.1, 0.4 + 0.1 * np.arange(DEPTH), ahead.shape))
    ratio = np.exp(ahead - log_draft)
    g = np.maximum(ratio - 1, 0.0) + rng.random(ratio.shape) * np.minimum(ratio, 1.0)
    ranks = {"rejection_rank": _law(rng, np.minimum(1.0, 1 / ratio)), "race_rank": _law(rng, 1 / (1 + g))}
    starts = {
        "start_log_draft": log_draft,
        "start_draft_entropy": _single(rng.exponential(1.5, ratio.shape)),
        "start_draft_top": np.maximum(np.exp(log_draft), rng.random(ratio.shape)),
        "start_draft_rank": _ranks(rng, 0.6 - 0.03 * np.arange(DEPTH), ratio.shape),
        "start_greedy_agreement": rng.random(ratio.shape) < 0.6 - 0.03 * np.arange(DEPTH),
        "start_total_variation": rng.random(ratio.shape),
        "start_race_g": g,
        **{PREFIX + name: law[..., :START_RANKS] for name, law in ranks.items()},
    }
    assert set(starts) == set(BY_START)
    firsts = {name.removeprefix(PREFIX): _single(values[:, 0]) for name, values in starts.items()}
    firsts |= {name: law[:, 0] for name, law in ranks.items()}
    others = {name: _filler(name, rng) for name in MEASURED if name not in firsts}
    others["target_second_moment"] += 1.0  # at least the square of the entropy
    others["lookup_drafted"] += others["lookup_match"]
    others |= {"token": rng.integers(VOCABULARY, size=STARTS), "target_rank": _ranks(rng, 0.7, (STARTS,))}
    columns = {**others, **firsts, **starts, "log_target": log_target}
    texts = tuple(TextInfo(str(i), STARTS // TEXTS, prompt=str(i // 2)) for i in range(TEXTS))
    return Trace(columns, texts, {"settings": {"depth": DEPTH}})


def _law(rng: np.random.Generator, first: Any) -> Any:
    others = rng.dirichlet(np.ones(RECORDED_RANKS), first.shape)[..., 1:]
    return np.concatenate([first[..., None], (1 - first)[..., None] * others], axis=-1)


def _ranks(rng: np.random.Generator, first: Any, shape: tuple[int, ...]) -> Any:
    """Rank 1 with probability `first`, else a rank whose logarithm is uniform."""
    return np.where(rng.random(shape) < first, 1, VOCABULARY ** rng.random(shape)).astype(np.int64)


def _single(values: Any) -> Any:
    """Numbers of single precision, as most columns of a measurement are."""
    return values.astype(np.float32).astype(np.float64) if values.dtype.kind == "f" else values


def _filler(name: str, rng: np.random.Generator) -> Any:
    """Possible values of a column in the precision of a measurement."""
    column = COLUMNS[name]
    if column.kind == "integer":
        return rng.geometric(0.3, STARTS)
    values = rng.dirichlet(np.ones(9), STARTS)[:, : column.widths[1]] if column.widths else rng.random(STARTS)
    return _single(values)


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
        made = made_up_head(np.random.default_rng(0))
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
