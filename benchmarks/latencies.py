"""Latencies of a pair within budgets, against eight groups of five rounds whatever their intervals are.

Both measure passes on 1, 2, 4, ... 64 tokens and the decoding loop in every group. Before anything is said of times:
every round ran every pass, and the intervals of both ways overlap for every pass. Where other processes used cores
meanwhile, the row says that intervals are not compared. ``--wide`` measures a pair with random weights and V = 151,936,
of 0.3 B and 0.17 B parameters in bfloat16.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from _gpu_pairs import QUICK, llama, random_pair
from _rows import Row, publish

from spectheory.cost import LatencyTable
from spectheory.cost.table import DISTURBED, ROUNDS
from spectheory.distributions import Sampling
from spectheory.measure import ModelPair, load_pair, measure_latency
from spectheory.measure.latency import WarmModel
from spectheory.measure.rounds import Budget
from spectheory.pairs import resolve

CONTEXT, BUDGETS = 64, (2.0, 10.0, 60.0)
ENDLESS = Budget(1e-12, 1e9)


def main() -> None:
    """Measure, compare, and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wide", action="store_true", help="measure the wide pair")
    parser.add_argument("--out", type=Path, help="where the rows go")
    asked = parser.parse_args()
    torch.set_num_threads(1)  # all work is in this thread, whose time is taken
    pair, name = wide_pair() if asked.wide else _built_in(), "wide" if asked.wide else "built-in"
    fixed, peer = timed(lambda: within(pair, ENDLESS))
    rows, notes = [], [said_of(f"{name}, all rounds", fixed)]
    for seconds in BUDGETS:
        budget = Budget(seconds=seconds)
        table, ours = timed(lambda budget=budget: within(pair, budget))
        equal = f"every round ran every pass; {overlap(table, fixed)}"
        work = f"latencies of the {name} pair, at most {seconds:g} s"
        rows.append(Row(work, "s of CPU", ours, equal, peer, "all rounds", at={"seconds": seconds}))
        notes.append(said_of(f"{name}, at most {seconds:g} s", table))
    publish(__file__, "Measuring latencies, ended by narrow intervals or by a time limit", rows, *notes, out=asked.out)


def _built_in() -> ModelPair:
    return load_pair(resolve("builtin:target"), resolve("builtin:distilled"), device="cpu")


def wide_pair() -> ModelPair:
    """Logits scatter as a trained model's do; equal seeds, so that the draft resembles the target a little."""
    more = {"vocab_size": 151_936, "tie_word_embeddings": True, "initializer_range": 0.06}
    target, draft = (llama(layers, 896, 4864, 14, 2, **more) for layers in (12, 2))
    return random_pair("cpu", "bfloat16", replace(QUICK, target=target, draft=draft))


def within(pair: ModelPair, budget: Budget) -> LatencyTable:
    """Passes and loop, checked against the passes that were run."""
    with counted(pair) as ran:
        table = measure_latency(pair, context=CONTEXT, budget=budget, loop=Sampling())
    check_counts(table, ran)
    return table


def timed(work: Callable[[], LatencyTable]) -> tuple[LatencyTable, float]:
    """The table, and the CPU seconds that this thread took for it."""
    began = time.thread_time()
    return work(), time.thread_time() - began


@contextmanager
def counted(pair: ModelPair) -> Iterator[Counter[tuple[str, int]]]:
    """Counts the passes on tokens, by model."""
    ran: Counter[tuple[str, int]] = Counter()
    run = WarmModel.run

    def listened(self: WarmModel, tokens: int, keep: int, **how: Any) -> float:
        ran["target" if self.model is pair.target else "draft", tokens] += 1
        return run(self, tokens, keep, **how)

    with patch.object(WarmModel, "run", listened):
        yield ran


def check_counts(table: LatencyTable, ran: Counter[tuple[str, int]]) -> None:
    """Every round, and every one that warmed up, ran each longer pass once."""
    (count,) = {count for (_, tokens), count in ran.items() if tokens > 2}
    groups = len(table.groups)
    assert count >= sum(group.rounds for group in table.groups) + groups
    assert ran["target", 1] >= 2 * count


def overlap(table: LatencyTable, other: LatencyTable) -> str:
    """Check that both ways give the same times in plain steps, up to their intervals, on a machine that is quiet."""
    busiest = max(each.others or 0.0 for each in (table, other))
    if busiest > DISTURBED:
        return f"intervals not compared, since other processes used up to {busiest:.1f} cores"
    for who in ("target", "draft"):
        for tokens, one in getattr(table, who).items():
            here = one * (1 / table.target[1].best)
            there = getattr(other, who)[tokens] * (1 / other.target[1].best)
            assert max(here.low, there.low) <= min(here.high, there.high), (who, tokens, here, there)
    return "95% intervals of both ways overlap for every pass"


def said_of(name: str, table: LatencyTable) -> str:
    """How the rounds ended, how wide intervals are, and what other processes used."""
    ended = table.provenance[ROUNDS]
    widest = max(ended["widths"], key=ended["widths"].get)
    said = [
        f"{name}: {ended['rounds']} rounds in {ended['groups']} groups in {ended['seconds']:.1f} s, ended by "
        f"{ended['stopped']}",
        f"widest interval {ended['widths'][widest]:.1%} ({widest})",
        f"draft step {table.ratio:.3f} of a plain step",
    ]
    if ended["others"] is not None:
        said.append(f"other processes used {ended['others']:.1f} cores")
    return "; ".join(said)


if __name__ == "__main__":
    main()
