"""A batch of M drafts, each to the horizon (yin2024, Algorithm 4), on Markov chains.

The first position of a round tries the first tokens of the drafts one after the other, the target replaced by its
residual after each rejection; the rest of the round verifies the accepted draft alone. A draft that is not followed is
never looked at again, so only the tokens that are tried are drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simulations.draws import Alias, Counts, Floats, Tokens, Words, alias, alias_draw, token_of, uniform
from simulations.models.pairs import RejectionCounts, checked_chains, checked_stream, whole_number
from spectheory.kernels.compiling import compiled


def residuals(target: Floats, draft: Floats, drafts: int) -> Floats:
    """p^1 = p, p^{m+1} = norm (p^m - q)+ up to p^{M+1}, as ``[..., M + 1, V]``; one that is never used repeats p^m."""
    pmfs = [target]
    for _ in range(drafts):
        excess = np.maximum(pmfs[-1] - draft, 0.0)
        total = excess.sum(axis=-1, keepdims=True)
        pmfs.append(np.where(total > 0, excess / np.where(total > 0, total, 1.0), pmfs[-1]))
    return np.stack(pmfs, axis=-2)


def batch_rejections(
    target: Any, draft: Any, initial: Any, *, length: int, drafts: int, texts: int, state: Words, printed: bool = False
) -> RejectionCounts:
    """Rejections along texts decoded with a batch of M i.i.d. drafts: positions whose token was recovered.

    *Intended* (the default): a round first tries the first tokens of all M drafts. *As printed* in yin2024's
    Algorithm 4 the round ends at the first rejected first token, so that drafts 2 to M are never tried. A text takes
    1 + (rejections before its last token) calls; there is no bonus token.

    Examples
    --------
    >>> from simulations.draws import words
    >>> fair, sure = np.full((2, 2), 0.5), np.array([[1.0, 0.0], [1.0, 0.0]])
    >>> batch_rejections(fair, sure, [1, 0], length=3, drafts=4, texts=8, state=words(1)).texts.sum()
    np.int64(8)
    """
    tried, runs = whole_number("drafts", drafts), whole_number("texts", texts)
    chains = checked_chains(target, draft, initial, length=whole_number("length", length))
    counts = RejectionCounts(np.zeros(length, np.int64), np.zeros(length + 1, np.int64))
    _batch_rejections(
        residuals(chains.target, chains.draft, tried),
        chains.draft,
        alias(chains.draft),
        alias(chains.initial),
        checked_stream(state),
        1 if printed else tried,
        runs,
        counts.positions,
        counts.texts,
    )
    return counts


@compiled
def _inverted(pmf: Floats, u: float) -> int:
    """The first token at which the sums of the pmf pass u times their total."""
    share, passed, token = u * pmf.sum(), 0.0, 0
    for x in range(pmf.size):
        if pmf[x] > 0.0:
            token = x
            passed += pmf[x]
            if passed > share:
                break
    return token


@compiled
def _position(left: Floats, q: Floats, keep: Floats, other: Tokens, tries: int, state: Words) -> tuple[int, int]:
    """The output token and whether it was recovered, after at most `tries` drafts."""
    for m in range(tries):
        token = alias_draw(keep, other, uniform(state))
        if uniform(state) * q[token] < left[m, token]:
            return token, 0
    return _inverted(left[tries], uniform(state)), 1


@compiled
def _batch_rejections(
    left: Floats,
    q: Floats,
    table: Alias,
    start: Alias,
    state: Words,
    most: int,
    texts: int,
    positions: Counts,
    totals: Counts,
) -> None:
    for _ in range(texts):
        last, recovered, rejections = token_of(start, state), 1, 0
        for n in range(positions.size):
            at = n if q.shape[0] > 1 else 0
            tries, keep, other = most if recovered else 1, table.keep[at, last], table.other[at, last]
            last, recovered = _position(left[at, last], q[at, last], keep, other, tries, state)
            positions[n] += recovered
            rejections += recovered
        totals[rejections] += 1
