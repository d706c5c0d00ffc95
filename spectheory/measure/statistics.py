"""Every column of a trace from two rows of logits and the token between them: on the device, block by block.

All sums over the vocabulary run in float32 over blocks that fit the cache; what is kept per position is float64. With
V tokens and float32 logits, probabilities carry a relative error near 1e-6 and sums an absolute one below 1e-6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.errors import LogitsError, ShapeError
from spectheory.measure.race import race_acceptance
from spectheory.measure.truncation import log_pmf, truncates
from spectheory.trace import REJECTION_RANKS

_CPU_BLOCK = 2**18
"""Entries of one array of a block on a CPU: 1 MB, so that the handful of arrays in use stays in the cache."""
_DEVICE_BLOCK = 2**25
"""Entries of one array of a block elsewhere: 128 MB, long enough to fill the device."""


def position_statistics(
    target_logits: Tensor,
    draft_logits: Tensor,
    tokens: Tensor,
    sampling: Sampling,
    *,
    race: bool = True,
    sampled: bool = False,
) -> dict[str, Tensor]:
    """Statistics of positions by the names of :data:`spectheory.trace.COLUMNS`.

    Parameters
    ----------
    target_logits, draft_logits : tensor ``[n, V]``
        Logits of the two models at n positions over the common token ids, in any floating precision.
    tokens : tensor ``[n]`` of int
        The output token at each position.
    sampling : Sampling
        Temperature, top-k and top-p that turn both models' logits into pmfs.
    race : bool
        Whether to compute ``race_acceptance``, which needs a sort of every row and most of the time.
    sampled : bool
        Whether the tokens are known to be drawn from the target with these settings. Then each was possible when
        drawn; where logits computed anew round it just outside a cut (top-k, top-p, greedy), it is let in again.

    Returns
    -------
    dict of str to tensor ``[n]``
        Probabilities, nats and nats squared in float64 (``rejection_rank`` is ``[n, 8]``), ranks and token ids as
        integers. Exact up to the rounding of float32. ``log_target`` is -inf where the target cannot output the token.

    Raises
    ------
    LogitsError
        If a row holds NaN or +inf, or nothing but -inf; ``row`` is its index.
    ShapeError
        If the shapes do not fit together.

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
    parts = []
    for start in range(0, len(tokens), rows):
        block = slice(start, start + rows)
        try:
            parts.append(_statistics(target_logits[block], draft_logits[block], tokens[block], sampling, race, sampled))
        except LogitsError as error:
            raise LogitsError(
                error.what.replace(f"row {error.row}", f"row {start + error.row}"),
                limit=error.limit,
                remedy=error.remedy,
                row=start + error.row,
            ) from error
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


@dataclass(frozen=True)
class _Pmf:
    """A block of pmfs ``[rows, V]`` in float32.

    ``log`` is the logarithm, with 0 in place of -inf where `cut` (tokens that the settings or the model exclude), so
    that products with it vanish there; ``cut`` is None where every token has a finite logarithm.
    """

    pmf: Tensor
    log: Tensor
    cut: Tensor | None

    def log_at(self, at: Tensor) -> Tensor:
        """Log-probabilities ``[rows]`` of one token per row, -inf where cut."""
        own = self.log.gather(1, at)[:, 0].clamp_(max=0.0)
        return own if self.cut is None else own.masked_fill_(self.cut.gather(1, at)[:, 0], -math.inf)


