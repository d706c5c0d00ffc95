"""Rows of logits as pmfs: the tokens that truncated sampling keeps, and blocks with zero probabilities marked.

Of truncated settings each row is read at most three times: its largest entry, a value below which nothing is kept, and
the entries above it. The exact cut is made among those few, in float64 where the device has it.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from spectheory import kernels
from spectheory.distributions import Sampling
from spectheory.measure.columns.compiled import fits, on_threads
from spectheory.measure.machine import widest


def _first_largest(values: Tensor) -> Tensor:
    """Index of the largest entry of each row, the first where several are equal."""
    if values.device.type == "cpu":  # numpy is ten times faster here
        return torch.from_numpy(values.numpy().argmax(axis=-1))
    return values.argmax(dim=-1)


_GROUPS_PER_TOKEN, _LEAST_GROUPS = 8, 1024
"""Groups whose largest entries bound the k-th largest entry of a row: with 8 k of them, few other tokens pass."""


class KeptTokens(NamedTuple):
    """The kept tokens of each row: `ids` ``[rows, W]`` ascending, padded with V, and `log` ``[rows, W]``, their
    log-probabilities (nats), padded with -inf.
    """

    ids: Tensor
    log: Tensor

    def over(self, size: int) -> Tensor:
        """Log-probabilities ``[rows, V]`` of the whole vocabulary, -inf where cut."""
        whole = self.log.new_full((len(self.ids), size + 1), -math.inf)
        return whole.scatter_(1, self.ids, self.log)[:, :size]


def cuts(sampling: Sampling, size: int) -> bool:
    """Whether these settings may cut tokens with a finite logit of a vocabulary of this size."""
    ranked = sampling.top_k is not None and sampling.top_k < size
    return sampling.temperature == 0 or ranked or sampling.top_p not in (None, 1) or bool(sampling.min_p)


def kept_tokens(logits: Tensor, sampling: Sampling, admitted: Tensor | None = None) -> KeptTokens:
    """The tokens ``[rows, W]`` that :meth:`Sampling.log_pmf` of logits ``[rows, V]`` keeps, on their device.

    W is the largest number of tokens kept in a row. `admitted` ``[rows, 1]`` is never cut: it keeps its logit relative
    to the largest, and is the only token at temperature 0.

    Examples
    --------
    >>> ids, log = kept_tokens(torch.log(torch.tensor([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])), Sampling(top_p=0.7))
    >>> ids.tolist(), log.exp().numpy().round(3).tolist()
    ([[1, 2], [2, 3]], [[0.625, 0.375], [1.0, 0.0]])
    """
    if _compiles(logits.device, logits.shape[1]):
        return _compiled_kept(logits, sampling, admitted)
    return _kept_in_torch(logits, sampling, admitted)


def _compiles(device: torch.device, size: int) -> bool:
    """Whether compiled loops over this many tokens run on this device, and pay."""
    return device.type == "cpu" and size >= kernels.SMALLEST and kernels.installed()


def _kept_in_torch(logits: Tensor, sampling: Sampling, admitted: Tensor | None = None) -> KeptTokens:
    """The same on any device."""
    size, logits = logits.shape[1], _single(logits)
    best = logits.amax(dim=-1, keepdim=True)
    if not bool(torch.isfinite(best).all()):
        sampling.log_pmf(logits)  # raises an error that names the row
    if sampling.temperature == 0:
        ids = _first_largest(logits)[:, None] if admitted is None else admitted
        return KeptTokens(ids, torch.zeros_like(ids, dtype=widest(logits)))
    floor, total = _floor(logits, best, sampling)
    above = logits >= floor
    if admitted is not None:
        above.scatter_(1, admitted, True)
    ids = _places(above)
    values = logits.gather(1, ids.clamp(max=size - 1)).to(widest(logits)).masked_fill_(ids == size, -math.inf)
    stays = _staying(values, best, total, sampling)
    if admitted is not None:
        stays |= (ids == admitted) & (values > -math.inf)
    at = _places(stays)
    scaled = pad(_scaled(values, best, sampling), (0, 1), value=-math.inf).gather(1, at)
    return KeptTokens(pad(ids, (0, 1), value=size).gather(1, at), scaled - scaled.logsumexp(dim=-1, keepdim=True))


def _compiled_kept(logits: Tensor, sampling: Sampling, admitted: Tensor | None) -> KeptTokens:
    """The same row by row, compiled."""
    support = importlib.import_module("spectheory.kernels.supports").support
    tokens = [-1] * len(logits) if admitted is None else admitted[:, 0].tolist()
    lists = []
    for row, token in zip(logits, tokens, strict=True):
        values = _single(row).numpy()
        at = int(values.argmax())
        if not math.isfinite(values[at]):
            sampling.log_pmf(_single(logits))  # raises an error that names the row
        if sampling.temperature == 0:
            lists.append((np.array([at if token < 0 else token]), np.zeros(1)))
        else:
            ids, log = support(values, float(values[at]), sampling, token)
            lists.append((ids.copy(), log.copy()))
    width = max((len(ids) for ids, _ in lists), default=0)
    ids, log = np.full((len(lists), width), logits.shape[1]), np.full((len(lists), width), -math.inf)
    for row, (kept, own_log) in enumerate(lists):
        ids[row, : len(kept)], log[row, : len(kept)] = kept, own_log
    return KeptTokens(torch.from_numpy(ids), torch.from_numpy(log))


def _single(logits: Tensor) -> Tensor:
    """16-bit logits in single precision, others as they are."""
    return logits if logits.dtype in (torch.float32, torch.float64) else logits.float()


def divisor(sampling: Sampling, precision: torch.dtype) -> float:
    """The temperature, but at least the smallest positive number of the precision, so that no quotient is 0/0."""
    return max(sampling.temperature, torch.finfo(precision).tiny)


def _floor(logits: Tensor, best: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor | None]:
    """A value ``[rows, 1]`` below which the settings keep nothing, and the sum of all weights if top-p needs it.

    The weight of a token is its probability relative to the largest before any cut.
    """
    size = logits.shape[1]
    if sampling.top_k is not None and sampling.top_k < size:
        groups = min(size, max(_LEAST_GROUPS, _GROUPS_PER_TOKEN * sampling.top_k))
        maxima = logits[:, : size // groups * groups].unflatten(1, (-1, groups)).amax(dim=1)
        return maxima.topk(sampling.top_k).values[:, -1:], None
    floor, total = torch.full_like(best, -math.inf), None
    wide, warmth = best.to(widest(best)), divisor(sampling, widest(best))
    if sampling.top_p is not None and sampling.top_p < 1:
        total = torch.exp(_scaled(logits, wide, sampling)).sum(dim=-1, keepdim=True)
        # All tokens of less than this weight together have less than the share that the nucleus leaves out.
        floor = _below(wide + warmth * torch.log(total * ((1 - sampling.top_p) / size)), logits.dtype)
    if sampling.min_p:
        floor = torch.maximum(floor, _below(wide + warmth * math.log(sampling.min_p), logits.dtype))
    return floor, total


def _below(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Numbers of a type a little smaller than values that were rounded on the way."""
    return (values - 1e-6 * (1 + values.abs())).to(dtype)


