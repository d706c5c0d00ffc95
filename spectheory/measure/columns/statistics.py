"""Every column of a trace from two rows of logits and the token between them, computed on the device block by block.

Sums over the vocabulary run in float32 over blocks that fit the cache; results per position are float64. With float32
logits, probabilities have a relative error near 1e-6, sums an absolute error below 1e-6. Truncated settings leave few
tokens: all columns are computed over these, in float64 (:mod:`spectheory.measure.columns.union`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.errors import LogitsError, ShapeError
from spectheory.measure.columns.block import Settings, logit_columns, pmf_columns, rows_at_once
from spectheory.measure.columns.noise import DEFAULT_KEY, Keys, position_keys
from spectheory.measure.columns.pmf import make_pmf
from spectheory.measure.columns.supports import compiles, cuts
from spectheory.measure.columns.union import union_statistics

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
    settings = Settings(sampling, draft_sampling or sampling, race, sampled, judged, by_start)
    truncated = cuts(settings.target, size) and cuts(settings.draft, size)
    rows = rows_at_once(target_logits)
    if truncated and compiles(target_logits.device, size):
        rows = _TRUNCATED
    buffers = torch.empty((0 if truncated else 6, min(rows, len(tokens)), size), device=target_logits.device)
    keys = position_keys(DEFAULT_KEY, 0, len(tokens)) if keys is None else keys
    parts = []
    for start in range(0, len(tokens), rows):
        target, draft, token = (x[start : start + rows] for x in (target_logits, draft_logits, tokens))
        own = keys[start : start + rows]
        try:
            if truncated:
                part = union_statistics(target, draft, token, settings, own)
            else:
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


def _statistics(
    target: Tensor, draft: Tensor, tokens: Tensor, settings: Settings, buffers: Tensor, keys: Keys
) -> dict[str, Tensor]:
    """All columns of one block. `buffers` ``[6, rows, V]`` are overwritten."""
    at = tokens[:, None]
    p = make_pmf(target, settings.target, buffers[:2], at if settings.sampled else None)
    q = make_pmf(draft, settings.draft, buffers[2:4])
    columns = pmf_columns(p, q, at, settings, keys, buffers[4:])
    return columns | logit_columns(target, draft, at, settings)
