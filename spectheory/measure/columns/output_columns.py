"""Columns by which an engine's output is judged: where the token stands in the target's pmf, and how close a tie is."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from spectheory.measure.columns.pmf import Pmf
from spectheory.measure.devices import widest


def output_masses(p: Pmf, at: Tensor, scratch: Tensor) -> dict[str, Tensor]:
    """Columns of :data:`spectheory.trace.JUDGED`, ``[rows]``, from the pmf in use and the tokens `at` ``[rows, 1]``."""
    wide, values = widest(p.pmf), p.order()
    own = values.gather(1, at)
    above, tied = (
        compare(values, own, out=scratch).mul_(p.pmf).sum(dim=-1).to(wide) for compare in (torch.gt, torch.eq)
    )
    return {
        "target_above": above.clamp_(max=1.0),
        "target_tied": tied.clamp_(max=1.0),
        "target_top": p.pmf.amax(dim=-1).to(wide),
    }


def output_logits(logits: Tensor, tokens: Tensor, model: str) -> dict[str, Tensor]:
    """The other columns: gap, margin and scale of a model's logits ``[rows, V]`` before temperature and filters."""
    wide = widest(logits)
    first, second = _two_largest(logits).unbind(dim=-1)
    return {
        f"{model}_gap": (first - logits.gather(1, tokens)[:, 0].to(wide)).clamp_(min=0.0),
        f"{model}_margin": first - second,
        f"{model}_scale": torch.nan_to_num(logits, posinf=0.0, neginf=0.0).abs().amax(dim=-1).to(wide),
    }


def _two_largest(logits: Tensor) -> Tensor:
    """The two largest logits of each row in double precision; -inf where there is no second token."""
    largest = logits.topk(min(2, logits.shape[1])).values.to(widest(logits))
    return torch.nn.functional.pad(largest, (0, 2 - largest.shape[1]), value=-math.inf)
