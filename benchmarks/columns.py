"""Every column of a trace from logits, one thread: over the full vocabulary, by V, and at truncated settings.

Over the full vocabulary: ours, compiled, against the same columns by torch and by plain numpy, and against two
exponentials per entry, which every way needs. At truncated settings: ours, over the union of both supports, against the
same columns over the whole vocabulary, with the same cuts, and against one reading of both rows. Every column is
asserted to be the peer's, but for one that is estimated from noise: draws within rounding of a boundary differ.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from _rows import Row, nanoseconds, publish
from numpy.typing import NDArray
from torch import Tensor

from spectheory import kernels
from spectheory.distributions import Sampling
from spectheory.measure.columns import statistics
from spectheory.measure.columns.statistics import position_statistics
from spectheory.trace import RECORDED_RANKS

SIZES = (8_192, 32_000, 64_000, 151_936)
ENTRIES, REPEATS = 2**21, 5
POSITIONS, OF_PEER = 64, 3
"""At truncated settings, of ours and of the peer."""
TWIN, SINGLE = 1e-6, 2e-5
"""Relative and absolute, of columns by torch, and of sums in another precision: logits of 30 are rounded to 1e-6."""
BY_TORCH = f"every column is torch's to {TWIN:g}, and numpy's in float64 to {SINGLE:g}"
WHOLE = f"every column but the estimated law is the peer's to {SINGLE:g}"
WANTED = {(32_000, False): 6.0, (151_936, False): 6.0, (32_000, True): 25.0, (151_936, True): 20.0}
TRUNCATED = {
    "T 0.7, top-k 50": (Sampling(0.7, top_k=50), 1.0),
    "T 0.7, top-k 50, top-p 0.9": (Sampling(0.7, top_k=50, top_p=0.9), 1.0),
    "T 1, top-k 1000": (Sampling(1, top_k=1000), 1.5),
    "temperature 0": (Sampling(0), 0.6),
    "T 0.6, top-p 0.95": (Sampling(0.6, top_p=0.95), 2.0),
    "T 1, top-p 0.95": (Sampling(1, top_p=0.95), 5.0),
}
COMPILE = """
import time, torch
from spectheory.distributions import Sampling
from spectheory.measure.columns.statistics import position_statistics
logits, spent = torch.zeros(1, 4096), []
for _ in range(2):
    began = time.thread_time()
    position_statistics(logits, logits, torch.tensor([0]), Sampling())
    spent.append(time.thread_time() - began)
print(spent[0] - spent[1])
"""
without_numba = partial(patch.object, kernels, "installed", lambda: False)
over_all_tokens = partial(patch.object, statistics, "cuts", lambda *_: False)


def numpy_statistics(
    target: NDArray[np.floating], draft: NDArray[np.floating], tokens: NDArray[np.int64], race: bool
) -> dict[str, NDArray[np.floating]]:
    """The peer: the same columns in plain numpy, whole arrays at a time."""
    at = np.arange(len(tokens)), tokens
    log_p, log_q = (x - x.max(-1, keepdims=True) for x in (target, draft))
    log_p -= np.log(np.exp(log_p).sum(-1, keepdims=True))
    log_q -= np.log(np.exp(log_q).sum(-1, keepdims=True))
    p, q = np.exp(log_p), np.exp(log_q)
    c = np.exp(log_p[at] - log_q[at])
    rho, left, taken, ranks = 1 / c, np.ones_like(c), np.zeros_like(c), []
    for _ in range(RECORDED_RANKS):
        ranks.append(np.minimum(np.maximum(1 - taken * rho, 0), left * rho))
        taken = taken + left
        left = np.maximum(p - taken[:, None] * q, 0).sum(-1)
    columns = {
        "log_target": log_p[at],
        "log_draft": log_q[at],
        "total_variation": np.abs(p - q).sum(-1) / 2,
        "kl": (p * (log_p - log_q)).sum(-1),
        "target_entropy": -(p * log_p).sum(-1),
        "target_second_moment": (p * log_p**2).sum(-1),
        "draft_entropy": -(q * log_q).sum(-1),
        "harmonic_similarity": (2 * p * q / (p + q)).sum(-1),
        "race_g": np.maximum(c[:, None] * q - p, 0).sum(-1),
        "draft_rank": 1 + (log_q > log_q[at][:, None]).sum(-1),
        "target_rank": 1 + (log_p > log_p[at][:, None]).sum(-1),
        "greedy_agreement": log_p.argmax(-1) == log_q.argmax(-1),
        "rejection_rank": np.stack(ranks, axis=1),
    }
    if race:
        order = np.argsort(p / q, axis=-1)
        p, q = np.take_along_axis(p, order, -1), np.take_along_axis(q, order, -1)
        g = p / q * np.cumsum(q, -1) - np.cumsum(p, -1)
        columns["race_acceptance"] = (p / (1 + np.maximum(g, 0))).sum(-1)
    return columns


def example(size: int, positions: int) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of both models as language models have them, and tokens of the target."""
    generator = torch.Generator().manual_seed(size)
    target = 3 * torch.randn(positions, size, generator=generator)
    draft = target + torch.randn(target.shape, generator=generator)
    return target, draft, torch.multinomial(target.softmax(-1), 1, generator=generator)[:, 0]


