"""How often 95% intervals over prompts hold, ours and the bootstrap; and the bias of best trees.

Intervals of tokens per call, speed-ups, regret, and tokens that stopped chains draft. The fourth family redraws the
prompts of the built-in pair's trace, measured first unless ``--trace`` names one.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from _markov_pairs import MarkovPair, StoppedFamily, samples, token_and_block
from _rows import print_machine
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from spectheory.cost import LatencyTable
from spectheory.drafting import Chain, Shape, read_stop
from spectheory.intervals import CONFIDENCE, Interval
from spectheory.prediction.best_tree import BestTree, ShapeRequest
from spectheory.prediction.call_times import drafted_per_call, speedup_of_chain
from spectheory.prediction.over_prompts import Prompts, left_out, ratio
from spectheory.prediction.shape_calls import calls_by_shape
from spectheory.trace import TextInfo, Trace
from spectheory.verification import BlockVerification, RecursiveRejection

Floats = NDArray[np.float64]
Family = Callable[[np.random.Generator, int], tuple[Floats, Floats]]
"""Tokens and target calls of so many prompts."""
Method = Callable[[Floats, Floats], Interval]
"""The interval of tokens per call."""
DRAFTS = 5
RESAMPLES = 1000


def mild(rng: np.random.Generator, prompts: int) -> tuple[Floats, Floats]:
    """Prompts of 64 tokens with acceptance rates .73 +- .06."""
    tokens = np.full(prompts, 64.0)
    return tokens, _calls(tokens, rng.beta(40, 15, prompts), rng.normal(1.0, 0.05, prompts))


def heterogeneous(rng: np.random.Generator, prompts: int) -> tuple[Floats, Floats]:
    """Acceptance rates .67 +- .16; a third of the texts end early, anywhere."""
    early = rng.random(prompts) < 0.3
    tokens = np.where(early, rng.integers(1, 128, prompts), 128.0)
    noise = rng.normal(1.0, 0.3 / np.sqrt(tokens / 8))
    return tokens, _calls(tokens, rng.beta(5, 2.5, prompts), noise)


def skewed(rng: np.random.Generator, prompts: int) -> tuple[Floats, Floats]:
    """A tenth of the prompts are very easy (acceptance rate .97) and long."""
    easy = rng.random(prompts) < 0.1
    tokens = np.where(easy, 512.0, rng.integers(16, 128, prompts))
    return tokens, _calls(tokens, np.where(easy, 0.97, rng.beta(20, 20, prompts)), np.ones(prompts))


def redrawn(tokens: Floats, calls: Floats) -> Family:
    """The prompts of a trace, drawn with replacement."""

    def draw(rng: np.random.Generator, prompts: int) -> tuple[Floats, Floats]:
        of = rng.integers(len(tokens), size=prompts)
        return tokens[of], calls[of]

    return draw


def _calls(tokens: Floats, rate: Floats, noise: Floats) -> Floats:
    """Calls with chains of five drafts: between one and six tokens each."""
    per_call = (1 - rate ** (DRAFTS + 1)) / (1 - rate)
    return np.clip(tokens / per_call * noise, np.maximum(1.0, tokens / (DRAFTS + 1)), tokens)


def truth(family: Family) -> float:
    """Tokens per call of a million prompts."""
    tokens, calls = family(np.random.default_rng(2026), 1_000_000)
    return float(tokens.sum() / calls.sum())


def jackknife(tokens: Floats, calls: Floats) -> Interval:
    """What `spectheory` shows."""
    return ratio(left_out(tokens), left_out(calls), limits=(1.0, DRAFTS + 1.0))


def percentile(tokens: Floats, calls: Floats) -> Interval:
    """The percentile bootstrap, the peer."""
    rng, prompts = np.random.default_rng(0), len(tokens)
    weights = rng.multinomial(prompts, np.full(prompts, 1 / prompts), size=RESAMPLES)
    best = float(tokens.sum() / calls.sum())
    low, high = np.quantile(weights @ tokens / (weights @ calls), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(min(float(low), best), best, max(float(high), best), "statistical")


def bca(above: Floats, below: Floats) -> Interval:
    """The bootstrap corrected for bias and skewness, another peer."""
    rng, prompts = np.random.default_rng(0), len(above)
    weights = rng.multinomial(prompts, np.full(prompts, 1 / prompts), size=RESAMPLES)
    ratios, best = np.sort(weights @ above / (weights @ below)), float(above.sum() / below.sum())
    bias = ndtri(np.clip((ratios < best).mean(), 1 / RESAMPLES, 1 - 1 / RESAMPLES))
    off = left_out(above)[1:] / left_out(below)[1:]
    off = off.mean() - off
    skewness = float((off**3).sum() / max(6 * (off**2).sum() ** 1.5, 1e-300))
    ends = bias + ndtri(np.array([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]))
    low, high = np.quantile(ratios, ndtr(bias + ends / (1 - skewness * ends)))
    return Interval(min(float(low), best), best, max(float(high), best), "statistical")


def covered(family: Family, method: Method, prompts: int, trials: int, value: float, seed: int = 0) -> int:
    """In how many trials the interval holds the true value."""
    rng, inside = np.random.default_rng([seed, prompts]), 0
    for _ in range(trials):
        interval = method(*family(rng, prompts))
        inside += interval.low <= value <= interval.high
    return inside


PROMPTS = (2, 4, 8, 16, 48)
FEWER = 10
"""Times fewer trials of drafted tokens, whose prompts are not redrawn."""
TREES = ((4, 64), (8, 64), (16, 128), (48, 128))
NODES = 16
Shares = dict[str, list[float]]
"""Shares of intervals that hold, for each number of prompts."""
SPREAD = 0.1
"""Standard deviation of the logarithm of a measured latency."""
NEAR, FAR, FARTHER = (MarkovPair.made(seed, off) for seed, off in enumerate((0.5, 1.5, 3.0)))
STOPPED = {
    "near, `token<0.4`, k = 4": StoppedFamily(NEAR, 64, Chain(4, stop=read_stop("token<0.4"))),
    "far, `token<0.2`, k = 8": StoppedFamily(FAR, 64, Chain(8, stop=read_stop("token<0.2"))),
    "farther, `token<0.2`, k = 8": StoppedFamily(FARTHER, 24, Chain(8, stop=read_stop("token<0.2"))),
    "farther, `entropy>1.0`, k = 5": StoppedFamily(FARTHER, 24, Chain(5, stop=read_stop("entropy>1"))),
    "near and far, `token<0.2`, k = 8": StoppedFamily(NEAR | FAR, 64, Chain(8, stop=read_stop("token<0.2"))),
}
POOL = 20_000
LAW = np.array([0.55, 0.15, 0.08, 0.05, 0.035, 0.025, 0.02, 0.015])
"""Of the rank at each position; with what is missing to one no candidate is output."""


def families(trace: Trace) -> dict[str, Family]:
    """The four families."""
    (shape_calls,) = calls_by_shape(trace, BlockVerification(), [Chain(DRAFTS)])
    prompts = Prompts(trace.texts)
    tokens, calls = (sums[0] - sums[1:] for sums in map(prompts.sum, (trace.lengths, shape_calls.calls.expected)))
    return {"mild": mild, "heterogeneous": heterogeneous, "built-in trace": redrawn(tokens, calls), "skewed": skewed}


def pools(trace: Trace) -> dict[str, Family]:
    """Calls by token and by block verification, of four families of prompts."""
    rng = np.random.default_rng(6)

    def calls(*kinds: tuple[MarkovPair, float, int, int]) -> Family:
        """Of pairs, each with its share of the prompts and the least and most tokens of a text."""
        parts = []
        for pair, share, least, most in kinds:
            lengths = rng.integers(least, most + 1, round(share * POOL))
            parts.append(token_and_block(pair.trace(lengths, rng), DRAFTS))
        token, block = map(np.concatenate, zip(*parts, strict=True))
        return redrawn(token, block)

    built_in = [Prompts(trace.texts).sum(each) for each in token_and_block(trace, DRAFTS)]
    return {
        "mild": calls((MarkovPair.made(3, 1.0), 1.0, 64, 64)),
        "heterogeneous": calls((NEAR, 0.35, 128, 128), (FARTHER, 0.35, 128, 128), (FAR, 0.3, 1, 128)),
        "built-in trace": redrawn(*(sums[0] - sums[1:] for sums in built_in)),
        "skewed": calls((MarkovPair.made(4, 1.2), 0.9, 16, 128), (MarkovPair.made(5, 0.1), 0.1, 512, 512)),
    }


def coverage(every: dict[str, Family], trials: int, methods: Sequence[Method] = (percentile, jackknife)) -> Shares:
    """Of tokens per call, by family and method."""
    shares: Shares = {}
    for name, family in every.items():
        value = truth(family)
        for method in methods:
            inside = [covered(family, method, n, trials, value) / trials for n in PROMPTS]
            shares[f"{name}, {method.__name__}"] = inside
    return shares


def drafted(trials: int) -> Shares:
    """Of the drafted tokens per call of stopped chains, by one estimate and by both; the truth is decoded."""
    shares_of: Shares = {}
    for number, (name, family) in enumerate(STOPPED.items()):
        value = family.decoded(5 * POOL, np.random.default_rng([8, number]))
        lengths = family.lengths(trials * PROMPTS[-1], np.random.default_rng([9, number]))
        rows = shares_of[f"{name}, one estimate"], shares_of[f"{name}, both"] = [], []
        for n in PROMPTS:
            prompts, inside = Prompts([TextInfo(str(i), family.length) for i in range(n)]), np.zeros(2)
            for each in samples(lengths, n, trials):
                for i, of in enumerate((replace(each, going=each.stopping), each)):
                    interval = drafted_per_call(prompts, of, family.shape.k)
                    inside[i] += interval.low <= value <= interval.high
            for row, share in zip(rows, inside / trials, strict=True):
                row.append(float(share))
    return shares_of


def unsure(rng: np.random.Generator) -> LatencyTable:
    """Latencies measured with errors of 10% each, and intervals that say so; the target's step is the unit."""

    def entry(seconds: float) -> Interval:
        best = seconds * np.exp(rng.normal(0.0, SPREAD))
        reach = np.exp(1.96 * SPREAD)
        return Interval(best / reach, best, best * reach, "statistical")

    exact = Interval.exact
    return LatencyTable({1: exact(1.0), DRAFTS + 1: entry(1.2)}, {1: entry(0.1), 2: entry(0.12)}, context=64)


