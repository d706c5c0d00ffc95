"""How often 95% intervals over prompts hold, ours and the percentile bootstrap; speed-ups; and the bias of best trees.

The fourth family redraws the prompts of the built-in pair's trace, measured first unless ``--trace`` names one.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _machine import print_machine
from _prompt_families import DRAFTS, Family, heterogeneous, jackknife, mild, percentile, redrawn, skewed, truth
from _prompt_families import covered as count

from spectheory.cost import LatencyTable
from spectheory.drafting import Chain, Shape
from spectheory.intervals import Interval
from spectheory.prediction.call_times import speedup_of_chain
from spectheory.prediction.over_prompts import Prompts, left_out
from spectheory.prediction.shape_calls import BestTree, Wanted, calls_by_shape
from spectheory.trace import TextInfo, Trace
from spectheory.verification import BlockVerification, RecursiveRejection

PROMPTS = (2, 4, 8, 16, 48)
TREES = ((4, 64), (8, 64), (16, 128), (48, 128))
NODES = 16
Shares = dict[str, list[float]]
"""Shares of intervals that hold, for each number of prompts."""
SPREAD = 0.1
"""Standard deviation of the logarithm of a measured latency."""
LAW = np.array([0.55, 0.15, 0.08, 0.05, 0.035, 0.025, 0.02, 0.015])
"""Of the rank at each position; with what is missing to one no candidate is output."""


def families(trace: Trace) -> dict[str, Family]:
    """The four families."""
    (found,) = calls_by_shape(trace, BlockVerification(), [Chain(DRAFTS)])
    prompts = Prompts(trace.texts)
    tokens, calls = (sums[0] - sums[1:] for sums in map(prompts.sum, (trace.lengths, found.calls.expected)))
    return {"mild": mild, "heterogeneous": heterogeneous, "built-in trace": redrawn(tokens, calls), "skewed": skewed}


def coverage(every: dict[str, Family], trials: int) -> Shares:
    """Of tokens per call, by family and method."""
    found: Shares = {}
    for name, family in every.items():
        value = truth(family)
        for method in (percentile, jackknife):
            held = [count(family, method, n, trials, value) / trials for n in PROMPTS]
            found[f"{name}, {method.__name__}"] = held
    return found


def unsure(rng: np.random.Generator) -> LatencyTable:
    """Latencies measured with errors of 10% each, and intervals that say so; the target's step is the unit."""

    def entry(seconds: float) -> Interval:
        found = seconds * np.exp(rng.normal(0.0, SPREAD))
        reach = np.exp(1.96 * SPREAD)
        return Interval(found / reach, found, found * reach, "statistical")

    exact = Interval.exact
    return LatencyTable({1: exact(1.0), DRAFTS + 1: entry(1.2)}, {1: entry(0.1), 2: entry(0.12)}, context=64)


def speedups(trials: int) -> Shares:
    """Of speed-ups with uncertain latencies: errors joined, and ends multiplied."""
    shape, value = Chain(DRAFTS), truth(mild) / (1.2 + DRAFTS * 0.1)
    found: Shares = {"errors joined": [], "ends multiplied": []}
    for n in PROMPTS:
        rng, held = np.random.default_rng([1, n]), [0, 0]
        for _ in range(trials):
            (tokens, calls), table = mild(rng, n), unsure(rng)
            sums = left_out(tokens), left_out(calls)
            joined = speedup_of_chain(*sums, np.zeros(n + 1), shape, table, tuple(table.errors()))
            product = table.speedup(percentile(tokens, calls), shape)
            for number, interval in enumerate((joined, product)):
                held[number] += interval.low <= value <= interval.high
        for shares, each in zip(found.values(), held, strict=True):
            shares.append(each / trials)
    return found


