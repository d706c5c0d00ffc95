"""Sampling in batches, and measuring on several devices: the same texts, in what time."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from _gpu_sizes import Sizes
from _gpu_texts import SEED, builtin

from spectheory.cli import main
from spectheory.measure import MeasureSettings
from spectheory.measure.devices import wait_for
from spectheory.measure.texts import encode, texts_of
from spectheory.pairs import PROMPTS
from spectheory.prompts import read_prompts
from spectheory.trace import TRACE_FILE, Trace


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
