"""Every column of a trace from two rows of logits and the token between them, computed on the device block by block.

Sums over the vocabulary run in float32 over blocks that fit the cache; results per position are float64. With float32
logits, probabilities have a relative error near 1e-6, sums an absolute error below 1e-6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.errors import LogitsError, ShapeError
from spectheory.measure.devices import widest
from spectheory.measure.distinct_ranks import distinct_ranks
from spectheory.measure.noise import DEFAULT_KEY, Keys, position_keys
from spectheory.measure.order import order_statistics
from spectheory.measure.output_columns import output_columns
from spectheory.measure.pmf import Pmf, make_pmf
from spectheory.measure.race import race_acceptance
from spectheory.measure.race_ranks import race_ranks
from spectheory.trace import RECORDED_RANKS, START_RANKS, UNO_SHARES

_CPU_BLOCK = 2**19
"""Entries of one array of a block on a CPU: 2 MB, so that the arrays in use stay in the last-level cache."""
_DEVICE_BLOCK = 2**25
"""Entries of one array of a block on other devices: 128 MB, enough to fill the device."""


def position_statistics(
    target_logits: Tensor,
    draft_logits: Tensor,
    tokens: Tensor,
    sampling: Sampling,
    *,
    race: bool = True,
    sampled: bool = False,
    keys: Keys | None = None,
    draft_sampling: Sampling | None = None,
    judged: bool = False,
    by_start: bool = False,
) -> dict[str, Tensor]:
    """Statistics of n positions by the names of :data:`spectheory.trace.COLUMNS`, from both models' logits ``[n, V]``.

    Values are ``[n]`` (rank laws ``[n, 8]``, the estimated one ``[n, 4]``): float64, with ranks and token ids as
    integers. Exact up to float32 rounding, except ``distinct_rank``, an unbiased estimate. ``log_target`` is -inf where
    the target cannot output the token.

    `race` says whether to compute the expensive columns: ``race_acceptance``, ``race_rank``, ``distinct_rank``,
    ``uno_loss``. `sampled` says whether the `tokens` ``[n]`` were drawn from the target with these settings: where
    recomputed logits round one just outside a cut (top-k, top-p, greedy), it is re-admitted. `keys` ``[n]`` (uint64)
    are the randomness of ``distinct_rank`` (:mod:`spectheory.measure.noise`); the positions of different texts need
    different ones, the default is those of a text with key 0. `draft_sampling` is that of the draft where it has its
    own. `judged` adds the columns of :data:`spectheory.trace.JUDGED`. `by_start` computes only those that a draft has
    by start and depth (:data:`spectheory.trace.BY_START`, here without the prefix), with rank laws ``[n, 4]``.

    Examples
    --------
    >>> logits = torch.log(torch.tensor([[0.5, 0.5], [0.25, 0.75]]))
    >>> columns = position_statistics(logits[:1], logits[1:], torch.tensor([0]), Sampling())
    >>> round(columns["total_variation"].item(), 6), round(columns["race_g"].item(), 6)
    (0.25, 1.0)
    """
    if target_logits.shape != draft_logits.shape or tokens.shape != target_logits.shape[:1]:
        raise ShapeError(
            f"logits {tuple(target_logits.shape)} and {tuple(draft_logits.shape)}, tokens {tuple(tokens.shape)}",
            limit="needs [n, V] twice and [n]",
            remedy="cut both to the common ids",
        )
    size = _CPU_BLOCK if target_logits.device.type == "cpu" else _DEVICE_BLOCK
    rows = max(1, size // max(target_logits.shape[1], 1))
    buffers = torch.empty((6, min(rows, len(tokens)), target_logits.shape[1]), device=target_logits.device)
    keys = position_keys(DEFAULT_KEY, 0, len(tokens)) if keys is None else keys
    settings, parts = _Settings(sampling, draft_sampling or sampling, race, sampled, judged, by_start), []
    for start in range(0, len(tokens), rows):
        target, draft, token = (x[start : start + rows] for x in (target_logits, draft_logits, tokens))
        own = keys[start : start + rows]
        try:
            part = _statistics(target, draft, token, settings, buffers[:, : len(token)], own)
        except LogitsError as error:
            raise LogitsError(
                error.what.replace(f"row {error.row}", f"row {start + error.row}"),
                limit=error.limit,
                remedy=error.remedy,
                row=start + error.row,
            ) from error
        parts.append(part)
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


@dataclass(frozen=True)
class _Settings:
    """How both models are sampled, whether tokens were sampled so, and which columns are wanted."""

    target: Sampling
    draft: Sampling
    race: bool
    sampled: bool
    judged: bool
    by_start: bool


def _statistics(
    target: Tensor, draft: Tensor, tokens: Tensor, settings: _Settings, buffers: Tensor, keys: Keys
) -> dict[str, Tensor]:
    """All columns of one block. `buffers` ``[6, rows, V]`` are overwritten."""
    at = tokens[:, None]
    p = make_pmf(target, settings.target, buffers[:2], at if settings.sampled else None)
    q = make_pmf(draft, settings.draft, buffers[2:4])
    if settings.by_start:
        columns = _by_start(p, q, at, buffers[4:], race=settings.race)
    else:
        columns = {"token": tokens, **_by_position(p, q, at, buffers[4:])}
        if settings.judged:
            columns |= output_columns(target, p, at, buffers[5])
        if settings.race:
            columns |= _expensive(p, q, at, columns, keys, buffers[4:])
    if settings.draft.temperature == 0:
        columns["draft_top"] = _plain_top(draft, buffers[4])
    return columns


def _plain_top(logits: Tensor, scratch: Tensor) -> Tensor:
    """Largest probability ``[rows]`` of the softmax of logits, as engines' stopping rules read it at temperature 0."""
    scratch.copy_(logits)
    scratch -= scratch.amax(dim=-1, keepdim=True)
    return scratch.exp_().sum(dim=-1).to(widest(scratch)).reciprocal_()