def _staying(values: Tensor, best: Tensor, total: Tensor | None, sampling: Sampling) -> Tensor:
    """Which of the largest logits ``[rows, n]`` stay; they are in the order of their ids, padded with -inf."""
    scaled = _scaled(values, best, sampling)
    stays = scaled > -math.inf
    if sampling.top_k is not None and sampling.top_k < values.shape[1]:
        stays &= values >= values.topk(sampling.top_k).values[:, -1:]
    if sampling.top_p is not None and sampling.top_p < 1:
        order = values.sort(dim=-1, descending=True, stable=True).indices
        weights = torch.where(stays, scaled.exp(), 0.0).gather(1, order)
        total = weights.sum(dim=-1, keepdim=True) if total is None else total
        before = pad(weights.cumsum(dim=-1)[:, :-1], (1, 0))
        stays &= torch.zeros_like(stays).scatter_(1, order, before < sampling.top_p * total)
    if sampling.min_p:
        stays &= scaled >= math.log(sampling.min_p)
    return stays


def _scaled(values: Tensor, best: Tensor, sampling: Sampling) -> Tensor:
    """Logits relative to the largest, divided by the temperature."""
    return (values - best) / divisor(sampling, values.dtype)


def _places(mask: Tensor) -> Tensor:
    """The columns ``[rows, W]`` where a mask ``[rows, n]`` is true, ascending, padded with n."""
    rows, columns = torch.nonzero(mask, as_tuple=True)
    counts = torch.bincount(rows, minlength=len(mask))
    first = (counts.cumsum(dim=0) - counts)[rows]
    padded = columns.new_full((len(mask), int(counts.max())), mask.shape[1])
    padded[rows, torch.arange(len(rows), device=rows.device) - first] = columns
    return padded


def log_pmf(logits: Tensor, sampling: Sampling) -> Tensor:
    """Log-probabilities ``[rows, V]`` (nats, -inf where cut), equal to those of :meth:`Sampling.log_pmf` but faster."""
    if not cuts(sampling, logits.shape[-1]):
        return sampling.log_pmf(logits)
    return kept_tokens(logits, sampling).over(logits.shape[-1]).to(logits.dtype)


