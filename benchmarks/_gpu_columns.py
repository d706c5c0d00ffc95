"""Columns of positions on a device: are they the CPU's, what do they cost, and what share of a measurement is that."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch
from _gpu_random_pairs import PROMPT, random_pair
from _gpu_sizes import Sizes
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.measure import MeasureSettings, ModelPair
from spectheory.measure.columns.statistics import position_statistics
from spectheory.measure.filled import timed
from spectheory.measure.forward import paired_logits
from spectheory.measure.texts import Encoded, texts_of
from spectheory.prompts import Prompt

SETTINGS = {
    "full vocabulary": Sampling(),
    "T 0.7, top-k 50, top-p 0.9": Sampling(0.7, top_k=50, top_p=0.9),
    "T 0.6, top-p 0.95": Sampling(0.6, top_p=0.95),
    "T 0": Sampling(0.0),
}
COMPARED, COPIED, REPEATS = 8, 1 << 28, 5
"""Positions whose columns are held against the CPU's; bytes of a copy; times that each work is timed."""
ESTIMATED = "distinct_rank"
"""A column that is an estimate: rounding changes it by more than rounding."""


def columns(device: str, dtype: str, sizes: Sizes) -> dict[str, Any]:
    """Milliseconds per position of every setting, its bandwidth, and the shares of a measurement."""
    where = torch.device(device)
    bandwidth = copy_bandwidth(where, COPIED if where.type != "cpu" else COPIED >> 5)
    rows = random_rows(sizes, dtype)
    settings = {
        f"{name}, {'with' if race else 'without'} the race": of_setting(rows, where, sampling, race, bandwidth)
        for name, sampling in SETTINGS.items()
        for race in (False, True)
    }
    return {
        "vocabulary": sizes.target["vocab_size"],
        "copied_per_second": bandwidth,
        "settings": settings,
        "shares": shares(device, dtype, sizes),
    }


def random_rows(sizes: Sizes, dtype: str) -> tuple[Tensor, Tensor, Tensor]:
    """Both models' logits, as spread as a language model's, and the target's most probable tokens, on the CPU."""
    made = torch.Generator().manual_seed(0)
    target, noise = torch.randn(2, sizes.positions, sizes.target["vocab_size"], generator=made)
    target, draft = ((3 * target + more).to(getattr(torch, dtype)) for more in (0.0, noise))
    return target, draft, target.argmax(dim=1)


def of_setting(
    rows: tuple[Tensor, Tensor, Tensor], where: torch.device, sampling: Sampling, race: bool, bandwidth: float
) -> dict[str, Any]:
    """What columns cost in one setting, in time and against a copy, and where they differ from the CPU's."""
    target, draft, tokens = (one.to(where) for one in rows)
    seconds = median_of(lambda: position_statistics(target, draft, tokens, sampling, race=race), where) / len(tokens)
    read = 2 * target.shape[1] * target.element_size() / seconds
    return {
        "differ": differences(rows, where, sampling, race),
        "ms_per_position": 1e3 * seconds,
        "read_per_second": read,
        "of_copy_bandwidth": read / bandwidth,
    }


def differences(
    rows: tuple[Tensor, Tensor, Tensor], where: torch.device, sampling: Sampling, race: bool
) -> dict[str, float]:
    """Columns that differ from the CPU's by 1e-5 or more, relative to the value or to 1: the largest difference."""
    here, there = (
        position_statistics(*(one[:COMPARED].to(place) for one in rows), sampling, race=race)
        for place in (torch.device("cpu"), where)
    )
    found = {}
    for name in here.keys() - {ESTIMATED}:
        ours, theirs = (each[name].cpu().double() for each in (there, here))
        off = (ours - theirs).abs() / theirs.abs().clamp(min=1.0)
        largest = float(off.masked_fill(ours == theirs, 0.0).max())  # infinities are equal or not
        if not largest < 1e-5:
            found[name] = largest
    return found


def copy_bandwidth(where: torch.device, size: int) -> float:
    """Bytes read and written in a second by a copy on the device."""
    source = torch.zeros(size, dtype=torch.uint8, device=where)
    target = torch.empty_like(source)
    return 2 * size / median_of(lambda: target.copy_(source), where)


def median_of(work: Callable[[], object], where: torch.device) -> float:
    """Median seconds, after one run that warms up."""
    work()
    return statistics.median(timed(work, where) for _ in range(REPEATS))


def shares(device: str, dtype: str, sizes: Sizes) -> dict[str, Any]:
    """Seconds of each stage of measuring one text of the large pair: sampling, reading it, its columns."""
    pair, where = random_pair(device, dtype, sizes), torch.device(device)
    ids = torch.randint(pair.vocabulary, (PROMPT,), generator=torch.Generator().manual_seed(0))
    settings = MeasureSettings(tokens=sizes.decoded, stop_at_end=False)
    batch = [Encoded(0, Prompt("0", "", ""), ids, None)]
    ((text,),) = texts_of(pair, batch, settings)
    sampling = timed(lambda: texts_of(pair, batch, settings), where)
    read = median_of(lambda: list(_read(pair, ids, text)), where)
    rows = list(_read(pair, ids, text))
    cheap, dear = (
        median_of(lambda race=race: [position_statistics(*one[:3], Sampling(), race=race) for one in rows], where)
        for race in (False, True)
    )
    whole = sampling + read + dear
    stages = {"sampling": sampling, "reading": read, "cheap columns": cheap, "columns with the race": dear}
    return {"tokens": len(text), "seconds": stages, "of_all": {name: one / whole for name, one in stages.items()}}


def _read(pair: ModelPair, ids: Tensor, text: Tensor) -> Any:
    return paired_logits(pair, ids, text, chunk=256, name="")
