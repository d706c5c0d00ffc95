r"""Cost-optimal drafting: the least cost of a decoding that may end each draft early, for small models (B10).

A call costs 1 and a drafted token c. The draft goes on after the run x with a probability R(x) that falls along a run;
block verification against the law of the stopped draft has the masses

.. math:: \mu_0 = 1, \qquad \mu(xz) = \min\bigl(p(z \mid wx)\, \mu(x),\ Q(xz \mid w)\, R(x)\bigr),

the largest of any lossless fresh rule. With V(w) the least cost after the text w and D(w) = V(w) - E V(wz),

.. math:: D(w) = 1 - \max_R \Bigl[\sum_{i \ge 1} \sum_{|x| = i} \mu(x) D(wx) - c \sum_x Q(x \mid w) R(x)\Bigr],

a concave programme at each text, solved backwards over the texts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spectheory.checks import real, whole
from spectheory.distributions import Floats
from spectheory.limits.inputs import pmfs_by_depth

_MOST_TEXTS = 1 << 12
"""Most texts: each call looks at all runs that may follow it."""


def least_decoding_cost(target: Sequence[Any], draft: Sequence[Any], k: int, c: float) -> float:
    """The least expected cost of a text, in target calls, with at most `k` drafts a call at `c` each (B10, exact).

    Of all policies whose calls are lossless and leave the text after them a fresh sample of the target, verify one
    chain drawn from the draft, and decide after each drafted token, by any causal rule, coins and memory, whether to
    draft another. So it is a lower bound on every adaptive length, with any verification. With c = 0 it is block
    verification's expected number of calls (B7).

    `target` and `draft` hold the conditional pmfs of each token of the text, ``[V]``, ``[V, V]``, ``[V, V, V]``, ...:
    the last axis is the next token, the axes before are the tokens before. The text ends with the last of them.

    Raises
    ------
    ShapeError
        If a depth's pmfs are not ``[V] * depth``.
    SettingError
        If the depths differ, there are more than 4,096 texts, k is no whole number above 0, or c is not in [0, inf).

    Examples
    --------
    Drafting half of the time and then accepting always costs 1.55; drafting always 1.6, never 2:

    >>> p, q = np.array([0.5, 0.5]), np.array([1.0, 0.0])
    >>> round(least_decoding_cost([p, [p, p]], [q, [q, q]], k=1, c=0.1), 12)
    1.55
    """
    k = whole("k", k, remedy="count drafts from 1")
    limit, remedy = "must be finite and >= 0", "give a draft pass's time over a target pass's"
    price = real("c", c, lambda cost: 0 <= cost < math.inf, limit=limit, remedy=remedy)
    models = list(pmfs_by_depth(target, draft, _MOST_TEXTS))
    value = np.zeros(models[-1][0].shape)
    drops = {len(models): value}
    for depth in reversed(range(len(models))):
        drops[depth] = np.empty(models[depth][0].shape[:-1])
        for text in np.ndindex(drops[depth].shape):
            drops[depth][text] = 1.0 - np.minimum(*_savings(models, drops, text, 1.0, k, price)).sum()
        value = (models[depth][0] * value).sum(axis=-1) + drops[depth]
    return float(value)


def _savings(
    models: Sequence[tuple[Floats, Floats]],
    drops: Mapping[int, Floats],
    text: tuple[int, ...],
    drawn: float,
    k: int,
    price: float,
) -> tuple[Floats, Floats]:
    """What a call saves after a text that ends with its drafts so far, with at most k more: A and B of its terms.

    With m the mass of the drafts and r the probability that they were drafted, given that they are the ones drawn, it
    is the sum of terms min(A m, B r), if the best share of r goes on. `drawn` is the drafts' own probability.
    """
    if not k or len(text) == len(models):
        return np.empty(0), np.empty(0)
    p, q = (each[text] for each in models[len(text)])
    of_token = []
    for z, (by_target, by_draft) in enumerate(zip(p.tolist(), (drawn * q).tolist(), strict=True)):
        gains, slopes = _savings(models, drops, (*text, z), by_draft, k - 1, price)
        gains = np.append(gains, drops[len(text) + 1][*text, z])
        of_token.append((gains * by_target, np.minimum(gains * by_draft, np.append(slopes, np.inf))))
    gains, slopes = (np.concatenate(each) for each in zip(*of_token, strict=True))
    return _paid(gains[slopes > 0], slopes[slopes > 0], price * drawn)


def _paid(gains: Floats, slopes: Floats, owed: float) -> tuple[Floats, Floats]:
    """The terms when r costs so much: it is taken from those that need the largest r/m first."""
    order = np.argsort(-gains / slopes, kind="stable")
    kept = np.diff(np.maximum(slopes[order].cumsum() - owed, 0.0), prepend=0.0)
    return gains[order] * (kept / slopes[order]), kept
