"""Decoders on the built-in pair: what a call costs beyond the forward passes of the two models, one thread, float32.

Ours is the median time of a call, the limit the median time of its forward passes, the overhead the median over the
calls of their ratio, less one. All in thread CPU time: machines are shared. The peer is transformers: plain and
assisted generation with k = 4 (prompt included, as in ours). That decoding gives the target's law is held by the
tests; here every race must give the same text first.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from types import SimpleNamespace

import torch
from _rows import Row, publish

from spectheory.distributions import Sampling
from spectheory.drafting import Chain, KAry, Shape
from spectheory.measure import ModelPair, assisted, count_assisted_calls, generate_plain, load_pair
from spectheory.measure.decoders import Decoded, HeaviestTree, Method, decode, readers
from spectheory.measure.tokens import encode_prompt
from spectheory.pairs import PROMPTS, resolve
from spectheory.prompts import read_prompts

TEXTS, PROMPT_TOKENS, TOKENS, LIMIT = 6, 60, 80, 0.20
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


def row_of(name: str, decoded: Sequence[Decoded], peer: float | None) -> Row:
    """Milliseconds of a call, of its forward passes and of the peer's call; the goal is the passes and a fifth."""
    calls = [call for one in decoded for call in one.calls]
    calls = [call for call in calls if call.drafted] or calls  # decoding without drafts has none
    within = [call.draft_seconds + call.target_seconds for call in calls]
    prefill = sum(one.prefill_seconds for one in decoded) / sum(len(one.calls) for one in decoded)
    ours, passes = (1e3 * (statistics.median(each) + prefill) for each in ([call.seconds for call in calls], within))
    same, others = "all races give one text", "transformers" if peer else ""
    return Row(name, "ms per call", ours, same, peer, others, passes, "both models' passes", (1 + LIMIT) * passes)


def peers(pair: ModelPair, prompts: Sequence[torch.Tensor]) -> dict[str, float]:
    """Milliseconds of a call of transformers, plain and with four drafts."""
    milliseconds = {}
    for name, texts in (
        ("plain", generate_plain(pair, prompts, Sampling(), tokens=TOKENS, seed=1)),
        ("token chain k=4", count_assisted_calls(pair, prompts, Sampling(), k=4, tokens=TOKENS, seed=1)),
    ):
        milliseconds[name] = 1e3 * statistics.median(text.seconds / text.calls for text in texts)
    return milliseconds


def main() -> None:
    """Time every method."""
    torch.set_num_threads(1)
    for module in (assisted, sys.modules[decode.__module__], readers):
        module.time = SimpleNamespace(perf_counter=time.thread_time)
    pair = load_pair(resolve("builtin:target"), resolve("builtin:draft"), device="cpu")
    prompts = [encode_prompt(pair.tokenizer, prompt)[:PROMPT_TOKENS] for prompt in read_prompts(PROMPTS)[:TEXTS]]
    count_assisted_calls(pair, prompts[:1], Sampling(), k=4, tokens=8, seed=0)
    others = peers(pair, prompts)
    rows, raced = [], []
    for rule, shape in METHODS:
        name, method = f"{rule} {shape}" if shape else rule, Method(rule, shape)
        decode(pair, prompts[:1], method, tokens=8)
        decoded = decode(pair, prompts, method, tokens=TOKENS, seed=1)
        if rule == "race":
            raced.append([one.output_ids.tolist() for one in decoded])
        rows.append(row_of(name, decoded, others.get(name)))
    assert all(texts == raced[0] for texts in raced), "a race's text depends on its drafts"
    publish(__file__, f"A call of our decoders on the built-in pair; goal: the passes and {LIMIT:.0%}", rows)


if __name__ == "__main__":
    main()
