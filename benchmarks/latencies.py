"""Latencies of a pair within budgets, against 40 rounds of every pass whatever their intervals are.

Both measure passes on 1, 2, 4, ... 64 tokens, then the decoding loop; the peer decodes three texts of 24 tokens by each
of its settings. Before anything is said of times: every pass was run as often as the table says, and the intervals of
both ways overlap for every pass. Where other processes used cores meanwhile, the row says that intervals are not
compared. ``--wide`` measures a pair with random weights and V = 151,936, of 0.3 B and 0.17 B parameters in bfloat16.
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
from spectheory.distributions import Sampling
from spectheory.measure import ModelPair, load_pair, measure_latency, with_loop
from spectheory.measure.decoders import Method, decode
from spectheory.measure.latency import REPEATED, WarmModel
from spectheory.measure.loop_time import CALIBRATION
from spectheory.measure.rounds import PLAIN, Budget
from spectheory.pairs import resolve
from spectheory.reports.notes import BUSY

CONTEXT, BUDGETS = 64, (2.0, 10.0, 60.0)
ENDLESS = Budget(1e-12, 1e9)
LOOP_TEXTS, LOOP_TOKENS = 3, 24
"""Texts of every setting that the peer decodes, and their tokens."""


def main() -> None:
    """Measure, compare, and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wide", action="store_true", help="measure the wide pair")
    parser.add_argument("--out", type=Path, help="where the rows go")
    asked = parser.parse_args()
    torch.set_num_threads(1)  # all work is in this thread, whose time is taken
    pair, name = wide_pair() if asked.wide else _built_in(), "wide" if asked.wide else "built-in"
    fixed, peer = timed(lambda: forty_rounds(pair))
    rows, notes = [], [said_of(f"{name}, 40 rounds", fixed)]
    for seconds in BUDGETS:
        budget = Budget(seconds=seconds)
        table, ours = timed(lambda budget=budget: within(pair, budget))
        equal = f"passes run as often as the table says; {overlap(table, fixed)}"
        work = f"latencies of the {name} pair, at most {seconds:g} s"
        rows.append(Row(work, "s of CPU", ours, equal, peer, "40 rounds", at={"seconds": seconds}))
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
        table = measure_latency(pair, context=CONTEXT, budget=budget)
    check_counts(table, ran)
    return with_loop(pair, table, budget=budget)


def forty_rounds(pair: ModelPair) -> LatencyTable:
    """Every pass in each of 40 rounds, and texts by every setting of the loop."""
    table = measure_latency(pair, context=CONTEXT, budget=ENDLESS)
    prompt = torch.arange(CONTEXT - LOOP_TOKENS // 2) % pair.vocabulary
    for seed in range(LOOP_TEXTS):
        for method in (Method("plain"), *(Method(rule, shape) for rule, shape in CALIBRATION)):
            decode(pair, [prompt], method, tokens=LOOP_TOKENS, sampling=Sampling(), seed=seed, stop_at_end=False)
    return table


def timed(work: Callable[[], LatencyTable]) -> tuple[LatencyTable, float]:
    """The table, and the CPU seconds that this thread took for it."""
    began = time.thread_time()
    return work(), time.thread_time() - began


@contextmanager
def counted(pair: ModelPair) -> Iterator[Counter[tuple[str, int]]]:
    """Counts the passes on tokens, by model."""
    ran: Counter[tuple[str, int]] = Counter()
    own = WarmModel.run

    def listened(self: WarmModel, tokens: int, keep: int, **how: Any) -> float:
        ran["target" if self.model is pair.target else "draft", tokens] += 1
        return own(self, tokens, keep, **how)

    with patch.object(WarmModel, "run", listened):
        yield ran


def check_counts(table: LatencyTable, ran: Counter[tuple[str, int]]) -> None:
    """Passes were run as often as the provenance says, with those that warmed up."""
    said, warm_up = table.provenance["pass_rounds"]["repeats"], table.provenance["warm_up"]
    for (who, tokens), count in ran.items():
        if (who, tokens) == ("target", 1):
            assert count >= REPEATED[PLAIN] * (said["target 1"] + warm_up)  # some stand between two bursts of drafts
        elif who == "target" or tokens > 2:
            assert count == said[f"{who} {tokens}"] + warm_up


def overlap(table: LatencyTable, other: LatencyTable) -> str:
    """Check that both ways give the same times in plain steps, up to their intervals, on a machine that is quiet."""
    busiest = max(each.provenance["pass_rounds"]["others"] or 0.0 for each in (table, other))
    if busiest > BUSY:
        return f"intervals not compared, since other processes used up to {busiest:.1f} cores"
    for who in ("target", "draft"):
        for tokens, one in getattr(table, who).items():
            here = one * (1 / table.target[1].best)
            there = getattr(other, who)[tokens] * (1 / other.target[1].best)
            assert max(here.low, there.low) <= min(here.high, there.high), (who, tokens, here, there)
    return "95% intervals of both ways overlap for every pass"


def said_of(name: str, table: LatencyTable) -> str:
    """How the rounds ended, how wide intervals are, and what other processes used."""
    ended = table.provenance["pass_rounds"]
    widest = max(ended["widths"], key=ended["widths"].get)
    said = [
        f"{name}: {table.provenance['repeats']} rounds in {ended['seconds']:.1f} s, ended by {ended['stopped']}",
        f"widest interval {ended['widths'][widest]:.1%} ({widest})",
        f"draft step {table.ratio:.3f} of a plain step",
    ]
    if "loop_rounds" in table.provenance:
        loop = table.provenance["loop_rounds"]
        said.append(f"loop {loop['seconds']:.1f} s, ended by {loop['stopped']}")
    if ended["others"] is not None:
        said.append(f"other processes used {ended['others']:.1f} cores")
    return "; ".join(said)


if __name__ == "__main__":
    main()
