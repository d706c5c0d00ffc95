"""Every column of a trace from two rows of logits and the token between them, computed on the device block by block.

Sums over the vocabulary run in float32 over blocks that fit the cache; results per position are float64. With float32
logits, probabilities have a relative error near 1e-6, sums an absolute error below 1e-6. Truncated settings leave few
tokens: all columns are computed over these, in float64: one list per position of both models' kept tokens and the
text's token.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from spectheory.distributions import Sampling
from spectheory.errors import LogitsError, ShapeError
from spectheory.measure.columns.compiled import _listed_from, fits, on_threads
from spectheory.measure.columns.noise import DEFAULT_KEY, Keys, position_keys
from spectheory.measure.columns.pmf import (
    KeptTokens,
    Pmf,
    _compiles,
    _first_largest,
    _Listed,
    _make_pmf,
    _places,
    cuts,
    kept_tokens,
)
from spectheory.measure.columns.race import race_acceptance, race_ranks, ratio
from spectheory.measure.columns.rejection import distinct_ranks, rejection_ranks
from spectheory.measure.machine import widest
from spectheory.trace import RECORDED_RANKS, START_RANKS, UNO_SHARES
from spectheory.trace.columns import RENYI_ORDERS

# From both pmfs: sums, places, rank laws, those of the race, those that judge outputs


_OF_STARTS = ("draft_entropy", "draft_top", "race_g", "draft_rank", "greedy_agreement")
"""The sums and places that a draft has by start and depth."""


def _by_start(p: Pmf, q: Pmf, at: Tensor, keys: Keys, buffers: Tensor, *, race: bool) -> dict[str, Tensor]:
    """Columns that a draft has by start and depth."""
    log_target, log_draft = _logs(p, q, at)
    sums = _compiled_sums if fits(p.pmf) else _draft_sums
    totals = sums(p, q, at, log_target, log_draft, buffers)
    columns = {"log_draft": log_draft, **{name: totals[name] for name in _OF_STARTS}}
    columns |= _rejections(p, q, log_target, log_draft, buffers, START_RANKS)
    if race:
        columns |= _ranks(p, q, at, log_target, log_draft, keys, buffers)
    return columns


def _by_position(p: Pmf, q: Pmf, at: Tensor, buffers: Tensor) -> dict[str, Tensor]:
    """The columns that cost little. `buffers` ``[2, rows, V]`` are overwritten."""
    log_target, log_draft = _logs(p, q, at)
    sums = _compiled_sums if fits(p.pmf) else _sums
    columns = sums(p, q, at, log_target, log_draft, buffers)
    return {
        "log_target": log_target,
        "log_draft": log_draft,
        **_choice(p, q),
        **columns,
        **_rejections(p, q, log_target, log_draft, buffers, RECORDED_RANKS),
    }


def _choice(p: Pmf, q: Pmf) -> dict[str, Tensor]:
    """What the target says of the draft's most probable token."""
    wide, best = widest(p.pmf), (_first_largest(pmf.order())[:, None] for pmf in (p, q))
    top, choice = (p.log_at(at).to(wide) for at in best)
    return {"choice_target": choice, "choice_top": top}


def _place(order: Tensor, at: Tensor) -> Tensor:
    """The place ``[rows]`` of a token in its row, behind all that are not cut where it is."""
    value = order.gather(1, at)
    tied = (order == value) & (torch.arange(order.shape[1], device=order.device) < at) & (value > -math.inf)
    return 1 + (order > value).sum(dim=-1) + tied.sum(dim=-1)


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

    sums, ranks = np.empty((len(at), 7)), np.empty((len(at), 5), np.int64)
    c = ratio(log_target, log_draft, p.pmf.dtype)
    on_threads(position_sums, p.pmf, q.pmf, p.order(), q.order(), at[:, 0], c, sums, ranks)
    names = ("target_entropy", "target_second_moment", "kl", "draft_entropy", "harmonic_similarity", "race_g")
    columns = {name: torch.from_numpy(sums[:, i].copy()) for i, name in enumerate((*names, "draft_top"))}
    columns["race_g"].masked_fill_(log_draft == -math.inf, math.inf)
    target_rank, draft_rank, best, best_draft, choice_rank = torch.from_numpy(ranks.T.copy())
    return columns | {
        "target_rank": target_rank,
        "draft_rank": draft_rank,
        "greedy_agreement": best == best_draft,
        "choice_rank": choice_rank,
    }