def _by_start(p: Pmf, q: Pmf, at: Tensor, scratch: Tensor, *, race: bool) -> dict[str, Tensor]:
    """Columns that a draft has by start and depth."""
    log_target, log_draft = (pmf.log_at(at).to(widest(p.pmf)) for pmf in (p, q))
    columns = _drafted(p, q, at, log_target, log_draft, scratch, START_RANKS)
    del columns["target_rank"]
    if race:
        columns["race_rank"] = race_ranks(p.pmf, q.pmf, log_target, log_draft, scratch[1])[:, :START_RANKS]
    return columns


def _by_position(p: Pmf, q: Pmf, at: Tensor, buffers: Tensor) -> dict[str, Tensor]:
    """The columns that cost little."""
    wide, scratch = widest(p.pmf), buffers[1]
    log_target, log_draft = p.log_at(at).to(wide), q.log_at(at).to(wide)
    return {
        "log_target": log_target,
        "target_entropy": _dot(p.pmf, p.log, scratch).neg_().to(wide).clamp_(min=0.0),
        # `scratch` still holds the products of the line above.
        "target_second_moment": _dot(scratch, p.log, scratch).to(wide),
        "kl": _kl(p, q, scratch).to(wide),
        "harmonic_similarity": _harmonic_similarity(p.pmf, q.pmf, scratch).to(wide),
        **_drafted(p, q, at, log_target, log_draft, buffers, RECORDED_RANKS),
    }


def _drafted(
    p: Pmf, q: Pmf, at: Tensor, log_target: Tensor, log_draft: Tensor, buffers: Tensor, ranks: int
) -> dict[str, Tensor]:
    """What becomes of a draft, by position as by start."""
    scratch = buffers[1]
    law, total_variation = _rejection_ranks(p.pmf, q.pmf, log_draft - log_target, scratch, ranks)
    return {
        "log_draft": log_draft,
        "draft_entropy": _dot(q.pmf, q.log, scratch).neg_().to(log_draft.dtype).clamp_(min=0.0),
        "draft_top": q.pmf.amax(dim=-1).to(log_draft.dtype),
        "race_g": _race_g(p.pmf, q.pmf, log_target, log_draft, scratch),
        "rejection_rank": law,
        "total_variation": total_variation,
        **order_statistics(p.order(), q.order(), at, buffers),
    }


def _expensive(
    p: Pmf, q: Pmf, at: Tensor, columns: dict[str, Tensor], keys: Keys, buffers: Tensor
) -> dict[str, Tensor]:
    """The columns of the race, of distinct candidates and of biased rules."""
    scratch, log_target, log_draft = buffers[1], columns["log_target"], columns["log_draft"]
    return {
        "race_acceptance": race_acceptance(p.pmf, q.pmf, scratch).to(widest(p.pmf)),
        "race_rank": race_ranks(p.pmf, q.pmf, log_target, log_draft, scratch),
        "distinct_rank": distinct_ranks(p, q, at, log_target, log_draft, keys, buffers),
        "uno_loss": _uno_loss(p.pmf, q.pmf, columns["total_variation"], buffers),
    }


