r"""The laws of the rank of recursive rejection at every position (R3): exact for i.i.d. candidates, else estimated.

With candidate m drawn from :math:`q^m` and :math:`P^1 = p, W_1 = 1`,

.. math:: P^{m+1} = (P^m - W_m q^m)_+, \qquad W_{m+1} = \sum_x P^{m+1}_x,

so that :math:`P^m = W_m p^m` is the residual before normalisation. A rejected y leaves :math:`q^m`; if nothing is left,
it is uniform over the tokens not yet rejected. The estimator draws rejected tokens directly, :math:`y_m \sim (W_m q^m -
P^m)_+ / W_{m+1}`: a sequence is :math:`W_r` times as likely under the rule as here. So :math:`E[W_r \min(p^r_x, q^r_x)]
= P(R = r, X = x)`, without bias, and rank 1 has no error. As :math:`W_r \min(p^r_x, q^r_x) = P^r_x - P^{r+1}_x`, the
ranks of a sequence, and means over sequences, sum to at most 1 given x.

**One pass per rank.** A rejected token has no residual left. On the others :math:`q^m = q/Z_m`, and :math:`P^m = (p -
s_m q)_+`, :math:`s_{m+1} = s_m + W_m/Z_m`, :math:`s_1 = 0`: only :math:`s_m` and :math:`W_m` are kept.

**In a text.** Expected calls are affine in the law at each single position, since a path of calls passes it once (§7).
So independent estimates at the positions of a text give an unbiased number of expected calls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from spectheory.measure.columns.compiled import fits, on_threads
from spectheory.measure.columns.noise import Keys, uniforms
from spectheory.measure.columns.pmf import Pmf, _between, token_at
from spectheory.trace import DISTINCT_RANKS

LARGEST_LOG = 700.0
"""Cap on the logarithm of a ratio, so that the ratio is finite; larger ones have the same effect."""


def rejection_ranks(p: Tensor, q: Tensor, log_rho: Tensor, scratch: Tensor, ranks: int) -> tuple[Tensor, Tensor]:
    r"""P(R = r | token), ``[rows, ranks]``, of recursive rejection with i.i.d. drafts (R3), and TV.

    With :math:`s_1 = 0, G_0 = 1, s_{m+1} = s_m + G_{m-1}`, m rejections leave :math:`(p - s_{m+1} q)_+` of mass
    :math:`G_m`, and :math:`P(R = r, X = x) = \min((p_x - s_r q_x)_+, G_{r-1} q_x)`: one pass a rank. `scratch` ``[rows,
    V]`` is overwritten.
    """
    before = _masses(p, q, scratch, ranks).to(log_rho.dtype)
    taken = before.cumsum(dim=-1) - before
    rho = torch.exp(log_rho.clamp(max=LARGEST_LOG))[:, None]
    law = torch.minimum((1 - taken * rho).clamp_(min=0.0), before * rho)
    # log_rho is infinite for a token without target mass; no rank outputs it.
    return law.nan_to_num_(nan=0.0).masked_fill_((log_rho == math.inf)[:, None], 0.0), before[:, 1]


def _masses(p: Tensor, q: Tensor, scratch: Tensor, ranks: int) -> Tensor:
    """The masses left before each rank, ``[rows, ranks]``."""
    if fits(p):
        from spectheory.kernels.rejections import residual_masses

        masses = np.empty((len(p), ranks))
        on_threads(residual_masses, p, q, masses)
        return torch.from_numpy(masses)
    left = [torch.ones_like(p[:, :1])]
    taken = torch.zeros_like(left[0])
    for _ in range(ranks - 1):
        taken = taken + left[-1]
        torch.addcmul(p, q, taken, value=-1, out=scratch)
        left.append(torch.minimum(scratch.clamp_(min=0.0).sum(dim=-1, keepdim=True), left[-1]))
    return torch.cat(left, dim=1)


SEQUENCES = 4
"""Sequences of rejected tokens per position, whose laws are averaged."""
_LEAST_LEFT = 1e-20
"""Where less of a draft is left, its entries are below single precision and are computed from logarithms."""
_PARTS = 8
"""Such rows of a whole vocabulary are computed in this many parts, which bounds memory."""


@dataclass(frozen=True)
class _Output:
    """The output token of each row, ``[rows, 1]``: its id, log p and log q."""

    token: Tensor
    log_target: Tensor
    log_draft: Tensor

    @property
    def ratio(self) -> Tensor:
        """q/p at the token, finite."""
        return torch.exp((self.log_draft - self.log_target).nan_to_num_(nan=0.0).clamp_(max=LARGEST_LOG))


def distinct_ranks(
    p: Pmf, q: Pmf, tokens: Tensor, log_target: Tensor, log_draft: Tensor, keys: Keys, scratch: Tensor
) -> Tensor:
    """P(R = r | token), ``[rows, 4]``, of recursive rejection over distinct candidates (R3; unbiased estimate).

    Rank 1 is exact. The noise of a position depends only on its key and its pmfs; first rejections are stratified. The
    draft is changed and restored; `scratch` ``[2, rows, V]`` of float32 is overwritten.
    """
    out = _Output(tokens, log_target[:, None], log_draft[:, None])
    heights = _heights(keys).to(log_target)
    law, starved = _laws(p.pmf, q.pmf, out, heights, scratch)
    (rows,) = torch.nonzero(starved, as_tuple=True)
    at_once = len(starved) if q.listed is not None else max(1, len(starved) // _PARTS)
    for part in rows.split(at_once) if len(rows) else ():
        law[part] = _from_logarithms(p, q, out, heights, part, scratch[:, : len(part)])
    return law.masked_fill_(out.log_target == -math.inf, 0.0)


def _laws(p: Tensor, q: Tensor, out: _Output, heights: Tensor, scratch: Tensor) -> tuple[Tensor, Tensor]:
    """The mean law of the sequences ``[rows, 4]``, and the rows where single precision has no draft left."""
    if fits(p):
        from spectheory.kernels.rejections import distinct_laws

        mean, short = np.empty((len(p), DISTINCT_RANKS)), np.empty(len(p), np.bool_)
        given = (p, q, out.token[:, 0], out.ratio[:, 0], heights)
        on_threads(distinct_laws, *given, mean, short, constants=(_LEAST_LEFT,))
        return torch.from_numpy(mean), torch.from_numpy(short)
    torch.sub(q, p, out=scratch[0])
    first, mass = _rejected(heights[:, :, 0], scratch)
    laws, starved = [], torch.zeros_like(out.token[:, 0], dtype=torch.bool)
    for sequence in range(SEQUENCES):
        one = slice(sequence, sequence + 1)
        law, missing = _sequence(p, q, out, first[:, one], mass[:, one], heights[:, sequence, 1:], scratch)
        laws.append(law)
        starved |= missing
    return torch.stack(laws).mean(dim=0), starved


def _heights(keys: Keys) -> Tensor:
    """Uniform numbers ``[rows, sequences, ranks - 1]``; those of the first rank are stratified over [0, 1)."""
    heights = uniforms(keys, SEQUENCES * (DISTINCT_RANKS - 1)).reshape(len(keys), SEQUENCES, DISTINCT_RANKS - 1)
    heights[:, :, 0] = (np.arange(SEQUENCES) + heights[:, :, 0]) / SEQUENCES
    return torch.from_numpy(heights)


def _rejected(heights: Tensor, scratch: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens drawn by the positive entries of ``scratch[0]``, and their mass, 0 where the sequence ends, both ``[rows,
    n]``.
    """
    density, cumulative = scratch
    density.clamp_(min=0.0)
    torch.cumsum(density, dim=-1, out=cumulative)
    token = token_at(cumulative, heights).clamp_(max=density.shape[1] - 1)
    return token, torch.where(density.gather(1, token) > 0, cumulative[:, -1:], 0.0)