def _pmf(logits: Tensor, sampling: Sampling, admitted: Tensor | None = None) -> _Pmf:
    """The pmfs of a block; one exponential per entry. `admitted` ``[rows, 1]`` holds tokens that are never cut."""
    logits = logits.float()
    best = logits.amax(dim=-1, keepdim=True)
    if truncates(sampling) or not bool(torch.isfinite(best).all()):
        log = log_pmf(logits, sampling)  # raises where a row is not finite, naming it
        if admitted is not None:
            _admit(log, logits - best, admitted, sampling)
    else:
        log = logits - best
        if sampling.temperature != 1:
            log /= sampling.temperature
    pmf = torch.exp(log)
    total = pmf.sum(dim=-1, keepdim=True)
    pmf /= total
    log -= total.log()
    if bool(torch.isfinite(log.amin(dim=-1)).all()):
        return _Pmf(pmf, log, None)
    cut = log == -math.inf
    return _Pmf(pmf, log.masked_fill_(cut, 0.0), cut)


def _admit(log: Tensor, logits: Tensor, tokens: Tensor, sampling: Sampling) -> None:
    """Let cut tokens ``[rows, 1]`` in again, in place and unnormalised; at temperature 0 they are the only ones."""
    outside = log.gather(1, tokens) == -math.inf
    if sampling.temperature == 0:
        log.masked_fill_(outside, -math.inf)
        value = torch.zeros_like(outside, dtype=log.dtype)
    else:
        value = logits.gather(1, tokens) / sampling.temperature + log.amax(dim=-1, keepdim=True)
    log.scatter_(1, tokens, torch.where(outside, value, log.gather(1, tokens)))


def _statistics(
    target: Tensor, draft: Tensor, tokens: Tensor, sampling: Sampling, race: bool, sampled: bool
) -> dict[str, Tensor]:
    """All columns of one block."""
    at, wide = tokens[:, None], _wide(target)
    p, q = _pmf(target, sampling, at if sampled else None), _pmf(draft, sampling)
    scratch = torch.empty_like(p.pmf)
    log_target, log_draft = p.log_at(at).to(wide), q.log_at(at).to(wide)
    columns = {
        "token": tokens,
        "log_target": log_target,
        "log_draft": log_draft,
        "target_entropy": _dot(p.pmf, p.log, scratch).neg_().to(wide).clamp_(min=0.0),
        # The products of the line above are still there.
        "target_second_moment": _dot(scratch, p.log, scratch).to(wide),
        "draft_entropy": _dot(q.pmf, q.log, scratch).neg_().to(wide).clamp_(min=0.0),
        "kl": _kl(p, q, scratch).to(wide),
        "harmonic_similarity": _harmonic_similarity(p.pmf, q.pmf, scratch).to(wide),
        "race_g": _race_g(p.pmf, q.pmf, log_target, log_draft, scratch),
    }
    ranks = _rejection_ranks(p.pmf, q.pmf, log_draft - log_target, scratch)
    columns["rejection_rank"], columns["total_variation"] = ranks
    columns |= _orders(p, q, at, scratch)
    if race:
        columns["race_acceptance"] = race_acceptance(p.pmf, q.pmf, scratch).to(wide)
    return columns


def _wide(values: Tensor) -> torch.dtype:
    """Precision of what is kept per position; Apple's devices have no float64."""
    return torch.float32 if values.device.type == "mps" else torch.float64


def _dot(a: Tensor, b: Tensor, scratch: Tensor) -> Tensor:
    """Sums of products over the last axis; the products stay in `scratch`."""
    return torch.mul(a, b, out=scratch).sum(dim=-1)


def _kl(p: _Pmf, q: _Pmf, scratch: Tensor) -> Tensor:
    """Sum of p log(p/q); infinite where the draft lacks a token of the target."""
    torch.sub(p.log, q.log, out=scratch)
    kl = _dot(p.pmf, scratch, scratch).clamp_(min=0.0)
    if q.cut is None:
        return kl
    lacking = (p.pmf * q.cut).sum(dim=-1) > 0
    return kl.masked_fill_(lacking, math.inf)


def _harmonic_similarity(p: Tensor, q: Tensor, scratch: Tensor) -> Tensor:
    """Sum of 2 p q / (p + q); where both are zero the quotient is 0 / tiny = 0, as it should."""
    torch.add(p, q, out=scratch).clamp_(min=torch.finfo(torch.float32).tiny)
    torch.div(q, scratch, out=scratch)
    return 2 * _dot(p, scratch, scratch)