def speedups(trials: int) -> Shares:
    """Of speed-ups with uncertain latencies: errors joined, and ends multiplied."""
    shape, value = Chain(DRAFTS), truth(mild) / (1.2 + DRAFTS * 0.1)
    shares_of: Shares = {"errors joined": [], "ends multiplied": []}
    for n in PROMPTS:
        rng, inside = np.random.default_rng([1, n]), [0, 0]
        for _ in range(trials):
            (tokens, calls), table = mild(rng, n), unsure(rng)
            sums = left_out(tokens), left_out(calls)
            combined = speedup_of_chain(*sums, np.zeros(n + 1), shape, table, tuple(table.errors()))
            product = table.speedup(percentile(tokens, calls), shape)
            for number, interval in enumerate((combined, product)):
                inside[number] += interval.low <= value <= interval.high
        for shares, each in zip(shares_of.values(), inside, strict=True):
            shares.append(each / trials)
    return shares_of


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

    def tokens_per_call(trace: Trace, shape: ShapeRequest) -> tuple[float, Shape]:
        (chosen,) = calls_by_shape(trace, rule, [shape])
        return len(trace) / float(chosen.calls.expected.sum()), chosen.shape

    error_of = {}
    for prompts, tokens in TREES:
        errors, fresh = [], drawn_ranks(np.random.default_rng(7), 4000, tokens)
        for seed in range(traces):
            trace = drawn_ranks(np.random.default_rng([seed, prompts]), prompts, tokens)
            held_out, tree = tokens_per_call(trace, BestTree(NODES))
            true = tokens_per_call(fresh, tree)[0]
            errors.append([each / true - 1 for each in (tokens_per_call(trace, tree)[0], held_out)])
        mean, error = np.mean(errors, axis=0), np.std(errors, axis=0) / np.sqrt(traces)
        error_of[f"{prompts} x {tokens}"] = [mean[0], error[0], mean[1], error[1]]
    return error_of