def _sequence(
    p: Tensor, q: Tensor, out: _Output, token: Tensor, mass: Tensor, heights: Tensor, scratch: Tensor
) -> tuple[Tensor, Tensor]:
    """One sequence's law ``[rows, 4]``, and the rows where single precision has no draft left; `q` is restored at the
    end.
    """
    ratio = out.ratio
    accepted = ratio.clamp(max=1.0)
    shares, left = [accepted], 1 - accepted
    taken, open_ = torch.ones_like(mass), torch.ones_like(out.token, dtype=torch.bool)
    starved, rejected = torch.zeros_like(open_), []
    for rank in range(1, DISTINCT_RANKS):
        rejected.append((token, q.gather(1, token)))
        q.scatter_(1, token, 0.0)
        open_ &= token != out.token
        rest = q.sum(dim=-1, keepdim=True)
        starved |= (mass > 0) & (rest < _LEAST_LEFT)
        # The factor of the remaining draft: W / Z.
        weight = mass / rest.clamp(min=_LEAST_LEFT)
        shares.append(torch.where(open_, torch.minimum(left, weight.to(ratio.dtype) * ratio), 0.0))
        left = left - shares[-1]
        if rank + 1 < DISTINCT_RANKS:
            density = torch.addcmul(p, q, taken, value=-1, out=scratch[0]).clamp_(min=0.0).neg_()
            density.addcmul_(q, weight)
            token, mass = _rejected(heights[:, rank - 1 : rank], scratch)
            taken = taken + weight
    for token, value in reversed(rejected):  # a token may be listed twice where a sequence had ended
        q.scatter_(1, token, value)
    return torch.cat(shares, dim=1), starved[:, 0]