def _sums(p: Pmf, q: Pmf, at: Tensor, log_target: Tensor, log_draft: Tensor, buffers: Tensor) -> dict[str, Tensor]:
    """Sums over both pmfs, and the token's places in them."""
    wide, scratch = widest(p.pmf), buffers[1]
    return {
        "target_entropy": _dot(p.pmf, p.log, scratch).neg_().to(wide).clamp_(min=0.0),
        # `scratch` still holds the products of the line above.
        "target_second_moment": _dot(scratch, p.log, scratch).to(wide),
        "kl": _kl(p, q, scratch).to(wide),
        "choice_rank": _place(p.order(), _first_largest(q.order())[:, None]),
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
        "greedy_agreement": _first_largest(target) == _first_largest(draft),
    }


def _rank(values: Tensor, at: Tensor, before: Tensor, scratch: Tensor) -> Tensor:
    """Rank of a token in its row. Counting in floats runs at full vector width, and is exact below 2^24."""
    value = values.gather(1, at)
    ahead = torch.gt(values, value, out=scratch).sum(dim=-1)
    tied = torch.eq(values, value, out=scratch).mul_(before).sum(dim=-1)
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
    infinite = (p.pmf * q.cut).sum(dim=-1) > 0
    return kl.masked_fill_(infinite, math.inf)


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


def _output_masses(p: Pmf, at: Tensor, scratch: Tensor) -> dict[str, Tensor]:
    """Columns of :data:`spectheory.trace.JUDGED`, ``[rows]``, from the pmf in use and the tokens `at` ``[rows, 1]``."""
    wide, values = widest(p.pmf), p.order()
    value = values.gather(1, at)
    above, tied = (
        compare(values, value, out=scratch).mul_(p.pmf).sum(dim=-1).to(wide) for compare in (torch.gt, torch.eq)
    )
    return {
        "target_above": above.clamp_(max=1.0),
        "target_tied": tied.clamp_(max=1.0),
        "target_top": p.pmf.amax(dim=-1).to(wide),
    }


def _output_logits(logits: Tensor, tokens: Tensor, model: str) -> dict[str, Tensor]:
    """The other columns: gap, margin and scale of a model's logits ``[rows, V]`` before temperature and filters."""
    wide = widest(logits)
    largest = logits.topk(min(2, logits.shape[1])).values.to(wide)
    first, second = torch.nn.functional.pad(largest, (0, 2 - largest.shape[1]), value=-math.inf).unbind(dim=-1)
    return {
        f"{model}_gap": (first - logits.gather(1, tokens)[:, 0].to(wide)).clamp_(min=0.0),
        f"{model}_margin": first - second,
        f"{model}_scale": torch.nan_to_num(logits, posinf=0.0, neginf=0.0).abs().amax(dim=-1).to(wide),
    }


def _renyi(p: Pmf, q: Pmf, scratch: Tensor) -> Tensor:
    """D_s(p || q) ``[rows, orders]``, the logarithm of sum p^s q^(1-s) over s - 1."""
    orders = []
    for s in RENYI_ORDERS:
        torch.mul(q.log, 1 - s, out=scratch).add_(p.log, alpha=s)
        for pmf in (p, q):
            if pmf.cut is not None:
                scratch.masked_fill_(pmf.cut, -math.inf)
        orders.append(scratch.logsumexp(dim=-1).to(widest(scratch)).div_(s - 1).clamp_(min=0.0))
    return torch.stack(orders, dim=-1)


def _expensive(
    p: Pmf, q: Pmf, at: Tensor, columns: dict[str, Tensor], keys: Keys, buffers: Tensor
) -> dict[str, Tensor]:
    """The columns of the race, of distinct candidates and of biased rules."""
    return {
        "race_acceptance": race_acceptance(p.pmf, q.pmf, buffers[1]).to(widest(p.pmf)),
        **_ranks(p, q, at, columns["log_target"], columns["log_draft"], keys, buffers),
        "uno_loss": _uno_loss(p.pmf, q.pmf, columns["total_variation"], buffers),
    }


