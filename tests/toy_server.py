"""A server with known costs, and the results that `vllm bench serve` would save of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Seconds = Callable[[float, float, int], float]
"""Of a step: batch, context, k."""


def affine(a: float, b: float, c: float, s: float, d: float, e: float, f: float) -> Seconds:
    """The law that is fitted."""
    return lambda batch, context, k: (
        a + b * batch + c * batch * context + (s if k else 0.0) + k * (d + e * batch + f * batch * context)
    )


def served(
    rng: np.random.Generator,
    seconds: Seconds,
    concurrency: int,
    k: int,
    *,
    survival: Sequence[float],
    prompt: int = 100,
    output: int = 65,
    requests: int = 0,
    noise: float = 0.02,
    prefill: float = 0.0,
    spread: int = 0,
) -> dict[str, Any]:
    """One run: sequences decode together step by step, and a finished one is replaced at once.

    The first token comes with the prompt, which adds `prefill` seconds to a step of all others; in that step the new
    sequence does not decode. Outputs differ by up to `spread` tokens from `output`, to both sides; of equal ones all
    plain sequences end together. Calls accept drafts by `survival`; accepted tokens past the end of a text are counted,
    as vLLM does.
    """
    requests = requests or 16 * concurrency
    waiting, clock = requests - concurrency, 0.0
    lengths = (output + rng.integers(-spread, spread + 1, requests)).tolist()
    total = sum(lengths)
    left: list[int] = [lengths.pop() - 1 for _ in range(concurrency)]
    began: list[float | None] = [0.0] * concurrency
    calls, accepted = 0, np.zeros(k, int)
    latencies = []
    while left:
        context = prompt + output - float(np.mean(left))
        clock += seconds(len(left), context, k) + prefill * began.count(None)
        running: list[tuple[int, float | None]] = []
        for remaining, start in zip(left, began, strict=True):
            if start is None:
                running.append((remaining, clock))
                continue
            taken = int(np.sum(rng.random() < np.array(survival[:k]))) if k else 0
            calls, accepted[:taken] = calls + bool(k), accepted[:taken] + 1
            if remaining > taken + 1:
                running.append((remaining - taken - 1, start))
            else:
                latencies.append(clock - start)
                if waiting:
                    waiting -= 1
                    running.append((lengths.pop() - 1, None if prefill else clock))
        left, began = [r for r, _ in running], [s for _, s in running]
    factor = 1 + noise * rng.standard_normal()  # the machine of this run
    run = result(concurrency, requests, prompt, output, factor * np.array(latencies), factor * clock, calls, accepted)
    return run | {"total_output_tokens": total}


def result(
    concurrency: int,
    requests: int,
    prompt: int,
    output: int,
    latencies: np.ndarray[Any, np.dtype[np.float64]],
    duration: float,
    calls: int,
    accepted: np.ndarray[Any, np.dtype[np.int64]],
) -> dict[str, Any]:
    """The JSON of --save-result."""
    saved: dict[str, Any] = {
        "date": "20261122-120000",
        "backend": "openai",
        "model_id": "target",
        "num_prompts": requests,
        "max_concurrency": concurrency,
        "duration": duration,
        "completed": requests,
        "failed": 0,
        "total_input_tokens": requests * prompt,
        "total_output_tokens": requests * output,
        "latencies": latencies.tolist(),
        "mean_ttft_ms": 0.0,
        "mean_tpot_ms": 1e3 * float(np.mean(latencies)) / (output - 1),
    }
    if not calls:
        return saved
    drafted = calls * len(accepted)
    return saved | {
        "spec_decode_acceptance_rate": 100 * int(accepted.sum()) / drafted,
        "spec_decode_acceptance_length": 1 + int(accepted.sum()) / calls,
        "spec_decode_num_drafts": calls,
        "spec_decode_draft_tokens": drafted,
        "spec_decode_accepted_tokens": int(accepted.sum()),
        "spec_decode_per_position_acceptance_rates": (accepted / calls).tolist(),
    }


def sweep(folder: Path, seconds: Seconds, ks: Sequence[int], seed: int = 0, **settings: Any) -> Path:
    """Runs of every k at several concurrencies and two contexts, a file each."""
    rng = np.random.default_rng(seed)
    for k in ks:
        for concurrency in (1, 4, 16):
            for prompt in (100, 1000):
                run = served(rng, seconds, concurrency, k, prompt=prompt, **settings)
                (folder / f"k{k}_c{concurrency}_in{prompt}.json").write_text(json.dumps(run))
    return folder
