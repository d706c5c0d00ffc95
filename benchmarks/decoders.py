"""Decoders on the built-in pair: what a call costs beyond the forward passes of the two models, one thread, float32.

Ours is the median time of a call, the limit the median time of its forward passes, the overhead the median over the
calls of their ratio, less one. All in thread CPU time: machines are shared. The peer is transformers: plain and
assisted generation with k = 4 (prompt included, as in ours). That decoding gives the target's law is held by the
tests; here every race must give the same text first.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import torch
from _machine import print_machine

from spectheory.distributions import Sampling
from spectheory.drafting import Chain, KAry, Shape
from spectheory.measure import ModelPair, assisted, count_assisted_calls, generate_plain, load_pair
from spectheory.measure.decoders import Decoded, HeaviestTree, Method, decode, loop, readers
from spectheory.measure.machine import hardware, versions
from spectheory.measure.tokens import encode_prompt
from spectheory.pairs import PROMPTS, resolve
from spectheory.prompts import read_prompts

TEXTS, PROMPT_TOKENS, TOKENS, LIMIT = 6, 60, 80, 0.20
RESULTS = Path(__file__).parent / "results" / "decoders.json"
METHODS: tuple[tuple[str, Shape | HeaviestTree | None], ...] = (
    ("plain", None),
    ("token", Chain(4)),
    ("block", Chain(4)),
    ("lookup", Chain(4)),
    ("race", None),
    ("race", Chain(4)),
    ("race", KAry((3, 2, 1))),
    ("recursive", KAry((3, 2, 1))),
    ("recursive-distinct", KAry((3, 2, 1))),
    ("topk", KAry((3, 2, 1))),
    ("toptree", HeaviestTree(16)),
)


def row_of(name: str, decoded: Sequence[Decoded], peer: float | None) -> dict[str, float | str | None]:
    """Milliseconds of a call, of its forward passes and of the peer's call, and the overhead."""
    calls = [call for one in decoded for call in one.calls if call.drafted or name.endswith("None")]
    within = [call.draft_seconds + call.target_seconds for call in calls]
    prefill = sum(one.prefill_seconds for one in decoded) / sum(len(one.calls) for one in decoded)
    return {
        "work": name,
        "ours": 1e3 * (statistics.median(call.seconds for call in calls) + prefill),
        "peer": peer,
        "limit": 1e3 * (statistics.median(within) + prefill),
        "overhead": statistics.median(call.seconds / inside - 1 for call, inside in zip(calls, within, strict=True)),
        "tokens_per_call": sum(len(one.output_ids) for one in decoded) / sum(len(one.calls) for one in decoded),
    }


def peers(pair: ModelPair, prompts: Sequence[torch.Tensor]) -> dict[str, float]:
    """Milliseconds of a call of transformers, plain and with four drafts."""
    found = {}
    for name, texts in (
        ("plain None", generate_plain(pair, prompts, Sampling(), tokens=TOKENS, seed=1)),
        ("token chain k=4", count_assisted_calls(pair, prompts, Sampling(), k=4, tokens=TOKENS, seed=1)),
    ):
        found[name] = 1e3 * statistics.median(text.seconds / text.calls for text in texts)
    return found


def main() -> None:
    """Print a row per method; write them where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results go")
    options = parser.parse_args()
    print_machine()
    torch.set_num_threads(1)
    for module in (assisted, loop, readers):
        module.time = SimpleNamespace(perf_counter=time.thread_time)
    pair = load_pair(resolve("builtin:target"), resolve("builtin:draft"), device="cpu")
    prompts = [encode_prompt(pair.tokenizer, prompt)[:PROMPT_TOKENS] for prompt in read_prompts(PROMPTS)[:TEXTS]]
    count_assisted_calls(pair, prompts[:1], Sampling(), k=4, tokens=8, seed=0)
    others = peers(pair, prompts)
    rows, raced = [], []
    print(f"{'':<50}{'ours':>8}{'peer':>8}{'limit':>8}{'overhead':>10}{'tokens per call':>17}   ms per call")
    for rule, shape in METHODS:
        name, method = f"{rule} {shape}", Method(rule, shape)
        decode(pair, prompts[:1], method, tokens=8)
        decoded = decode(pair, prompts, method, tokens=TOKENS, seed=1)
        if rule == "race":
            raced.append([one.output_ids.tolist() for one in decoded])
        row = row_of(name, decoded, others.get(name))
        rows.append(row)
        peer = f"{others[name]:8.2f}" if name in others else f"{'':8}"
        print(
            f"{name:<50}{row['ours']:>8.2f}{peer}{row['limit']:>8.2f}{row['overhead']:>10.1%}"
            f"{row['tokens_per_call']:>17.2f}{'' if row['overhead'] <= LIMIT else '  above the limit set'}"
        )
    assert all(texts == raced[0] for texts in raced), "a race's text depends on its drafts"
    options.json.parent.mkdir(parents=True, exist_ok=True)
    found = {
        "hardware": hardware(),
        "versions": versions(),
        "clock": "thread CPU time",
        "overhead_limit": LIMIT,
        "rows": rows,
    }
    options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
