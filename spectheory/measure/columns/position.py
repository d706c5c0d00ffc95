"""The columns of a position from both pmfs: sums, places, rank laws, those of the race, those that judge outputs."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from spectheory.measure.columns.compiled import fits, on_threads
from spectheory.measure.columns.noise import Keys
from spectheory.measure.columns.pmf import Pmf, first_largest
from spectheory.measure.columns.race import race_acceptance, race_ranks, ratio
from spectheory.measure.columns.rejection import distinct_ranks, rejection_ranks
from spectheory.measure.machine import widest
from spectheory.trace import RECORDED_RANKS, START_RANKS, UNO_SHARES

_OF_STARTS = ("draft_entropy", "draft_top", "race_g", "draft_rank", "greedy_agreement")
"""The sums and places that a draft has by start and depth."""


def by_start(p: Pmf, q: Pmf, at: Tensor, scratch: Tensor, *, race: bool) -> dict[str, Tensor]:
    """Columns that a draft has by start and depth."""
    log_target, log_draft = _logs(p, q, at)
    sums = _compiled_sums if fits(p.pmf) else _draft_sums
    found = sums(p, q, at, log_target, log_draft, scratch)
    columns = {"log_draft": log_draft, **{name: found[name] for name in _OF_STARTS}}
    columns |= _rejections(p, q, log_target, log_draft, scratch, START_RANKS)
    if race:
        columns["race_rank"] = race_ranks(p.pmf, q.pmf, log_target, log_draft, scratch[1])[:, :START_RANKS]
    return columns


def by_position(p: Pmf, q: Pmf, at: Tensor, buffers: Tensor) -> dict[str, Tensor]:
    """The columns that cost little. `buffers` ``[2, rows, V]`` are overwritten."""
    log_target, log_draft = _logs(p, q, at)
    sums = _compiled_sums if fits(p.pmf) else _sums
    return {
        "log_target": log_target,
        "log_draft": log_draft,
        **sums(p, q, at, log_target, log_draft, buffers),
        **_rejections(p, q, log_target, log_draft, buffers, RECORDED_RANKS),
    }


def _logs(p: Pmf, q: Pmf, at: Tensor) -> tuple[Tensor, Tensor]:
    log_target, log_draft = (pmf.log_at(at).to(widest(pmf.pmf)) for pmf in (p, q))
    return log_target, log_draft


def _rejections(
    p: Pmf, q: Pmf, log_target: Tensor, log_draft: Tensor, buffers: Tensor, ranks: int
) -> dict[str, Tensor]:
    law, total_variation = rejection_ranks(p.pmf, q.pmf, log_draft - log_target, buffers[1], ranks)
    return {"rejection_rank": law, "total_variation": total_variation}


def _compiled_sums(
    p: Pmf, q: Pmf, at: Tensor, log_target: Tensor, log_draft: Tensor, buffers: Tensor
) -> dict[str, Tensor]:
    """The columns of :func:`_sums` by one compiled pass."""
    from spectheory.kernels.position_sums import position_sums

    sums, places = np.empty((len(at), 7)), np.empty((len(at), 4), np.int64)
    c = ratio(log_target, log_draft, p.pmf.dtype)
    on_threads(position_sums, p.pmf, q.pmf, p.order(), q.order(), at[:, 0], c, sums, places)
    names = ("target_entropy", "target_second_moment", "kl", "draft_entropy", "harmonic_similarity", "race_g")
    columns = {name: torch.from_numpy(sums[:, i].copy()) for i, name in enumerate((*names, "draft_top"))}
    columns["race_g"].masked_fill_(log_draft == -math.inf, math.inf)
    target_rank, draft_rank, best, best_draft = torch.from_numpy(places.T.copy())
    return columns | {
        "target_rank": target_rank,
        "draft_rank": draft_rank,
        "greedy_agreement": best == best_draft,
    }


def _sums(p: Pmf, q: Pmf, at: Tensor, log_target: Tensor, log_draft: Tensor, buffers: Tensor) -> dict[str, Tensor]:
    """Sums over both pmfs, and the token's places in them."""
    wide, scratch = widest(p.pmf), buffers[1]
    return {
        "target_entropy": _dot(p.pmf, p.log, scratch).neg_().to(wide).clamp_(min=0.0),
        # `scratch` still holds the products of the line above.
        "target_second_moment": _dot(scratch, p.log, scratch).to(wide),
        "kl": _kl(p, q, scratch).to(wide),
        "harmonic_similarity": 2 * _dot(p.pmf, _shares(p.pmf, q.pmf, scratch), scratch).to(wide),
        **_draft_sums(p, q, at, log_target, log_draft, buffers),
    }


