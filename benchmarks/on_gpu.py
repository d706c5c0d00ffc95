"""On an accelerator: is what our decoders output right there, do calls and speed-ups come as predicted, what it takes.

Parts: `texts` (races and greedy texts that ought to be the same), `calls` (counted against expected, speed-ups
against predicted), `columns` (of positions, against the CPU's and the device's bandwidth, and their share of a
measurement), `sampling` (prompts together against one by one), `latencies` and `latency_budget` (of a large pair with
random weights, with the decoding loop), `heads` (draft heads of it), `mixed` (the models on different devices),
`memory` (out of it), `workers` (one for each GPU, if there are several). Rounding may decide, above all in bfloat16,
so nothing is asserted: numbers say how many texts part and where. A part that fails leaves its error, and what is
finished is on disk. Runs where there is no GPU with ``--device cpu --sizes tiny``.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _gpu_pairs import SIZES, Sizes, columns, heads, latencies, latency_budget
from torch import Tensor

from spectheory.cli import main as command
from spectheory.distributions import Sampling
from spectheory.drafting import Chain, KAry
from spectheory.errors import ModelError
from spectheory.files import write_whole
from spectheory.measure import MeasureSettings, ModelPair, generate_plain, load_pair
from spectheory.measure.columns.noise import text_key
from spectheory.measure.decoders import HeaviestTree, Method, decode
from spectheory.measure.decoders.tree import ROOT, Clocks, DraftTree
from spectheory.measure.job import encode, texts_of
from spectheory.measure.machine import hardware, versions, wait_for
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
    differences: list[dict[str, float | None]] = []
    for number, (prompt, text, other) in enumerate(zip(prompts, texts, others, strict=True)):
        if text == other:
            continue
        at = next((i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), None)
        if at is None:
            differences.append({"text": number, "at": min(len(text), len(other)), "margin": None, "spacing": None})
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
        differences.append({"text": number, "at": at, "margin": margin, "spacing": spacing})
    return differences


def calls(device: str, dtype: str, sizes: Sizes) -> dict[str, Any]:
    """Counted against expected calls, and predicted against measured speed-ups, with the medians of the budget."""
    pair = builtin(device, dtype)
    prompts = [replace(one, text=one.text[: sizes.characters]) for one in read_prompts(PROMPTS)[: sizes.validated]]
    how = MeasureSettings(tokens=sizes.length, seed=SEED)
    question = Validation((), sizes.shapes, sizes.temperatures, how)
    with tempfile.TemporaryDirectory() as folder:
        validation = validate(pair, prompts, question, Path(folder))
    rows = [
        {"temperature": at["temperature"], **shortened(one)}
        for at in validation["temperatures"]
        for one in at["settings"]
    ]
    deciding = [row["z"] for row in rows if row["decides"]]
    z = [one for one in deciding if one is not None]
    budgets = [row["budget"] for row in rows if row["budget"]]
    return {
        **{name: validation[name] for name in ("comparisons", "disagreements", "beyond_3", "false_alarms")},
        "largest_z": max(map(abs, z), default=None),
        "infinite_z": len(deciding) - len(z),
        "off_by_rounding": sum(round(abs(row["off"])) for row in rows if not row["decides"]),
        "median_miss": validation["median_miss"],
        "median_miss_of_passes": validation["median_miss_of_passes"],
        "median_budget": {part: statistics.median(one[part] for one in budgets) for part in budgets[0]},
        "draft_step": validation["provenance"]["draft_step"],
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
    answer: dict[str, Any] = {"devices": [str(here.target.device), str(there.target.device)]}
    for name, pair in (
        ("draft on cpu", replace(here, draft=there.draft)),
        ("target on cpu", replace(there, draft=here.draft)),
    ):
        prompts = prompts_of(pair, sizes.prompts)
        plain, chain, tree = (
            [one.output_ids.tolist() for one in decode(pair, prompts, method, tokens=sizes.tokens, seed=SEED)]
            for method in (Method("race"), Method("race", Chain(4)), Method("race", KAry((2, 2, 1))))
        )
        answer[name] = {
            "texts": len(prompts),
            "chain": parted(pair, prompts, plain, chain, True),
            "tree": parted(pair, prompts, plain, tree, True),
        }
    return answer


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
            status = command(["measure", *where, "--dtype", dtype, *text, "--workers", str(number), "--out", str(out)])
            if status:
                raise RuntimeError(f"measure --workers {number} ended with status {status}")
            seconds[number] = time.perf_counter() - began
            traces.append(Trace.read(out / TRACE_FILE))
    one, many = ([trace.columns["token"].tolist(), trace.lengths.tolist()] for trace in traces)
    return {"devices": count, "seconds": seconds, "same_texts": one == many}


Part = Callable[[str, str, Sizes], dict[str, Any]]
PARTS: dict[str, Part] = {
    "texts": texts,
    "calls": calls,
    "columns": columns,
    "sampling": sampling,
    "latencies": latencies,
    "latency_budget": latency_budget,
    "heads": heads,
    "mixed": mixed,
    "memory": memory,
    "workers": workers,
}
LARGE = ("columns", "latencies", "latency_budget", "heads", "workers")
"""Parts that are run in one dtype alone, the narrowest asked for."""
RESULTS = Path(__file__).parent / "results"


def main(arguments: list[str] | None = None) -> int:
    """Run the parts asked for; 0 if none failed."""
    asked = options(arguments)
    device = asked.device or "cuda"
    if device == "cuda" and not torch.cuda.is_available():
        print("this machine has no cuda device; use --device cpu --sizes tiny")
        return 2 if asked.device else 0  # all benchmarks together go on to the next
    torch.set_num_threads(asked.threads)
    path = asked.out or RESULTS / f"on_{device}.json"
    results: dict[str, Any] = {
        "machine": machine(),
        "versions": versions(),
        "device": device,
        "sizes": asked.sizes,
        "parts": {},
    }
    started, failed = time.monotonic(), False
    for name in asked.parts:
        narrowest = min(asked.dtype, key=lambda dtype: getattr(torch, dtype).itemsize)
        for dtype in (narrowest,) if name in LARGE else asked.dtype:
            if time.monotonic() - started > asked.limit:
                result: dict[str, Any] = {"left_out": f"more than {asked.limit:g} s had passed"}
            else:
                result = guarded(lambda name=name, dtype=dtype: PARTS[name](device, dtype, SIZES[asked.sizes]))
            results["parts"].setdefault(name, {})[dtype] = result
            write_whole(path, lambda whole: whole.write_text(json.dumps(results, indent=1) + "\n"))
            failed |= "error" in result
            print(f"{name} {dtype}: {summary(result)}", flush=True)
    return int(failed)


def options(arguments: list[str] | None) -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], help="cuda if absent")
    parser.add_argument("--dtype", nargs="+", default=["float32", "bfloat16"], choices=["float32", "bfloat16"])
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--sizes", default="quick", choices=list(SIZES), help="how much is run")
    parser.add_argument("--quick", dest="sizes", action="store_const", const="quick", help="the same as --sizes quick")
    parser.add_argument("--limit", type=float, default=440.0, help="seconds after which no part is begun")
    parser.add_argument("--threads", type=int, default=min(4, os.cpu_count() or 1), help="of the CPU")
    parser.add_argument("--out", type=Path, help="where the results go")
    return parser.parse_args(arguments)


def guarded(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a part found and how long it took, or its error."""
    started = time.monotonic()
    try:
        result = work()
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        result = {"error": f"{type(error).__name__}: {error}", "where": where}
        traceback.print_exc(file=sys.stderr)
    # The weights of a part make room for those of the next.
    gc.collect()
    if torch.cuda.is_available():
        with suppress(RuntimeError):
            torch.cuda.empty_cache()
    return {"seconds": round(time.monotonic() - started, 2), **result}


def machine() -> dict[str, Any]:
    """Processor, accelerator, its driver and CUDA."""
    description = {**hardware(), "cuda": torch.version.cuda}
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    with suppress(OSError, subprocess.SubprocessError):
        asked = subprocess.run(query, capture_output=True, text=True, check=True, timeout=30)
        description["nvidia_smi"] = asked.stdout.strip().splitlines()
    return description


def summary(result: dict[str, Any]) -> str:
    """One line of the numbers of a part."""
    shown = {name: value for name, value in result.items() if not isinstance(value, (dict, list))}
    return ", ".join(f"{name} {value}" for name, value in shown.items())


if __name__ == "__main__":
    sys.exit(main())