def check(work: Callable[[], dict[str, Tensor]], peer: Any, tolerance: float) -> None:
    """Ours are the columns that are computed while `peer` holds."""
    ours = work()
    with peer():
        for name, values in work().items():
            if name != "distinct_rank":
                np.testing.assert_allclose(ours[name], values, rtol=tolerance, atol=tolerance, err_msg=name)


def rows_of(size: int) -> Iterator[Row]:
    """The full vocabulary, of this size."""
    target, draft, tokens = example(size, ENTRIES // size)

    def columns(kind: torch.dtype, race: bool = True) -> Callable[[], dict[str, Tensor]]:
        return partial(position_statistics, target.to(kind), draft.to(kind), tokens, Sampling(), race=race)

    check(columns(torch.float32), without_numba, TWIN)
    ours = columns(torch.float32)()
    for name, values in numpy_statistics(target.double().numpy(), draft.double().numpy(), tokens.numpy(), True).items():
        np.testing.assert_allclose(ours[name], values, rtol=SINGLE, atol=SINGLE, err_msg=name)

    def time(work: Callable[[], object]) -> float:
        return nanoseconds(lambda _: work(), [0], target.numel(), REPEATS)

    limit = time(lambda: (torch.exp(target), torch.exp(draft))), "two exponentials"
    for race, label in ((False, "cheap columns"), (True, "all columns")):
        seconds = time(columns(torch.float32, race))
        with without_numba():
            twin = time(columns(torch.float32, race))
        wanted, work, unit = WANTED.get((size, race)), f"{label}, V = {size:,}", "ns per entry"
        yield Row(work, unit, seconds, BY_TORCH, twin, "torch", *limit, wanted, {"V": size})
        if size == max(SIZES):
            by_numpy = time(lambda race=race: numpy_statistics(target.numpy(), draft.numpy(), tokens.numpy(), race))
            half = time(columns(torch.bfloat16, race))
            yield Row(work, unit, seconds, BY_TORCH, by_numpy, "numpy", *limit, wanted)
            yield Row(f"{work}, bfloat16", unit, half, BY_TORCH, twin, "torch, float32", *limit, wanted)


def truncated() -> Iterator[Row]:
    """Truncated settings at V = 151,936."""
    target, draft, tokens = example(max(SIZES), POSITIONS)
    few = target[:OF_PEER], draft[:OF_PEER], tokens[:OF_PEER]

    def time(work: Callable[[], object], positions: int = POSITIONS) -> float:
        return nanoseconds(lambda _: work(), [0], positions, 3) / 1e6

    limit = time(lambda: (target.amax(dim=-1), draft.amax(dim=-1))), "reading both rows"
    for setting, (sampling, wanted) in TRUNCATED.items():
        columns = partial(position_statistics, sampling=sampling, sampled=True)
        check(partial(columns, *few), over_all_tokens, SINGLE)
        with over_all_tokens():
            peer = time(partial(columns, *few), OF_PEER), "whole vocabulary, float32"
        for kind, label in ((torch.float32, ""), (torch.bfloat16, ", bfloat16")):
            ours = time(partial(columns, target.to(kind), draft.to(kind), tokens))
            yield Row(f"all columns, {setting}{label}", "ms per position", ours, WHOLE, *peer, *limit, wanted)


def compiling() -> float:
    """Seconds of compiling everything, once per machine: the first call in a process with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-c", COMPILE]
        return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Check equality, then time."""
    torch.set_num_threads(1)
    rows = [*(row for size in SIZES for row in rows_of(size)), *truncated()]
    note = f"The kernels of float32 are compiled in {compiling():.0f} s, once per machine."
    publish(__file__, "All columns of a trace, one thread; truncated settings at V = 151,936", rows, note)


if __name__ == "__main__":
    main()
