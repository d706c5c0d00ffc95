"""Blocks of logits made into pmfs, in place."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from spectheory.measure.columns.compiled import fits, spread


def softmax(log: Tensor, pmf: Tensor, warmth: float) -> bool:
    """Make logits ``[rows, V]`` relative to their largest log-probabilities, in place, and write the pmfs.

    The logits are divided by the temperature `warmth`. Returns whether all logarithms are finite.
    """
    if fits(pmf) and fits(log):
        from spectheory.kernels.softmax import softmax as compiled

        finite = np.empty(len(pmf), np.bool_)
        spread(compiled, log, pmf, finite, constants=(warmth,))
        return bool(finite.all())
    if warmth != 1:
        log /= warmth
    torch.exp(log, out=pmf)
    total = pmf.sum(dim=-1, keepdim=True)
    pmf /= total
    log -= total.log()
    return bool(torch.isfinite(log.amin(dim=-1)).all())