def _draft_sums(
    p: Pmf, q: Pmf, at: Tensor, log_target: Tensor, log_draft: Tensor, buffers: Tensor
) -> dict[str, Tensor]:
    """Those that a draft has by start too, and the token's rank in the target."""
    scratch = buffers[1]
    return {
        "draft_entropy": _dot(q.pmf, q.log, scratch).neg_().to(log_draft.dtype).clamp_(min=0.0),
        "draft_top": q.pmf.amax(dim=-1).to(log_draft.dtype),
        "race_g": _race_g(p.pmf, q.pmf, log_target, log_draft, scratch),
        **_order_statistics(p.order(), q.order(), at, buffers),
    }


def _order_statistics(target: Tensor, draft: Tensor, at: Tensor, buffers: Tensor) -> dict[str, Tensor]:
    """``target_rank``, ``draft_rank`` (1 the most probable) and ``greedy_agreement`` ``[rows]`` of the token `at`
    ``[rows, 1]``.
    """
    before, scratch = buffers
    torch.lt(torch.arange(target.shape[1], device=at.device, dtype=torch.float32), at.float(), out=before)
    return {
        "target_rank": _rank(target, at, before, scratch),
        "draft_rank": _rank(draft, at, before, scratch),
        "greedy_agreement": first_largest(target) == first_largest(draft),
    }


def _rank(values: Tensor, at: Tensor, before: Tensor, scratch: Tensor) -> Tensor:
    """Rank of a token in its row. Counting in floats runs at full vector width, and is exact below 2^24."""
    own = values.gather(1, at)
    ahead = torch.gt(values, own, out=scratch).sum(dim=-1)
    tied = torch.eq(values, own, out=scratch).mul_(before).sum(dim=-1)
    return (1 + ahead + tied).to(torch.int64)


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


def _shares(p: Tensor, q: Tensor, scratch: Tensor) -> Tensor:
    """Q / (p + q), where 0/0 counts as 0."""
    torch.add(p, q, out=scratch).clamp_(min=torch.finfo(torch.float32).tiny)
    return torch.div(q, scratch, out=scratch)


def _race_g(p: Tensor, q: Tensor, log_target: Tensor, log_draft: Tensor, scratch: Tensor) -> Tensor:
    """g(p_x/q_x) at the token (D3): infinite where the draft cannot draw it."""
    c = ratio(log_target, log_draft, p.dtype).to(p.dtype)
    torch.addcmul(p, q, c[:, None], value=-1, out=scratch)
    g = scratch.clamp_(max=0.0).sum(dim=-1).neg_().to(log_target.dtype)
    return g.masked_fill_(log_draft == -math.inf, math.inf)


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
    largest = logits.topk(min(2, logits.shape[1])).values.to(wide)
    first, second = torch.nn.functional.pad(largest, (0, 2 - largest.shape[1]), value=-math.inf).unbind(dim=-1)
    return {
        f"{model}_gap": (first - logits.gather(1, tokens)[:, 0].to(wide)).clamp_(min=0.0),
        f"{model}_margin": first - second,
        f"{model}_scale": torch.nan_to_num(logits, posinf=0.0, neginf=0.0).abs().amax(dim=-1).to(wide),
    }


def expensive(p: Pmf, q: Pmf, at: Tensor, columns: dict[str, Tensor], keys: Keys, buffers: Tensor) -> dict[str, Tensor]:
    """The columns of the race, of distinct candidates and of biased rules."""
    scratch, log_target, log_draft = buffers[1], columns["log_target"], columns["log_draft"]
    return {
        "race_acceptance": race_acceptance(p.pmf, q.pmf, scratch).to(widest(p.pmf)),
        "race_rank": race_ranks(p.pmf, q.pmf, log_target, log_draft, scratch),
        "distinct_rank": distinct_ranks(p, q, at, log_target, log_draft, keys, buffers),
        "uno_loss": uno_loss(p.pmf, q.pmf, columns["total_variation"], buffers),
    }


def uno_loss(p: Tensor, q: Tensor, total_variation: Tensor, scratch: Tensor) -> Tensor:
    """Bias ``[rows, shares]`` of over-acceptance b = (1-t) min(1, p/q) + t with recovery from p (Y5, UNO).

    The output law is :math:`b q + c p`, c = (1-t) TV. Its distance to p is the part of b q above (1-c) p.
    """
    kept = torch.stack([1 - (1 - share) * total_variation for share in UNO_SHARES], dim=1)
    if fits(p):
        from spectheory.kernels.rejections import uno_losses

        losses = np.empty(tuple(kept.shape))
        on_threads(uno_losses, p, q, kept, losses, constants=(np.array(UNO_SHARES),))
        return torch.from_numpy(losses)
    (both, above), parts = scratch, []
    torch.minimum(p, q, out=both)
    for i, share in enumerate(UNO_SHARES):
        torch.mul(p, -kept[:, i, None].to(p.dtype), out=above)
        above.add_(both, alpha=1 - share).add_(q, alpha=share)
        parts.append(above.clamp_(min=0.0).sum(dim=-1).to(kept.dtype))
    return torch.stack(parts, dim=-1)
