"""Y1-Y4: expected rejections along a text, exactly, on Markov chains (yin2024, with P the target and Q the draft).

`target` and `draft` are row-stochastic arrays ``[T, V, V]``, or ``[V, V]`` for every step: entry ``[n, x, y]`` is the
probability of y after x at step n. `initial` ``[V]`` is the pmf of the token before the first step, which is not
counted. `horizon` is T, needed where neither array has a step axis. The cost is the number of *rejections* among T
tokens; each round drafts to the horizon. A text takes 1 + (rejections before its last token) target calls.

Y2: no unbiased algorithm rejects less than Y1 **in the class** that accepts the drafted token n with a probability that
depends only on that token and the tokens before it, and otherwise samples a recovery law. Block verification (its
decision looks at later drafts) and the batch of several drafts (Y3) are outside the class and reject less.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from spectheory.checks import whole
from spectheory.distributions import (
    Array,
    as_floats,
    as_integers,
    as_numpy,
    first_true,
    like,
    sum_tolerance,
    validate_pair,
    validate_pmf,
)
from spectheory.errors import PmfError, SettingError, ShapeError, TextError
from spectheory.limits.inputs import checked_capacity

MOST_STEPS = 2**24
"""Longest horizon."""


def expected_rejections(target: Any, draft: Any, initial: Any, *, horizon: int | None = None) -> Array:
    r"""Expected rejections of token verification over T tokens, the fewest of its class (Y1, Y2; exact; ``yin2024``).

    .. math:: E[N_{rej}] = \sum_{n=1}^{T} E_{x_{<n} \sim P}\, TV(P_n, Q_n)(x_{<n})

    Assumes drafts up to the horizon T and Markov chains, whose step n may differ from step n + 1. No smaller number is
    possible without bias if each draft is accepted by its own token and prefix alone (Y2); block verification and
    :func:`batch_expected_rejections` are outside that class and reject less. O(T V²).

    Examples
    --------
    >>> float(expected_rejections([[0.5, 0.5], [0.5, 0.5]], [[1, 0], [0.5, 0.5]], [1, 0], horizon=3))
    1.0
    """
    return batch_expected_rejections(target, draft, initial, drafts=1, horizon=horizon)


def batch_expected_rejections(
    target: Any, draft: Any, initial: Any, *, drafts: float, horizon: int | None = None
) -> Array:
    r"""Expected rejections over T tokens with a batch of `drafts` = M i.i.d. drafts (Y3, exact; ``yin2024``).

    The first position of a round tries the first tokens of all M drafts, by recursive rejection; the rest of the round
    follows the accepted draft by token verification. The output law is the target's. With
    :math:`p^1 = P_n`, :math:`p^{m+1} = \mathrm{norm}(p^m - q)_+` and f the probability of a prefix at which a round
    starts, :math:`f(\emptyset) = 1`,

    .. math:: E[N_{rej}] = \sum_n E_P TV
        - \sum_n\sum_{x_{<n}} f(x_{<n})\Big[TV(P_n, Q_n) - \prod_{m\le M} TV(p^m, q)\Big].

    On Markov chains f is summed over the prefixes that end in one token: O(T V² M). This is the algorithm that tries
    all M drafts; the paper's Algorithm 4 as printed ends the round at the first rejected first token, and then rejects
    as often as M = 1. Nonincreasing in M, from :func:`expected_rejections` to :func:`batch_limit` (M = ``math.inf``).

    Examples
    --------
    >>> fair, biased = [[0.5, 0.5], [0.5, 0.5]], [[0.75, 0.25], [0.75, 0.25]]
    >>> [float(batch_expected_rejections(fair, biased, [1, 0], drafts=m, horizon=1)) for m in (1, 2, 3)]
    [0.25, 0.1875, 0.140625]
    """
    profile = rejection_profile(target, draft, initial, drafts=drafts, horizon=horizon)
    return array_namespace(profile).sum(profile)


def batch_limit(target: Any, draft: Any, initial: Any, *, horizon: int | None = None) -> Array:
    r"""Expected rejections over T tokens as the batch grows without end, M → ∞ (Y4, exact; ``yin2024``).

    With h = (P_n - Q_n)_+ and, for targets not covered by their draft,
    :math:`o(x_{<n}) = P_n(\mathrm{outside\ supp}\,Q_n)`:

    .. math:: f^\infty(x_{\le n}) = h(x_n)\,[P(x_{<n}) - f^\infty(x_{<n})] + 1[x_n \notin \mathrm{supp}\,Q_n]\,
        P_n(x_n)\, f^\infty(x_{<n}), \qquad E[N_{rej}] = \sum_n E_P TV - E_{f^\infty}(TV - o).

    The paper has the case o = 0. A lower bound on Y3 for every M. With o = 0 it is 0 at T = 1 and positive in general
    for larger T: past its first position a round follows one draft.

    Examples
    --------
    >>> float(batch_limit([[0.5, 0.5], [0.5, 0.5]], [[0.75, 0.25], [0.75, 0.25]], [1, 0], horizon=2))
    0.25
    """
    return batch_expected_rejections(target, draft, initial, drafts=math.inf, horizon=horizon)


def expected_calls(target: Any, draft: Any, initial: Any, *, drafts: float = 1, horizon: int | None = None) -> Array:
    r"""Expected target calls for T tokens, :math:`1 + \sum_{n<T} P(\text{reject at } n)` (Y1, Y3; exact; ``yin2024``).

    Each round of drafts is one call, its M drafts verified together; a rejection at T needs no further call. Tokens per
    call over the text are T over this. Assumptions of :func:`expected_rejections`, or with M > 1 of
    :func:`batch_expected_rejections`.

    Examples
    --------
    >>> float(expected_calls([[0.5, 0.5], [0.5, 0.5]], [[1, 0], [1, 0]], [1, 0], horizon=3))
    2.0
    """
    profile = rejection_profile(target, draft, initial, drafts=drafts, horizon=horizon)
    return 1 + array_namespace(profile).sum(profile[:-1])


def rejection_profile(target: Any, draft: Any, initial: Any, *, drafts: float = 1, horizon: int | None = None) -> Array:
    """Probability ``[T]`` of a rejection at each position, the terms of Y1, Y3 and Y4 (exact; ``yin2024``).

    Arguments as in :func:`batch_expected_rejections`; the sum is the expected number of rejections.

    Examples
    --------
    >>> rejection_profile([[0.5, 0.5], [0.5, 0.5]], [[1, 0], [0.5, 0.5]], [1, 0], horizon=3)
    array([0.5 , 0.25, 0.25])
    """
    if not (isinstance(drafts, float) and drafts == math.inf):
        drafts = checked_capacity(drafts, "drafts")
    p, q, reach, xp = _chains(target, draft, initial, horizon)
    starts = reach  # joint law of the token and that a round starts here, which is after a rejection
    profile = []
    for n in range(p.shape[0]):
        excess = xp.where(p[n, ...] > q[n, ...], p[n, ...] - q[n, ...], xp.zeros_like(p[n, ...]))
        exhausted = _left_after(excess, p[n, ...], q[n, ...], drafts, xp)
        starts = (reach - starts) @ excess + starts @ exhausted
        reach = reach @ p[n, ...]
        profile.append(xp.sum(starts))
    return xp.stack(profile)


def _left_after(excess: Array, p: Array, q: Array, drafts: float, xp: Any) -> Array:
    """Unnormalised recovery law after M rejected drafts, prod_m TV(p^m, q) p^{M+1}; never divided, so never 0/0."""
    if drafts == math.inf:
        return xp.where(q > 0, xp.zeros_like(p), p)
    left = excess
    for _ in range(int(drafts) - 1):
        after = left - xp.sum(left, axis=-1, keepdims=True) * q
        after = xp.where(after > 0, after, xp.zeros_like(after))
        if bool(xp.all(after == left)):
            break
        left = after
    return left


def _chains(target: Any, draft: Any, initial: Any, horizon: int | None) -> tuple[Array, Array, Array, Any]:
    """Both chains as ``[T, V, V]``, the initial pmf, and their namespace, checked."""
    p, q, xp = validate_pair(_stochastic(target, "target"), _stochastic(draft, "draft"))
    steps = [array.shape[0] for array in (p, q) if array.ndim == 3]
    if not steps and horizon is None:
        raise ShapeError(
            "target and draft have no step axis", limit="needs [T, V, V] or a horizon", remedy="pass horizon=T"
        )
    remedy = "give the number of tokens"
    length = max(steps) if horizon is None else whole("horizon", horizon, most=MOST_STEPS, remedy=remedy)
    if any(count not in (1, length) for count in steps):
        raise ShapeError(
            f"horizon is {length} and the chains have {max(steps)} steps",
            limit="must agree",
            remedy="leave horizon out",
        )
    dtype = xp.result_type(p, q)
    first = like(validate_pmf(initial, "initial"), xp.astype(p, dtype), xp)
    if tuple(first.shape) != (p.shape[-1],):
        raise ShapeError(
            f"initial has shape {tuple(first.shape)}",
            limit=f"must be [{p.shape[-1]}], the tokens of the chains",
            remedy="give the pmf of the token before the first step",
        )
    shape = (length, *p.shape[-2:])
    p, q = (xp.broadcast_to(xp.astype(array, dtype), shape) for array in (p, q))
    return p, q, first, xp


def _stochastic(values: Any, name: str) -> Array:
    """Transition matrices, each row a pmf; otherwise the error names the worst row."""
    rows = as_floats(values, name)
    xp = array_namespace(rows)
    if rows.ndim not in (2, 3) or rows.shape[-1] != rows.shape[-2] or 0 in rows.shape:
        raise ShapeError(
            f"{name} has shape {tuple(rows.shape)}",
            limit="must be [T, V, V], or [V, V] for every step",
            remedy="row x is the pmf of the token after x",
        )
    if bool(xp.all(rows >= 0)):  # otherwise validate_pmf names the entry
        total = xp.sum(rows, axis=-1)
        off, tolerance = xp.abs(total - 1), sum_tolerance(rows.dtype, xp)
        if bool(xp.any(off > tolerance)):
            worst = int(xp.argmax(xp.reshape(off, (-1,))))
            *step, row = (int(i) for i in np.unravel_index(worst, tuple(total.shape)))
            at = "".join(f"[{n}]" for n in step)
            sums = float(xp.reshape(total, (-1,))[worst])
            raise PmfError(
                f"row {row} of {name}{at} sums to {sums:.10g}, off by {sums - 1:.3g}",
                limit=f"must sum to 1 within {tolerance:.1e}",
                remedy="normalise the rows first",
            )
    return rows


def rejections_of_text(
    total_variation: Any, lengths: NDArray[np.int64] | list[int] | None = None
) -> NDArray[np.float64]:
    r"""Rejections of token verification from measured texts, :math:`\sum_n TV(P_n, Q_n)` along each (Y1, an estimate).

    `total_variation` ``[N]`` has one value per token, one text after the other; `lengths` ``[texts]`` are their tokens
    (None: one text). Over texts *sampled from the target* the mean of the result ``[texts]`` is the expected number of
    rejections for every order of dependence: no Markov chain is assumed. For given texts it is no prediction: there the
    expected rejections are :math:`\sum_n 1 - \min(1, q_n(x_n)/p_n(x_n))`. Assumes a draft at every position.

    Examples
    --------
    >>> rejections_of_text([0.5, 0.25, 0.5], [2, 1])
    array([0.75, 0.5 ])
    """
    values = as_numpy(_validate_distances(total_variation))
    counts = as_integers([values.size] if lengths is None else lengths, "lengths", TextError)
    if values.ndim != 1 or counts.ndim != 1 or counts.min(initial=0) < 0 or counts.sum() != values.size:
        raise TextError(
            f"total_variation has shape {values.shape} for texts of {counts.sum()} tokens",
            limit="needs one value per token",
            remedy="give the number of tokens of each text",
        )
    text_of_row = np.repeat(np.arange(counts.size), counts)
    return np.bincount(text_of_row, weights=values, minlength=counts.size).astype(np.float64)


def _validate_distances(total_variation: Any) -> Array:
    """Check total variation distances, as a floating array; single precision may exceed 1 by its tolerance."""
    values = as_floats(total_variation, "total_variation", SettingError)
    xp = array_namespace(values)
    wrong = ~((values >= 0) & (values <= 1 + sum_tolerance(xp.float32, xp)))
    if bool(xp.any(wrong)):
        at = first_true(wrong, xp)
        raise SettingError(
            f"total_variation[{', '.join(map(str, at))}] is {float(values[at]):g}",
            limit="must be in [0, 1]",
            remedy="TV is half the L1 distance",
        )
    return values
