"""How often 95% intervals over prompts hold, ours and the percentile bootstrap; speed-ups; and the bias of best trees.

The fourth family redraws the prompts of the built-in pair's trace, measured first unless ``--trace`` names one.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from _machine import print_machine
from _prompt_families import (
    DRAFTS,
    Family,
    heterogeneous,
    jackknife,
    mild,
    percentile,
    redrawn,
    skewed,
    truth,
)
from _prompt_families import covered as count

from spectheory.call_times import speedup_of_chain
from spectheory.cost import LatencyTable
from spectheory.drafting import Chain
from spectheory.intervals import Interval
from spectheory.over_prompts import Prompts, left_out
from spectheory.prediction import predict
from spectheory.shape_calls import BestTree, calls_by_shape
from spectheory.trace import TextInfo, Trace
from spectheory.verification import BlockVerification, RecursiveRejection

PROMPTS = (2, 4, 8, 16, 48)
TREES = ((4, 64), (8, 64), (16, 128), (48, 128))
NODES = 16
SPREAD = 0.1
"""Standard deviation of the logarithm of a measured latency."""
LAW = np.array([0.55, 0.15, 0.08, 0.05, 0.035, 0.025, 0.02, 0.015])
"""Of the rank at each position; with what is missing to one no candidate is output."""


def share(held: int, trials: int) -> str:
    """A coverage with its standard error."""
    part = held / trials
    return f"{part:.3f}±{np.sqrt(part * (1 - part) / trials):.3f}"


def families(trace: Trace) -> dict[str, Family]:
    """The four families."""
    (found,) = calls_by_shape(trace, BlockVerification(), [Chain(DRAFTS)])
    prompts = Prompts(trace.texts)
    tokens, calls = (sums[0] - sums[1:] for sums in map(prompts.sum, (trace.lengths, found.calls.expected)))
    return {"mild": mild, "heterogeneous": heterogeneous, "built-in trace": redrawn(tokens, calls), "skewed": skewed}


def coverage(every: dict[str, Family], trials: int) -> None:
    """Tokens per call."""
    print(f"\nCoverage of 95% intervals of tokens per call, {trials} trials (± standard error)")
    print(f"{'prompts':26s}" + "".join(f"{n:>14d}" for n in PROMPTS))
    for name, family in every.items():
        value = truth(family)
        for method in (percentile, jackknife):
            shares = [share(count(family, method, n, trials, value), trials) for n in PROMPTS]
            print(f"{name:15s} {method.__name__:10s}" + "".join(f"{each:>14s}" for each in shares), flush=True)


def unsure(rng: np.random.Generator) -> LatencyTable:
    """Latencies measured with errors of 10% each, and intervals that say so; the target's step is the unit."""

    def entry(seconds: float) -> Interval:
        found = seconds * np.exp(rng.normal(0.0, SPREAD))
        reach = np.exp(1.96 * SPREAD)
        return Interval(found / reach, found, found * reach, "statistical")

    exact = Interval.exact
    return LatencyTable({1: exact(1.0), DRAFTS + 1: entry(1.2)}, {1: entry(0.1), 2: entry(0.12)}, context=64)


def speedups(trials: int) -> None:
    """Speed-ups with uncertain latencies: errors joined, and ends multiplied."""
    shape, value = Chain(DRAFTS), truth(mild) / (1.2 + DRAFTS * 0.1)
    print(f"\nCoverage of 95% intervals of the speed-up, latencies ±{SPREAD:.0%}, mild family, {trials} trials")
    print(f"{'prompts':26s}" + "".join(f"{n:>14d}" for n in PROMPTS))
    held = {name: dict.fromkeys(PROMPTS, 0) for name in ("joined", "ends multiplied")}
    for n in PROMPTS:
        rng = np.random.default_rng([1, n])
        for _ in range(trials):
            (tokens, calls), table = mild(rng, n), unsure(rng)
            sums = left_out(tokens), left_out(calls)
            joined = speedup_of_chain(*sums, np.zeros(n + 1), shape, table, tuple(table.errors()))
            product = table.speedup(percentile(tokens, calls), shape)
            for name, found in zip(held, (joined, product), strict=True):
                held[name][n] += found.low <= value <= found.high
    for name, counts in held.items():
        print(f"{name:26s}" + "".join(f"{share(counts[n], trials):>14s}" for n in PROMPTS))


def drawn_ranks(rng: np.random.Generator, prompts: int, tokens: int) -> Trace:
    """Texts whose ranks are i.i.d."""
    rank = rng.choice(len(LAW) + 1, size=prompts * tokens, p=np.append(LAW, 1 - LAW.sum()))
    columns = {name: np.full(len(rank), -1.0) for name in ("log_target", "log_draft")}
    law = np.eye(len(LAW) + 1)[rank][:, :-1]
    return Trace(columns | {"rejection_rank": law}, tuple(TextInfo(str(i), tokens) for i in range(prompts)))


def optimism(trials: int) -> None:
    """Tokens per call of the best tree against those of the same tree on fresh texts."""
    fresh, rule = drawn_ranks(np.random.default_rng(7), 4000, 128), RecursiveRejection()
    print(f"\nBest trees of {NODES} nodes: error of the predicted tokens per call, i.i.d. ranks, {trials} traces")
    for prompts, tokens in TREES:
        errors = []
        for seed in range(trials):
            trace = drawn_ranks(np.random.default_rng([seed, prompts]), prompts, tokens)
            held_out = predict(trace, rule, BestTree(NODES))
            tree = held_out.shape
            true = predict(fresh, rule, tree).tokens_per_call.best
            errors.append([p.tokens_per_call.best / true - 1 for p in (predict(trace, rule, tree), held_out)])
        mean, error = np.mean(errors, axis=0), np.std(errors, axis=0) / np.sqrt(trials)
        same, other = (f"{m:+6.2%} ± {e:.2%}" for m, e in zip(mean, error, strict=True))
        print(f"{prompts:3d} prompts of {tokens:3d} tokens: on the same texts {same}, held out {other}", flush=True)


def measured(folder: Path) -> Trace:
    """The trace of the built-in pair."""
    from spectheory.measure import MeasureSettings, load_pair, measure
    from spectheory.pairs import PROMPTS as QUESTIONS
    from spectheory.pairs import resolve
    from spectheory.prompts import read_prompts

    pair = load_pair(resolve("builtin:target"), resolve("builtin:distilled"))
    return measure(pair, read_prompts(QUESTIONS), MeasureSettings(), folder / "trace.parquet")


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", type=Path, help="trace of a measured pair (Parquet)")
    parser.add_argument("--trials", type=int, default=4000)
    asked = parser.parse_args()
    print_machine()
    with tempfile.TemporaryDirectory() as folder:
        trace = Trace.read(asked.trace) if asked.trace else measured(Path(folder))
    coverage(families(trace), asked.trials)
    speedups(asked.trials)
    optimism(max(2, asked.trials // 40))


if __name__ == "__main__":
    main()
