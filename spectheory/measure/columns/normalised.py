"""Blocks of exponentials made into pmfs, in place."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from spectheory.measure.columns.compiled import fits, spread


def normalise(pmf: Tensor, log: Tensor) -> bool:
    """Divide exponentials ``[rows, V]`` by their sums and shift their logarithms; return whether all are finite."""
    if fits(pmf) and fits(log):
        from spectheory.kernels.normalised import normalise as compiled

        finite = np.empty(len(pmf), np.bool_)
        spread(compiled, pmf, log, finite)
        return bool(finite.all())
    total = pmf.sum(dim=-1, keepdim=True)
    pmf /= total
    log -= total.log()
    return bool(torch.isfinite(log.amin(dim=-1)).all())