def _orders(p: _Pmf, q: _Pmf, at: Tensor, scratch: Tensor) -> dict[str, Tensor]:
    """What depends on the order of the tokens alone; ties go to the lowest index.

    Logarithms decide, which tell apart what probabilities round together; tokens that are cut come last.
    """
    before = torch.empty_like(scratch)
    torch.lt(torch.arange(scratch.shape[1], device=at.device, dtype=torch.float32), at.float(), out=before)
    values = [x.log if x.cut is None else x.log.masked_fill(x.cut, -math.inf) for x in (p, q)]
    first = [_first_largest(v) for v in values]
    target_rank, draft_rank = (_rank(v, at, before, scratch) for v in values)
    return {"target_rank": target_rank, "draft_rank": draft_rank, "greedy_agreement": first[0] == first[1]}


def _first_largest(values: Tensor) -> Tensor:
    """Index of the largest entry of each row, the lowest index first."""
    if values.device.type == "cpu":  # numpy's is ten times as fast there
        return torch.from_numpy(values.numpy().argmax(axis=-1))
    return values.argmax(dim=-1)


def _rank(values: Tensor, at: Tensor, before: Tensor, scratch: Tensor) -> Tensor:
    """Place of a token in its row, 1 the largest; ties go to the lowest index.

    Comparisons go to a float array, where both they and their sum run at full width; counts are exact below 2^24.
    """
    own = values.gather(1, at)
    ahead = torch.gt(values, own, out=scratch).sum(dim=-1)
    tied = _dot(torch.eq(values, own, out=scratch), before, scratch)
    return (1 + ahead + tied).to(torch.int64)


def _race_g(p: Tensor, q: Tensor, log_target: Tensor, log_draft: Tensor, scratch: Tensor) -> Tensor:
    """g(p_x/q_x) at the token (D3): infinite where the draft cannot draw it."""
    largest = torch.finfo(torch.float32).max
    c = torch.exp(log_target - log_draft).clamp_(max=largest).to(torch.float32)
    torch.addcmul(p, q, c[:, None], value=-1, out=scratch)
    g = scratch.clamp_(max=0.0).sum(dim=-1).neg_().to(log_target.dtype)
    return g.masked_fill_(log_draft == -math.inf, math.inf)


def _rejection_ranks(p: Tensor, q: Tensor, log_rho: Tensor, scratch: Tensor) -> tuple[Tensor, Tensor]:
    r"""P(R = r | token), ``[rows, 8]``, of recursive rejection with i.i.d. drafts (R3), and TV.

    The residual after m rejections, left unnormalised, is :math:`(p - s_{m+1} q)_+` with mass :math:`G_m = P(R > m)`,
    :math:`s_1 = 0, G_0 = 1, s_{m+1} = s_m + G_{m-1}`: rejecting at rank m takes :math:`G_{m-1} q` off what is left.
    So each rank is one pass, and :math:`P(R = r, X = x) = \min((p_x - s_r q_x)_+, G_{r-1} q_x)`.
    """
    rho = torch.exp(log_rho)
    left = torch.ones_like(log_rho)
    taken = torch.zeros_like(log_rho)
    ranks, distance = [], left
    for rank in range(REJECTION_RANKS):
        # rho is infinite for a token without target mass, which no rank outputs.
        ranks.append(torch.minimum((1 - taken * rho).clamp_(min=0.0), left * rho))
        taken = taken + left
        torch.addcmul(p, q, taken[:, None].to(torch.float32), value=-1, out=scratch)
        left = torch.minimum(scratch.clamp_(min=0.0).sum(dim=-1).to(left.dtype), left)
        distance = left if rank == 0 else distance
    return torch.stack(ranks, dim=1).nan_to_num_(nan=0.0), distance