def _ranks(
    p: Pmf, q: Pmf, at: Tensor, log_target: Tensor, log_draft: Tensor, keys: Keys, buffers: Tensor
) -> dict[str, Tensor]:
    """The laws of ranks among distinct drafts."""
    return {
        "race_rank": race_ranks(p.pmf, q.pmf, log_target, log_draft, buffers[1]),
        "distinct_rank": distinct_ranks(p, q, at, log_target, log_draft, keys, buffers),
    }


def _uno_loss(p: Tensor, q: Tensor, total_variation: Tensor, scratch: Tensor) -> Tensor:
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


# From logits, block by block


CPU_BLOCK = 2**19
"""Entries of one array of a block on a CPU: 2 MB, so that the arrays in use stay in the last-level cache."""
DEVICE_BLOCK = 2**25
"""Entries of one array of a block on other devices: 128 MB, enough to fill the device."""


@dataclass(frozen=True)
class _Settings:
    """How both models are sampled, whether tokens were sampled so, and which columns are wanted."""

    target: Sampling
    draft: Sampling
    race: bool
    sampled: bool
    judged: bool
    by_start: bool
    better_drafts: bool


def _entries_at_once(device: torch.device) -> int:
    """Entries of one array of a block."""
    return CPU_BLOCK if device.type == "cpu" else DEVICE_BLOCK


