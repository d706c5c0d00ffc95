"""Over-acceptance at one position, compiled: fewer rejections, paid for in bias (Y5, Y6; yin2024)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulations.draws.alias import Tokens, alias, drawn
from simulations.draws.streams import Words, uniform
from simulations.models.chains import checked_stream
from simulations.models.positions import Floats, one_pair, whole_number
from spectheory.errors import SettingError, ShapeError
from spectheory.kernels.compiling import compiled

Counts = NDArray[np.int64]

RECOVERIES = ("optimal", "target")
_ROUNDING = 8 * 2.0**-52
"""An acceptance comes from a few operations, so it may miss its limits by a few units of its precision."""


def biased_verification(
    target: Any, draft: Any, accept: Any, trials: int, *, state: Words, recovery: str = "optimal"
) -> Counts:
    r"""Count the outputs of token verification that accepts more than it may (Y5, Y6; ``yin2024``).

    A draft x ~ q is accepted with probability :math:`b_x \ge \min(1, p_x/q_x)`; after a rejection the output is
    recovered from :math:`\mathrm{norm}(p - q)_+` ("optimal", yin2024's OPT) or from p itself ("target", UNO).

    Draws of a trial, in order: one uniform for the draft (from q's alias table) and one for the coin; after a rejection
    one for the recovered token (from the alias table of the recovery law).

    - ``accept``, ``[V]``: b, the probability that a drafted token is accepted, from min(1, p/q) to 1; at least 0 where
      q = 0.

    Returns array ``[2, V]`` of int: trials by output, accepted in row 0 and recovered in row 1. Runs add up.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> biased_verification([0.5, 0.5], [1.0, 0.0], [0.75, 1.0], 1000, state=words(1)).tolist()
    [[766, 0], [0, 234]]
    """
    runs = whole_number("trials", trials)
    p, q = one_pair(target, draft)
    b = _checked_accept(accept, p, q)
    drafts, recovered = alias(q), alias(_recovery_law(p, q, recovery))
    counts = np.zeros((2, p.size), dtype=np.int64)
    _trials(b, drafts.keep, drafts.other, recovered.keep, recovered.other, runs, counts, checked_stream(state))
    return counts


def _recovery_law(p: Floats, q: Floats, recovery: str) -> Floats:
    if recovery not in RECOVERIES:
        raise SettingError(
            f"recovery is {recovery!r}", limit=f"must be one of {', '.join(RECOVERIES)}", remedy="name one"
        )
    excess = np.maximum(p - q, 0.0)
    total = excess.sum()
    return excess / total if recovery == "optimal" and total > 0 else p


def _checked_accept(accept: Any, p: Floats, q: Floats) -> Floats:
    b = np.ascontiguousarray(accept, dtype=np.float64)
    if b.shape != p.shape:
        raise ShapeError(
            f"accept has shape {b.shape}", limit=f"must be {p.shape}", remedy="give one probability per token"
        )
    least = np.minimum(p, q) / np.where(q > 0, q, 1.0)
    wrong = ~((b >= least * (1 - _ROUNDING)) & (b <= 1 + _ROUNDING))
    if wrong.any():
        x = int(np.argmax(wrong))
        raise SettingError(
            f"accept[{x}] is {b[x]:.6g}",
            limit=f"must be in [min(1, p/q), 1] = [{least[x]:.6g}, 1]",
            remedy="the lower end is unbiased; below it a rule only rejects more",
        )
    return b


@compiled
def _trials(
    b: Floats, keep: Floats, other: Tokens, recovery_keep: Floats, recovery_other: Tokens,
    trials: int, counts: Counts, state: Words,
) -> None:  # fmt: skip
    for _ in range(trials):
        token, rejected = drawn(keep, other, uniform(state)), 0
        if uniform(state) >= b[token]:
            token, rejected = drawn(recovery_keep, recovery_other, uniform(state)), 1
        counts[rejected, token] += 1
