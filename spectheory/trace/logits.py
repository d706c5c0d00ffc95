"""Columns of positions from both models' logits, in double precision: the definitions, for arrays of any library."""

from __future__ import annotations

import math
from collections.abc import Mapping
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


_FALSE_ALARM = 1e-6
"""Largest probability with which texts of the target are refused as another sampler's."""
_OTHERS = {"a sharper target": 2.0, "a flatter target": 0.5}
"""Powers of the target's pmf, as other samplers."""
_SUMS_TO_ONE = 1e-6


def check_sampled(log_target: Floats, others: Mapping[str, Floats]) -> None:
    r"""Refuse texts that the target did not sample, by the log-probabilities ``[N]`` of their tokens.

    With r the pmf of another sampler, :math:`P(\prod r/p \geq a) \leq 1/a` for texts of the target (Markov). They are
    refused with probability :data:`_FALSE_ALARM` at most, which the `others` share.
    """
    for name, logs in others.items():
        if (gain := float(np.sum(logs - log_target))) > math.log(len(others) / _FALSE_ALARM):
            raise TextError(
                f"{name} explains the texts better than the target, by {gain:.0f} nats",
                limit=f"texts that the target sampled do so with probability below {_FALSE_ALARM:g}",
                remedy="exchange target and draft, or check that row t is what token t was drawn from",
            )


def log_of_others(target: Any, tokens: Any, sampling: Sampling) -> dict[str, Floats]:
    """Log-probabilities ``[T]`` of a text's tokens under powers of the target's pmfs, by name."""
    ids, size = as_integers(tokens, "tokens", TextError), max(1, ENTRIES // target.shape[1])
    parts: dict[str, list[Floats]] = {name: [] for name in _OTHERS}
    for block in (slice(start, start + size) for start in range(0, len(ids), size)):
        log_p = sampling.log_pmf(as_numpy(target[block], "logits", TextError))
        for name, power in _OTHERS.items():
            own = np.take_along_axis(power * log_p, ids[block, None], axis=1)[:, 0]
            parts[name].append(own - np.logaddexp.reduce(power * log_p, axis=1))
    return {name: np.concatenate(each) for name, each in parts.items()}


def columns_of_logits(target: Any, draft: Any, tokens: Any, sampling: Sampling, name: str) -> Columns:
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
        if (p >= 0).all() and (abs(p.sum(axis=1) - 1) < _SUMS_TO_ONE).all():
            raise TextError(
                f"{name} has rows that are >= 0 and sum to 1",
                limit="these are probabilities, and logits are asked for",
                remedy="pass logits, or logarithms of these",
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
