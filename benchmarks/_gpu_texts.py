"""What the built-in pair does on a device: texts that ought to be the same, counted calls, batches and workers."""

from __future__ import annotations

import dataclasses
import math
import statistics
import tempfile
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _gpu_pairs import Sizes
from torch import Tensor

from spectheory.cli import main
from spectheory.distributions import Sampling
from spectheory.drafting import Chain, KAry
from spectheory.errors import ModelError
from spectheory.measure import MeasureSettings, ModelPair, generate_plain, load_pair
from spectheory.measure.columns.noise import text_key
from spectheory.measure.decoders import HeaviestTree, Method, decode
from spectheory.measure.decoders.tree import ROOT, Clocks, DraftTree
from spectheory.measure.job import encode, texts_of
from spectheory.measure.machine import wait_for
from spectheory.measure.reading import Reading
from spectheory.measure.tokens import encode_prompt
from spectheory.measure.validation import Validation, validate
from spectheory.pairs import PROMPTS, resolve
from spectheory.prompts import read_prompts
from spectheory.trace import TRACE_FILE, Trace

SEED, PROMPT_TOKENS, SPARE = 1, 60, 64 << 20
SHAPES = (Chain(1), Chain(4), KAry((2, 2, 1)), KAry((3, 2, 1)))
GREEDY = (
    *(Method(rule, Chain(4)) for rule in ("token", "block", "race", "argmax", "greedy", "lookup")),
    *(Method(rule, KAry((2, 2, 1))) for rule in ("race", "poisson", "recursive", "recursive-distinct", "topk")),
    Method("toptree", HeaviestTree(8)),
)


@lru_cache
def builtin(device: str, dtype: str) -> ModelPair:
    """The built-in pair."""
    return load_pair(resolve("builtin:target"), resolve("builtin:draft"), device=device, dtype=dtype)


def prompts_of(pair: ModelPair, count: int) -> list[Tensor]:
    """Beginnings of the built-in prompts."""
    return [encode_prompt(pair.tokenizer, one)[:PROMPT_TOKENS] for one in read_prompts(PROMPTS)[:count]]


def texts(device: str, dtype: str, sizes: Sizes) -> dict[str, Any]:
    """How many texts part from plain race sampling's and from the target's greedy ones, where and by what margin."""
    pair = builtin(device, dtype)
    prompts = prompts_of(pair, sizes.prompts)

    def outputs(method: Method, sampling: Sampling, batch: int = 1) -> list[list[int]]:
        made = decode(pair, prompts, method, tokens=sizes.tokens, sampling=sampling, seed=SEED, batch=batch)
        return [one.output_ids.tolist() for one in made]

    raced, greedy = outputs(Method("race"), Sampling()), outputs(Method("plain"), Sampling(0))
    races = {
        f"{shape}, batch {batch}": parted(pair, prompts, raced, outputs(Method("race", shape), Sampling(), batch), True)
        for shape in SHAPES
        for batch in (1, len(prompts))
    }
    races["again"] = parted(pair, prompts, raced, outputs(Method("race"), Sampling()), True)
    others = {
        f"{method.rule} {method.shape}": parted(pair, prompts, greedy, outputs(method, Sampling(0)), False)
        for method in GREEDY
    }
    judged = generate_plain(pair, prompts, Sampling(0), tokens=sizes.tokens, seed=SEED)
    others["transformers"] = parted(pair, prompts, greedy, [one.output_ids.tolist() for one in judged], False)
    return {
        "texts": len(prompts),
        "tokens": sum(map(len, raced)),
        "races_parted": sum(len(one) for one in races.values()),
        "greedy_parted": sum(len(one) for one in others.values()),
        "races": races,
        "greedy": others,
    }


def parted(
    pair: ModelPair, prompts: Sequence[Tensor], texts: Sequence[list[int]], others: Sequence[list[int]], raced: bool
) -> list[dict[str, float | None]]:
    """The texts that differ: their number, where they part, and the margin by which the other token lost, in nats.

    The margin is that of the logits of a fresh reading, in a race less the logarithms of the clocks. What rounding
    decides has one, of either sign, of a few times the spacing of the precision's numbers at these logits.
    """
    found: list[dict[str, float | None]] = []
    for number, (prompt, text, other) in enumerate(zip(prompts, texts, others, strict=True)):
        if text == other:
            continue
        at = next((i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), None)
        if at is None:
            found.append({"text": number, "at": min(len(text), len(other)), "margin": None, "spacing": None})
            continue
        before = torch.cat([prompt, torch.tensor(text[:at], dtype=torch.int64)])
        logits = Reading(pair.target, pair.vocabulary).read(before[None])[0, -1]
        scores, largest = logits.double().cpu().numpy(), max(abs(float(logits[one[at]])) for one in (text, other))
        if raced:
            clocks = Clocks(text_key(SEED, number, 1), pair.vocabulary)
            clocks.follow(before.tolist())
            scores = scores - np.log(clocks.at(DraftTree(), ROOT))
        spacing = torch.finfo(logits.dtype).eps * 2.0 ** math.floor(math.log2(largest)) if largest > 0 else 0.0
        margin = float(scores[text[at]] - scores[other[at]])
        found.append({"text": number, "at": at, "margin": margin, "spacing": spacing})
    return found