def softmax(log: Tensor, pmf: Tensor, warmth: float) -> bool:
    """Make logits ``[rows, V]`` relative to their largest log-probabilities, in place, and write the pmfs.

    The logits are divided by the temperature `warmth`. Returns whether all logarithms are finite.
    """
    if fits(pmf) and fits(log):
        from spectheory.kernels.softmax import softmax as compiled

        finite = np.empty(len(pmf), np.bool_)
        on_threads(compiled, log, pmf, finite, constants=(warmth,))
        return bool(finite.all())
    if warmth != 1:
        log /= warmth
    torch.exp(log, out=pmf)
    total = pmf.sum(dim=-1, keepdim=True)
    pmf /= total
    log -= total.log()
    return bool(torch.isfinite(log.amin(dim=-1)).all())


@dataclass(frozen=True)
class _Listed:
    """The tokens ``[rows, W]`` of a vocabulary of `size` that columns stand for: ascending, padded with `size`."""

    ids: Tensor
    size: int

    def counts(self, rows: Tensor, like: Tensor) -> Tensor:
        """Numbers of tokens ``[n, 2W + 1]`` before, at, between and after the listed ones of some rows, by id."""
        ids = self.ids[rows]
        edges = pad(pad(ids, (1, 0), value=-1), (0, 1), value=self.size)
        return _between((ids < self.size).to(like), (edges.diff(dim=1) - 1).clamp_(min=0).to(like))


def _between(values: Tensor, fill: Tensor | float) -> Tensor:
    """Values ``[n, W]`` with others ``[n, W + 1]``, or a number, before, between and after them: ``[n, 2W + 1]``."""
    spread = values.new_empty((len(values), 2 * values.shape[1] + 1))
    spread[:, 1::2], spread[:, ::2] = values, fill
    return spread


@dataclass(frozen=True)
class Pmf:
    """A block of pmfs with logarithms: ``[rows, V]`` in float32, or ``[rows, W]`` in float64 over `listed` tokens.

    `log` has 0 in place of -inf where `cut`, so that products with it vanish there. `cut` marks tokens that the
    settings or the model exclude, and padding; None where every token has a finite logarithm.
    """

    pmf: Tensor
    log: Tensor
    cut: Tensor | None
    listed: _Listed | None = None

    def log_at(self, at: Tensor) -> Tensor:
        """Log-probabilities ``[rows]`` of one token per row, -inf where cut; those of normal floats from the floats."""
        mass, log = (values.gather(1, at)[:, 0].to(widest(values)) for values in (self.pmf, self.log))
        log_mass = torch.where(mass >= torch.finfo(self.pmf.dtype).tiny, mass.log(), log).clamp_(max=0.0)
        return log_mass if self.cut is None else log_mass.masked_fill_(self.cut.gather(1, at)[:, 0], -math.inf)

    def order(self) -> Tensor:
        """Values ``[rows, V]`` in the order of the probabilities: logarithms, which round together less often."""
        return self.log if self.cut is None else self.log.masked_fill(self.cut, -math.inf)

    def order_of(self, rows: Tensor) -> Tensor:
        """The same values ``[n, V]`` for some rows, given by their indices."""
        return self.log[rows] if self.cut is None else self.log[rows].masked_fill(self.cut[rows], -math.inf)


def token_at(cumulative: Tensor, heights: Tensor) -> Tensor:
    """Tokens ``[rows, n]`` at heights ``[rows, n]`` in [0, 1) of cumulative masses ``[rows, V]``, by inversion."""
    total = cumulative[:, -1:]
    # Strictly below the total despite rounding, so that the token found has mass.
    height = torch.minimum((heights * total).to(total.dtype), torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulative, height, right=True)


def _make_pmf(logits: Tensor, sampling: Sampling, buffers: Tensor, admitted: Tensor | None = None) -> Pmf:
    """The pmfs of logits ``[rows, V]``, in `buffers` ``[2, rows, V]``; `admitted` ``[rows, 1]`` is never cut."""
    pmf, log = buffers
    best = logits.amax(dim=-1, keepdim=True).float()
    torch.sub(logits, best, out=log)
    warmth = divisor(sampling, log.dtype)
    if cuts(sampling, logits.shape[1]) or not bool(torch.isfinite(best).all()):
        kept = kept_tokens(logits, sampling, admitted)  # raises where a row is not finite, naming it
        log.copy_(kept.over(logits.shape[1]))
        warmth = 1.0
    if softmax(log, pmf, warmth):
        return Pmf(pmf, log, None)
    cut = log == -math.inf
    return Pmf(pmf, log.masked_fill_(cut, 0.0), cut)
