"""The columns of one block of positions: from both pmfs over any list of tokens, and from whole rows of logits."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.measure.columns.cheap import by_position, by_start
from spectheory.measure.columns.expensive import expensive
from spectheory.measure.columns.noise import Keys
from spectheory.measure.columns.output_columns import output_logits, output_masses
from spectheory.measure.columns.pmf import Pmf
from spectheory.measure.devices import widest

CPU_BLOCK = 2**19
"""Entries of one array of a block on a CPU: 2 MB, so that the arrays in use stay in the last-level cache."""
DEVICE_BLOCK = 2**25
"""Entries of one array of a block on other devices: 128 MB, enough to fill the device."""


@dataclass(frozen=True)
class Settings:
    """How both models are sampled, whether tokens were sampled so, and which columns are wanted."""

    target: Sampling
    draft: Sampling
    race: bool
    sampled: bool
    judged: bool
    by_start: bool


def entries_at_once(device: torch.device) -> int:
    """Entries of one array of a block."""
    return CPU_BLOCK if device.type == "cpu" else DEVICE_BLOCK


def rows_at_once(logits: Tensor) -> int:
    """Rows of logits ``[n, V]`` in a block."""
    return max(1, entries_at_once(logits.device) // max(logits.shape[1], 1))


def pmf_columns(p: Pmf, q: Pmf, at: Tensor, settings: Settings, keys: Keys, buffers: Tensor) -> dict[str, Tensor]:
    """Columns that depend on both pmfs alone, of the tokens at places ``[rows, 1]``; `buffers` are overwritten."""
    if settings.by_start:
        return by_start(p, q, at, buffers, race=settings.race)
    columns = by_position(p, q, at, buffers)
    if settings.judged:
        columns |= output_masses(p, at, buffers[1])
    if settings.race:
        columns |= expensive(p, q, at, columns, keys, buffers)
    return columns


def logit_columns(target: Tensor, draft: Tensor, tokens: Tensor, settings: Settings) -> dict[str, Tensor]:
    """The token ``[rows, 1]`` itself, and columns that read whole rows of logits ``[rows, V]``."""
    columns = {} if settings.by_start else {"token": tokens[:, 0]}
    rows = rows_at_once(target)
    if settings.draft.temperature == 0:
        columns["draft_top"] = _plain_tops(draft)
    if settings.judged and not settings.by_start:
        for model, logits in (("target", target), ("draft", draft)):
            parts = [output_logits(*part, model) for part in zip(logits.split(rows), tokens.split(rows), strict=True)]
            columns |= {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    return columns


def _plain_tops(logits: Tensor) -> Tensor:
    """Largest probability ``[rows]`` of the softmax of logits, as engines' stopping rules read it at temperature 0."""
    rows = max(1, rows_at_once(logits) // 2)
    scratch = torch.empty((min(rows, len(logits)), logits.shape[1]), device=logits.device)
    tops = []
    for part in logits.split(rows):
        relative = scratch[: len(part)].copy_(part)
        relative -= relative.amax(dim=-1, keepdim=True)
        tops.append(relative.exp_().sum(dim=-1).to(widest(logits)).reciprocal_())
    return torch.cat(tops)