def calls(device: str, dtype: str, sizes: Sizes) -> dict[str, Any]:
    """Counted against expected calls, and predicted against measured speed-ups, with the medians of the budget."""
    pair = builtin(device, dtype)
    prompts = [
        dataclasses.replace(one, text=one.text[: sizes.characters]) for one in read_prompts(PROMPTS)[: sizes.validated]
    ]
    how = MeasureSettings(tokens=sizes.length, seed=SEED)
    question = Validation((), sizes.shapes, sizes.temperatures, how)
    with tempfile.TemporaryDirectory() as folder:
        found = validate(pair, prompts, question, Path(folder))
    rows = [
        {"temperature": at["temperature"], **shortened(one)} for at in found["temperatures"] for one in at["settings"]
    ]
    deciding = [row["z"] for row in rows if row["decides"]]
    z = [one for one in deciding if one is not None]
    budgets = [row["budget"] for row in rows if row["budget"]]
    return {
        **{name: found[name] for name in ("comparisons", "disagreements", "beyond_3", "false_alarms")},
        "largest_z": max(map(abs, z), default=None),
        "infinite_z": len(deciding) - len(z),
        "off_by_rounding": sum(round(abs(row["off"])) for row in rows if not row["decides"]),
        "median_miss": found["median_miss"],
        "median_miss_of_passes": found["median_miss_of_passes"],
        "median_budget": {part: statistics.median(one[part] for one in budgets) for part in budgets[0]},
        "draft_step": found["provenance"]["draft_step"],
        "settings": rows,
    }


def shortened(record: dict[str, Any]) -> dict[str, Any]:
    """The best values of a setting's record."""
    speedup, expected = record["speedup"], record["expected"]
    return {
        "setting": record["name"],
        "calls": record["calls"],
        "expected": expected["calls"],
        **{name: expected[name] for name in ("z", "p", "decides", "off")},
        **{
            name: speedup[name]["best"] if speedup.get(name) else None
            for name in ("measured", "predicted", "passes_alone", "miss", "miss_of_passes")
        },
        "machine": speedup.get("machine"),
        "budget": {name: part["best"] for name, part in speedup.get("budget", {}).items()},
    }


def mixed(device: str, dtype: str, sizes: Sizes) -> dict[str, Any]:
    """Target and draft on different devices, either way: drafted races against the same target's plain one."""
    here, there = builtin(device, dtype), builtin("cpu", dtype)
    found: dict[str, Any] = {"devices": [str(here.target.device), str(there.target.device)]}
    for name, pair in (
        ("draft on cpu", dataclasses.replace(here, draft=there.draft)),
        ("target on cpu", dataclasses.replace(there, draft=here.draft)),
    ):
        prompts = prompts_of(pair, sizes.prompts)
        plain, chain, tree = (
            [one.output_ids.tolist() for one in decode(pair, prompts, method, tokens=sizes.tokens, seed=SEED)]
            for method in (Method("race"), Method("race", Chain(4)), Method("race", KAry((2, 2, 1))))
        )
        found[name] = {
            "texts": len(prompts),
            "chain": parted(pair, prompts, plain, chain, True),
            "tree": parted(pair, prompts, plain, tree, True),
        }
    return found


def memory(device: str, dtype: str, sizes: Sizes) -> dict[str, Any]:
    """A batch that does not fit into the memory this process is allowed; the error, and that decoding goes on after."""
    if device != "cuda":
        return {"provoked": False}
    pair = builtin(device, dtype)
    (prompt,) = prompts_of(pair, 1)
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + SPARE) / total)
    try:
        decode(pair, [prompt] * 4096, Method("race", Chain(4)), tokens=4, batch=4096)
        said = None
    except ModelError as error:
        said = str(error)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    (after,) = decode(pair, [prompt], Method("race", Chain(4)), tokens=4)
    return {"provoked": said is not None, "said": said, "calls_after": len(after.calls)}


def sampling(device: str, dtype: str, sizes: Sizes) -> dict[str, Any]:
    """Tokens per second of prompts sampled together and one by one, and how many texts differ."""
    pair = builtin(device, dtype)
    settings = MeasureSettings(tokens=sizes.tokens, count=2, seed=SEED)
    prompts = encode(pair, read_prompts(PROMPTS)[: sizes.prompts], settings)
    made, rates = {}, {}
    for name, batches in (("one by one", [[one] for one in prompts]), ("together", [prompts])):
        texts_of(pair, batches[0], settings)
        wait_for(pair.target.device)
        began = time.perf_counter()
        made[name] = [text.tolist() for batch in batches for texts in texts_of(pair, batch, settings) for text in texts]
        rates[name] = sum(map(len, made[name])) / (time.perf_counter() - began)
    differ = sum(one != other for one, other in zip(*made.values(), strict=True))
    return {"texts": len(made["together"]), "differ": differ, "tokens_per_second": rates}


def workers(device: str, dtype: str, sizes: Sizes) -> dict[str, Any]:
    """Seconds of ``measure`` with one worker and with one for each GPU, and whether the traces are equal."""
    count = torch.cuda.device_count() if device == "cuda" else 1
    return with_workers(device, dtype, sizes, count) if count > 1 else {"devices": count}


def with_workers(device: str, dtype: str, sizes: Sizes, count: int) -> dict[str, Any]:
    """The command as a user runs it, loading and the least of latencies included."""
    where = [] if device == "cuda" else ["--device", device]
    text = ["--tokens", str(sizes.tokens), "--seed", str(SEED), "--latency-seconds", "0.1"]
    seconds, traces = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for number in (1, count):
            out = Path(folder) / str(number)
            began = time.perf_counter()
            status = main(["measure", *where, "--dtype", dtype, *text, "--workers", str(number), "--out", str(out)])
            if status:
                raise RuntimeError(f"measure --workers {number} ended with status {status}")
            seconds[number] = time.perf_counter() - began
            traces.append(Trace.read(out / TRACE_FILE))
    one, many = ([trace.columns["token"].tolist(), trace.lengths.tolist()] for trace in traces)
    return {"devices": count, "seconds": seconds, "same_texts": one == many}