def tables(results: dict[str, Any]) -> list[str]:
    """The results as lines of Markdown tables."""
    head = [f"| prompts | {' | '.join(map(str, PROMPTS))} |", "|---|" + "---:|" * len(PROMPTS)]

    def table(part: str, trials: int) -> list[str]:
        rows = []
        for name, shares in results[part].items():
            cells = (f"{share:.3f} ± {(share * (1 - share) / trials) ** 0.5:.3f}" for share in shares)
            rows.append(f"| {name} | {' | '.join(cells)} |")
        return [*head, *rows, ""]

    trials = results["trials"]
    trees = ["| prompts x tokens | on the same texts | held out |", "|---|---:|---:|"]
    trees += [
        f"| {name} | {same:+.1%} ± {a:.1%} | {other:+.1%} ± {b:.1%} |"
        for name, (same, a, other, b) in results["trees"].items()
    ]
    of_trials = (("tokens", trials), ("speedup", trials), ("regret", trials), ("drafted", trials // FEWER))
    return [line for each in of_trials for line in table(*each)] + trees


def measured(folder: Path) -> Trace:
    """The trace of the built-in pair."""
    from spectheory.measure import MeasureSettings, load_pair, measure
    from spectheory.pairs import PROMPTS as QUESTIONS
    from spectheory.pairs import resolve
    from spectheory.prompts import read_prompts

    pair = load_pair(resolve("builtin:target"), resolve("builtin:distilled"))
    return measure(pair, read_prompts(QUESTIONS), MeasureSettings(), folder / "trace.parquet")


def main() -> None:
    """Print the tables and write their numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", type=Path, help="trace of the built-in pair (Parquet); without it, it is measured")
    parser.add_argument("--trials", type=int, default=4000)
    parser.add_argument("--out", type=Path, help="JSON file; parts that it has are not made again")
    asked = parser.parse_args()
    print_machine()
    results = json.loads(asked.out.read_text()) if asked.out and asked.out.exists() else {"trials": asked.trials}
    if not {"tokens", "regret"} <= results.keys():
        with tempfile.TemporaryDirectory() as folder:
            trace = Trace.read(asked.trace) if asked.trace else measured(Path(folder))
        results["tokens"] = results.get("tokens") or coverage(families(trace), asked.trials)
        results["regret"] = coverage(pools(trace), asked.trials, (percentile, bca, jackknife))
    for part, make in (
        ("speedup", lambda: speedups(asked.trials)),
        ("trees", lambda: optimism(asked.trials // 40)),
        ("drafted", lambda: drafted(asked.trials // FEWER)),
    ):
        results[part] = results.get(part) or make()
    print("\n".join(tables(results)))
    if asked.out:
        asked.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