def drawn_ranks(rng: np.random.Generator, prompts: int, tokens: int) -> Trace:
    """Texts whose ranks are i.i.d."""
    rank = rng.choice(len(LAW) + 1, size=prompts * tokens, p=np.append(LAW, 1 - LAW.sum()))
    columns = {name: np.full(len(rank), -1.0) for name in ("log_target", "log_draft")}
    law = np.eye(len(LAW) + 1)[rank][:, :-1]
    return Trace(columns | {"rejection_rank": law}, tuple(TextInfo(str(i), tokens) for i in range(prompts)))


def optimism(traces: int) -> dict[str, list[float]]:
    """Mean relative error of a best tree's tokens per call against fresh texts, and its standard error.

    On the same texts, then held out, for each size of trace.
    """
    rule = RecursiveRejection()

    def tokens_per_call(trace: Trace, shape: Wanted) -> tuple[float, Shape]:
        (found,) = calls_by_shape(trace, rule, [shape])
        return len(trace) / float(found.calls.expected.sum()), found.shape

    found = {}
    for prompts, tokens in TREES:
        errors, fresh = [], drawn_ranks(np.random.default_rng(7), 4000, tokens)
        for seed in range(traces):
            trace = drawn_ranks(np.random.default_rng([seed, prompts]), prompts, tokens)
            held_out, tree = tokens_per_call(trace, BestTree(NODES))
            true = tokens_per_call(fresh, tree)[0]
            errors.append([each / true - 1 for each in (tokens_per_call(trace, tree)[0], held_out)])
        mean, error = np.mean(errors, axis=0), np.std(errors, axis=0) / np.sqrt(traces)
        found[f"{prompts} x {tokens}"] = [mean[0], error[0], mean[1], error[1]]
    return found


def tables(found: dict[str, Any]) -> list[str]:
    """The results as lines of Markdown tables."""
    trials = found["trials"]
    head = [f"| prompts | {' | '.join(map(str, PROMPTS))} |", "|---|" + "---:|" * len(PROMPTS)]

    def row(name: str, shares: list[float]) -> str:
        cells = (f"{share:.3f} ± {(share * (1 - share) / trials) ** 0.5:.3f}" for share in shares)
        return f"| {name} | {' | '.join(cells)} |"

    tokens, speed = ([*head, *(row(*each) for each in found[part].items())] for part in ("tokens", "speedup"))
    trees = ["| prompts x tokens | on the same texts | held out |", "|---|---:|---:|"]
    trees += [
        f"| {name} | {same:+.1%} ± {a:.1%} | {other:+.1%} ± {b:.1%} |"
        for name, (same, a, other, b) in found["trees"].items()
    ]
    return [*tokens, "", *speed, "", *trees]


def measured(folder: Path) -> Trace:
    """The trace of the built-in pair."""
    from spectheory.measure import MeasureSettings, load_pair, measure
    from spectheory.pairs import PROMPTS as QUESTIONS
    from spectheory.pairs import resolve
    from spectheory.prompts import read_prompts

    pair = load_pair(resolve("builtin:target"), resolve("builtin:distilled"))
    return measure(pair, read_prompts(QUESTIONS), MeasureSettings(), folder / "trace.parquet")


def main() -> None:
    """Print the three tables and write their numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", type=Path, help="trace of the built-in pair (Parquet); without it, it is measured")
    parser.add_argument("--trials", type=int, default=4000)
    parser.add_argument("--out", type=Path, help="JSON file; parts that it has are not made again")
    asked = parser.parse_args()
    print_machine()
    found = json.loads(asked.out.read_text()) if asked.out and asked.out.exists() else {"trials": asked.trials}
    if "tokens" not in found:
        with tempfile.TemporaryDirectory() as folder:
            trace = Trace.read(asked.trace) if asked.trace else measured(Path(folder))
        found["tokens"] = coverage(families(trace), asked.trials)
    for part, make in (("speedup", lambda: speedups(asked.trials)), ("trees", lambda: optimism(asked.trials // 40))):
        found[part] = found.get(part) or make()
    print("\n".join(tables(found)))
    if asked.out:
        asked.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
