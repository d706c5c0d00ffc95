"""Columns of positions from both models' logits, in double precision: the definitions, for arrays of any library."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from numpy.typing import NDArray

from spectheory.distributions import Floats, Sampling, as_integers, as_numpy
from spectheory.divergences import (
    entropy,
    harmonic_mean_similarity,
    hockey_stick,
    kl_divergence,
    second_log_moment,
    total_variation,
)
from spectheory.errors import TextError
from spectheory.limits.bias import uno_loss
from spectheory.trace.columns import RECORDED_RANKS, RENYI_ORDERS, UNO_SHARES
from spectheory.verification.race import RaceVerification
from spectheory.verification.recursive import RecursiveRejection

Columns = dict[str, NDArray[Any]]
ENTRIES = 1 << 22
"""Logits of one model at once: 32 MB in double precision."""
_ROUNDED = 1e-2
"""How far sums of probabilities are from 1, in half precision over a vocabulary."""


def _columns_of_logits(target: Any, draft: Any, tokens: Any, sampling: Sampling, name: str) -> Columns:
    """Every column of a measurement that two rows of logits and the token decide exactly, for one text.

    Logits are ``[T, V]`` of both models, row t that from which token t of the `tokens` ``[T]`` was drawn.
    """
    ids = as_integers(tokens, f"tokens of {name}", TextError)
    target, draft = (
        logits if is_array_api_obj(logits) else as_numpy(logits, f"logits of {name}", TextError)
        for logits in (target, draft)
    )
    shapes = [tuple(logits.shape) for logits in (target, draft)]
    if ids.ndim != 1 or not len(ids) or shapes[0] != shapes[1] or len(shapes[0]) != 2 or shapes[0][0] != len(ids):
        raise TextError(
            f"{name} has logits {shapes[0]} and {shapes[1]} for tokens {ids.shape}",
            limit="needs arrays [T, V] twice and T tokens, at least one",
            remedy="give the row of logits from which each token was drawn, of one vocabulary",
        )
    size = shapes[0][1]
    if ((ids < 0) | (ids >= size)).any():
        raise TextError(
            f"{name} has a token of id {ids[(ids < 0) | (ids >= size)][0]}",
            limit=f"logits are of ids 0..{size - 1}",
            remedy="give ids of the vocabulary that both models share",
        )
    rows = max(1, ENTRIES // size)
    parts = []
    for block in (slice(start, start + rows) for start in range(0, len(ids), rows)):
        p, q = (as_numpy(logits[block], f"logits of {name}", TextError) for logits in (target, draft))
        for model, logits in (("target", p), ("draft", q)):
            if (logits >= 0).all() and (abs(logits.sum(axis=1) - 1) < _ROUNDED).all():
                raise TextError(
                    f"the {model}'s rows of {name} are >= 0 and sum to 1",
                    limit="needs logits, and these are probabilities",
                    remedy="pass their natural logarithms",
                )
        parts.append(_columns(p, q, ids[block], sampling))
    return {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}


def _columns(target: Floats, draft: Floats, ids: NDArray[np.int64], sampling: Sampling) -> Columns:
    log_p, log_q = (sampling.log_pmf(logits) for logits in (target, draft))
    p, q = np.exp(log_p), np.exp(log_q)
    at = np.arange(len(ids)), ids
    own_p, own_q = p[at], q[at]
    in_support = own_q > 0
    ratio = np.divide(own_p, own_q, out=np.ones_like(own_p), where=in_support)
    lossless = np.minimum(1.0, np.divide(p, q, out=np.ones_like(p), where=q > 0))
    ranks, race = min(RECORDED_RANKS, p.shape[1]), RaceVerification()
    plain = Sampling() if sampling.temperature == 0 else sampling
    choice, log_plain = log_q.argmax(axis=-1), plain.log_pmf(target)
    choice_target = log_plain[at[0], choice]
    behind = 1 + np.isfinite(log_plain).sum(axis=-1)
    return {
        "token": ids,
        "log_target": log_p[at],
        "log_draft": log_q[at],
        "total_variation": total_variation(p, q),
        "kl": kl_divergence(p, q),
        "target_entropy": entropy(p),
        "target_second_moment": second_log_moment(p),
        "draft_entropy": entropy(q),
        "renyi": _renyi(log_p, log_q),
        "draft_top": np.exp(plain.log_pmf(draft)).max(axis=-1),
        "harmonic_similarity": harmonic_mean_similarity(p, q),
        "race_acceptance": race.acceptance(p, q),
        "race_g": np.where(in_support, hockey_stick(p, q, ratio), np.inf),
        "draft_rank": _rank(log_q, ids),
        "target_rank": _rank(log_p, ids),
        "greedy_agreement": log_p.argmax(axis=-1) == log_q.argmax(axis=-1),
        "choice_target": choice_target,
        "choice_top": log_plain.max(axis=-1),
        "choice_rank": np.where(np.isfinite(choice_target), _rank(log_plain, choice), behind),
        "rejection_rank": RecursiveRejection().rank_pmf_given(p, q, ids, RECORDED_RANKS),
        "race_rank": race.rank_pmf_given(p, q, ids, ranks),
        "uno_loss": np.stack([uno_loss(p, q, (1 - share) * lossless + share) for share in UNO_SHARES], axis=1),
    }


def _renyi(log_p: Floats, log_q: Floats) -> Floats:
    """D_s(p || q) ``[T, orders]``."""
    sums = [np.logaddexp.reduce((1 - s) * log_q + s * log_p, axis=-1) / (s - 1) for s in RENYI_ORDERS]
    return np.maximum(np.stack(sums, axis=-1), 0.0)


def _rank(log_pmf: Floats, ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each row's token, 1 the most probable; of equal ones the lowest id comes first."""
    log_mass = np.take_along_axis(log_pmf, ids[:, None], axis=1)
    before = (log_pmf > log_mass) | ((log_pmf == log_mass) & (np.arange(log_pmf.shape[1]) < ids[:, None]))
    return 1 + before.sum(axis=1)