def _rows_at_once(logits: Tensor) -> int:
    """Rows of logits ``[n, V]`` in a block."""
    return max(1, _entries_at_once(logits.device) // max(logits.shape[1], 1))


def _pmf_columns(p: Pmf, q: Pmf, at: Tensor, settings: _Settings, keys: Keys, buffers: Tensor) -> dict[str, Tensor]:
    """Columns that depend on both pmfs alone, of the tokens at places ``[rows, 1]``; `buffers` are overwritten."""
    if settings.by_start:
        return _by_start(p, q, at, keys, buffers, race=settings.race)
    columns = _by_position(p, q, at, buffers)
    if settings.judged:
        columns |= _output_masses(p, at, buffers[1])
    if settings.better_drafts:
        columns["renyi"] = _renyi(p, q, buffers[1])
    if settings.race:
        columns |= _expensive(p, q, at, columns, keys, buffers)
    return columns


def _logit_columns(target: Tensor, draft: Tensor, tokens: Tensor, settings: _Settings) -> dict[str, Tensor]:
    """The token ``[rows, 1]`` itself, and columns that read whole rows of logits ``[rows, V]``."""
    columns = {} if settings.by_start else {"token": tokens[:, 0]}
    rows = _rows_at_once(target)
    if settings.draft.temperature == 0:
        columns["draft_top"] = _plain_tops(draft)
        if not settings.by_start:
            columns |= _plain_choice(target, draft)
    if settings.judged:
        models = (("target", target),) * (not settings.by_start) + (("draft", draft),)
        for model, logits in models:
            parts = [_output_logits(*part, model) for part in zip(logits.split(rows), tokens.split(rows), strict=True)]
            columns |= {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    return columns


def _plain_tops(logits: Tensor) -> Tensor:
    """Largest probability ``[rows]`` of the softmax of logits, as engines' stopping rules read it at temperature 0."""
    rows = max(1, _rows_at_once(logits) // 2)
    scratch = torch.empty((min(rows, len(logits)), logits.shape[1]), device=logits.device)
    tops = []
    for part in logits.split(rows):
        relative = scratch[: len(part)].copy_(part)
        relative -= relative.amax(dim=-1, keepdim=True)
        tops.append(relative.exp_().sum(dim=-1).to(widest(logits)).reciprocal_())
    return torch.cat(tops)


def _plain_choice(target: Tensor, draft: Tensor) -> dict[str, Tensor]:
    """The columns of :func:`_choice` by the softmax of the target's logits ``[rows, V]``."""
    choice, wide = _first_largest(draft)[:, None], widest(target)
    total = torch.cat([rows.to(wide).logsumexp(dim=-1) for rows in target.split(_rows_at_once(target))])
    logs = {"choice_target": target.gather(1, choice)[:, 0], "choice_top": target.amax(dim=-1)}
    columns = {name: (value.to(wide) - total).clamp_(max=0.0) for name, value in logs.items()}
    return columns | {"choice_rank": _place(target, choice)}


_LEAST_WIDTH = 8
"""Rows of at most this many tokens are computed together; above, rows within a factor of two."""


@dataclass(frozen=True)
class _Union:
    """Ids ``[rows, W]`` (ascending, padded with V), both models' log-probabilities at them (-inf where cut), and the
    place ``[rows, 1]`` of the text's token among them.
    """

    ids: Tensor
    log_target: Tensor
    log_draft: Tensor
    place: Tensor

    def vocabulary_rank(self, log: Tensor, rank: Tensor, size: int) -> Tensor:
        """Ranks ``[rows]`` in the vocabulary from those in the list: all cut tokens are tied behind the kept ones."""
        token, stays = self.ids.gather(1, self.place), log > -math.inf
        behind = 1 + token[:, 0] + (stays & (self.ids > token)).sum(dim=-1)
        return torch.where(stays.gather(1, self.place)[:, 0], rank, behind)

    def by_width(self, size: int, entries: int) -> Iterator[tuple[Tensor, _Union]]:
        """Rows of similar width with their indices; each part has at most about this many entries.

        The width of a part is a power of two, so that the numbers of a row do not depend on its neighbours.
        """
        longest = (self.ids < size).sum(dim=-1).cpu().tolist()
        widths = torch.tensor([max(_LEAST_WIDTH, 1 << (n - 1).bit_length()) for n in longest])
        for width in widths.unique().tolist():
            for rows in torch.nonzero(widths == width)[:, 0].split(max(1, entries // width)):
                yield rows, self._part(rows.to(self.ids.device), width, size)

    def _part(self, rows: Tensor, width: int, size: int) -> _Union:
        fills = ((self.ids, size), (self.log_target, -math.inf), (self.log_draft, -math.inf))
        ids, log_target, log_draft = (
            pad(x[rows, :width], (0, max(0, width - x.shape[1])), value=fill) for x, fill in fills
        )
        return _Union(ids, log_target, log_draft, self.place[rows])


def _listed(target: Tensor, draft: Tensor, at: Tensor, settings: _Settings, keys: Keys) -> dict[str, Tensor]:
    """The columns of both pmfs at positions where both models' settings truncate, with ranks in the vocabulary."""
    size = target.shape[1]
    both = _union(
        kept_tokens(target, settings.target, at if settings.sampled else None),
        kept_tokens(draft, settings.draft),
        at,
        size,
    )
    order, parts = [], []
    for rows, part in both.by_width(size, _entries_at_once(target.device)):
        order.append(rows)
        p, q = (_pmf(log, _Listed(part.ids, size)) for log in (part.log_target, part.log_draft))
        with _listed_from(size):
            buffers = p.pmf.new_empty((2, *p.pmf.shape))
            columns = _pmf_columns(p, q, part.place, settings, keys[rows.numpy()], buffers)
        for name, log in (("target_rank", part.log_target), ("draft_rank", part.log_draft)):
            if name in columns:
                columns[name] = part.vocabulary_rank(log, columns[name], size)
        parts.append(columns)
    place = torch.cat(order).argsort().to(target.device)
    return {name: torch.cat([each[name] for each in parts])[place] for name in parts[0]}


def _union(p: KeptTokens, q: KeptTokens, tokens: Tensor, size: int) -> _Union:
    """The union of two supports and a token ``[rows, 1]`` of each row, from a vocabulary of this size."""
    if not _compiles(tokens.device, size):
        return _union_in_torch(p, q, tokens, size)
    merged = importlib.import_module("spectheory.kernels.supports").merged
    parts = merged(*(x.numpy() for x in (*p, *q, tokens[:, 0])), size)
    return _Union(*(torch.from_numpy(x) for x in parts))


def _union_in_torch(p: KeptTokens, q: KeptTokens, tokens: Tensor, size: int) -> _Union:
    """The same on any device."""
    every = torch.cat([p.ids, q.ids, tokens], dim=1).sort(dim=1).values
    first = (every < size) & pad(every[:, 1:] != every[:, :-1], (1, 0), value=True)
    ids = pad(every, (0, 1), value=size).gather(1, _places(first))
    return _Union(ids, _at(p, ids, size), _at(q, ids, size), torch.searchsorted(ids, tokens.contiguous()))


def _at(kept: KeptTokens, ids: Tensor, size: int) -> Tensor:
    """Log-probabilities of tokens, -inf where they are cut."""
    at = torch.searchsorted(kept.ids.contiguous(), ids)
    present = pad(kept.ids, (0, 1), value=size).gather(1, at) == ids
    return pad(kept.log, (0, 1), value=-math.inf).gather(1, at).masked_fill_(~present, -math.inf)


def _pmf(log: Tensor, listed: _Listed) -> Pmf:
    cut = log == -math.inf
    return Pmf(log.exp(), log.masked_fill(cut, 0.0), cut, listed)


_TRUNCATED = 64
"""Positions of truncated settings at once, where their supports are found row by row."""


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
    better_drafts: bool = False,
) -> dict[str, Tensor]:
    """Statistics of n positions by the names of :data:`spectheory.trace.COLUMNS`, from both models' logits ``[n, V]``.

    Values are ``[n]`` (rank laws ``[n, 8]``, the estimated one ``[n, 4]``): float64, with ranks and token ids as
    integers. Exact up to float32 rounding, except ``distinct_rank``, an unbiased estimate. ``log_target`` is -inf where
    the target cannot output the token. Where both settings may cut tokens, only the kept ones enter, in float64.

    `race` says whether to compute the expensive columns: ``race_acceptance``, ``race_rank``, ``distinct_rank``,
    ``uno_loss``. `sampled` says whether the `tokens` ``[n]`` were drawn from the target with these settings: where
    recomputed logits round one just outside a cut (top-k, top-p, greedy), it is re-admitted. `keys` ``[n]`` (uint64)
    are the randomness of ``distinct_rank`` (:mod:`spectheory.measure.columns.noise`); the positions of different texts
    need different ones, the default is those of a text with key 0. `draft_sampling` is that of the draft where it has
    its own. `judged` adds the columns of :data:`spectheory.trace.JUDGED`. `by_start` computes only those that a draft
    has by start and depth (:data:`spectheory.trace.BY_START`, here without the prefix), with rank laws ``[n, 4]``.
    `better_drafts` adds ``renyi``, by which better drafts are predicted (:mod:`spectheory.prediction.what_if_answer`).

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
    size = target_logits.shape[1]
    settings = _Settings(sampling, draft_sampling or sampling, race, sampled, judged, by_start, better_drafts)
    truncated = cuts(settings.target, size) and cuts(settings.draft, size)
    rows = _rows_at_once(target_logits)
    if truncated and _compiles(target_logits.device, size):
        rows = _TRUNCATED
    buffers = torch.empty((0 if truncated else 6, min(rows, len(tokens)), size), device=target_logits.device)
    keys = position_keys(DEFAULT_KEY, 0, len(tokens)) if keys is None else keys
    parts = []
    for start in range(0, len(tokens), rows):
        target, draft, token = (x[start : start + rows] for x in (target_logits, draft_logits, tokens))
        token_keys, at = keys[start : start + rows], token[:, None]
        try:
            if truncated:
                part = _listed(target, draft, at, settings, token_keys)
            else:
                p = _make_pmf(target, settings.target, buffers[:2, : len(token)], at if settings.sampled else None)
                q = _make_pmf(draft, settings.draft, buffers[2:4, : len(token)])
                part = _pmf_columns(p, q, at, settings, token_keys, buffers[4:, : len(token)])
            parts.append(part | _logit_columns(target, draft, at, settings))
        except LogitsError as error:
            raise LogitsError(
                error.what.replace(f"row {error.row}", f"row {start + error.row}"),
                limit=error.limit,
                remedy=error.remedy,
                row=start + error.row,
            ) from error
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
