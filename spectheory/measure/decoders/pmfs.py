"""Rows of logits as pmfs in float64, computed on demand."""

from __future__ import annotations

import torch
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.errors import LogitsError
from spectheory.measure.columns.truncation import log_pmf
from spectheory.measure.decoders.drafted import Floats
from spectheory.measure.devices import widest

_AT_ONCE = 1 << 16
"""Up to this many entries it is faster to compute all rows together than one by one."""


class PmfRows:
    """The pmfs ``[V]`` of logits ``[rows, V]``, on the CPU; a LogitsError names the model as `who`."""

    def __init__(self, logits: Tensor, sampling: Sampling, who: str = "a model") -> None:
        self._logits, self._sampling, self._who = logits, sampling, who
        self._rows: dict[int, Floats] = {}
        if logits.numel() <= _AT_ONCE:
            self._rows = dict(enumerate(self._pmfs(logits)))

    def __len__(self) -> int:
        return len(self._logits)

    def __getitem__(self, row: int) -> Floats:
        """The pmf of a row."""
        if row not in self._rows:
            self._rows[row] = self._pmfs(self._logits[row : row + 1])[0]
        return self._rows[row]

    def _pmfs(self, logits: Tensor) -> Floats:
        try:
            return pmfs_of(logits, self._sampling)
        except LogitsError as error:
            what = f"{self._who}: {error.what}"
            raise LogitsError(what, limit=error.limit, remedy=error.remedy, row=error.row) from error


def pmfs_of(logits: Tensor, sampling: Sampling) -> Floats:
    """Pmfs ``[rows, V]`` of logits, in float64 where the device has it."""
    logits = logits.to(widest(logits))
    if sampling.truncates:
        return log_pmf(logits, sampling).cpu().double().exp_().numpy()
    pmf = torch.softmax(logits if sampling.temperature == 1 else logits / sampling.temperature, dim=-1)
    rows = pmf.cpu().double().numpy()
    if not bool((rows[:, 0] == rows[:, 0]).all()):  # one NaN or +inf makes the whole row NaN
        return sampling.log_pmf(logits).exp().cpu().double().numpy()
    return rows