def _from_logarithms(p: Pmf, q: Pmf, out: _Output, heights: Tensor, rows: Tensor, scratch: Tensor) -> Tensor:
    """The law of some rows ``[n, 4]`` step by step as defined, the draft normalised again at each rank."""
    target, log_draft, token = p.pmf[rows], q.order_of(rows), out.token[rows]
    counts = torch.ones_like(target)
    if q.listed is not None:  # the tokens between two listed ones share a place
        target, log_draft, token = _between(target, 0.0), _between(log_draft, -math.inf), 2 * token + 1
        counts = q.listed.counts(rows, target)
        scratch = torch.empty((2, *target.shape), dtype=target.dtype, device=target.device)
    out = _Output(token, out.log_target[rows], out.log_draft[rows])
    laws = []
    for sequence in range(SEQUENCES):
        left, residual, shares = torch.ones_like(out.log_target), target, []
        mass, kept = torch.ones_like(target[:, :1]), log_draft.clone()
        open_ = counts.clone()
        for rank in range(DISTINCT_RANKS):
            draft, log_left = _shortened(kept, open_, out.token)
            draft *= mass
            ratio = (
                (mass.to(left.dtype).log() + log_left - out.log_target).clamp_(max=LARGEST_LOG).exp_()
                if rank
                else out.ratio
            )
            shares.append(torch.minimum(left, ratio))
            left = left - shares[-1]
            if rank + 1 < DISTINCT_RANKS:
                torch.sub(draft, residual, out=scratch[0])
                residual = (residual - draft).clamp_(min=0.0)
                token, mass = _rejected(heights[rows, sequence, rank, None], scratch)
                open_.scatter_(1, token, (open_.gather(1, token) - 1).clamp_(min=0.0))
                kept.scatter_(1, token, -math.inf)
        laws.append(torch.cat(shares, dim=1))
    return torch.stack(laws).mean(dim=0)


def _shortened(kept: Tensor, open_: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
    """The draft from the logarithms of what is left of it (if nothing, uniform over the `open_` tokens, counted at
    their places), and its logarithm at one token, ``[n, 1]``.
    """
    best = kept.amax(dim=-1, keepdim=True)
    draft = torch.softmax(kept, dim=-1)
    (empty,) = torch.nonzero(best[:, 0] == -math.inf, as_tuple=True)
    uniform = open_[empty]
    draft[empty] = uniform / uniform.sum(dim=-1, keepdim=True).clamp(min=1.0)
    # The largest logarithm gives the normaliser; the other probabilities may underflow.
    log_draft = kept.gather(1, token) - best + draft.amax(dim=-1, keepdim=True).log()
    return draft, torch.where(best == -math.inf, draft.gather(1, token).log(), log_draft)