def _dot(a: Tensor, b: Tensor, scratch: Tensor) -> Tensor:
    """Sums of products over the last axis; the products stay in `scratch`."""
    return torch.mul(a, b, out=scratch).sum(dim=-1)


def _kl(p: Pmf, q: Pmf, scratch: Tensor) -> Tensor:
    """Sum of p log(p/q); infinite where the draft lacks a token of the target."""
    torch.sub(p.log, q.log, out=scratch)
    kl = _dot(p.pmf, scratch, scratch).clamp_(min=0.0)
    if q.cut is None:
        return kl
    lacking = (p.pmf * q.cut).sum(dim=-1) > 0
    return kl.masked_fill_(lacking, math.inf)


def _harmonic_similarity(p: Tensor, q: Tensor, scratch: Tensor) -> Tensor:
    """Sum of 2 p q / (p + q), where 0/0 counts as 0."""
    torch.add(p, q, out=scratch).clamp_(min=torch.finfo(torch.float32).tiny)
    torch.div(q, scratch, out=scratch)
    return 2 * _dot(p, scratch, scratch)


def _race_g(p: Tensor, q: Tensor, log_target: Tensor, log_draft: Tensor, scratch: Tensor) -> Tensor:
    """g(p_x/q_x) at the token (D3): infinite where the draft cannot draw it."""
    largest = torch.finfo(torch.float32).max
    c = torch.exp(log_target - log_draft).clamp_(max=largest).to(torch.float32)
    torch.addcmul(p, q, c[:, None], value=-1, out=scratch)
    g = scratch.clamp_(max=0.0).sum(dim=-1).neg_().to(log_target.dtype)
    return g.masked_fill_(log_draft == -math.inf, math.inf)


def _uno_loss(p: Tensor, q: Tensor, total_variation: Tensor, scratch: Tensor) -> Tensor:
    """Bias ``[rows, shares]`` of over-acceptance b = (1-t) min(1, p/q) + t with recovery from p (Y5, UNO).

    The output law is :math:`b q + c p`, c = (1-t) TV. Its distance to p is the part of b q above (1-c) p.
    """
    both, above = scratch
    torch.minimum(p, q, out=both)
    losses = []
    for share in UNO_SHARES:
        kept = (1 - (1 - share) * total_variation).to(p.dtype)
        torch.mul(p, -kept[:, None], out=above)
        above.add_(both, alpha=1 - share).add_(q, alpha=share)
        losses.append(above.clamp_(min=0.0).sum(dim=-1).to(total_variation.dtype))
    return torch.stack(losses, dim=-1)


def _rejection_ranks(p: Tensor, q: Tensor, log_rho: Tensor, scratch: Tensor, ranks: int) -> tuple[Tensor, Tensor]:
    r"""P(R = r | token), ``[rows, ranks]``, of recursive rejection with i.i.d. drafts (R3), and TV.

    With :math:`s_1 = 0, G_0 = 1, s_{m+1} = s_m + G_{m-1}`, m rejections leave :math:`(p - s_{m+1} q)_+` of mass
    :math:`G_m`, and :math:`P(R = r, X = x) = \min((p_x - s_r q_x)_+, G_{r-1} q_x)`: one pass a rank.
    """
    left, taken = [torch.ones_like(p[:, :1])], [torch.zeros_like(p[:, :1])]
    for _ in range(ranks - 1):
        taken.append(taken[-1] + left[-1])
        torch.addcmul(p, q, taken[-1], value=-1, out=scratch)
        left.append(torch.minimum(scratch.clamp_(min=0.0).sum(dim=-1, keepdim=True), left[-1]))
    before, subtracted = (torch.cat(x, dim=1).to(log_rho.dtype) for x in (left, taken))
    rho = torch.exp(log_rho)[:, None]
    law = torch.minimum((1 - subtracted * rho).clamp_(min=0.0), before * rho)
    # rho is infinite for a token without target mass; no rank outputs it.
    return law.nan_to_num_(nan=0.0), before[:, 1]
