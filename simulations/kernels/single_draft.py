"""One draft token under the rules engines use, and the draft's top k matched against a sampled output, as written."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulations.draws.alias import Tokens, alias, drawn
from simulations.draws.streams import Words, uniform
from simulations.models.chains import checked_stream
from simulations.models.positions import Floats, one_pair, whole_number
from spectheory.errors import SettingError
from spectheory.kernels.compiling import compiled

Counts = NDArray[np.int64]

RULES = ("token", "independent", "argmax", "greedy")
"""What decides one draft token."""


def single_draft(target: Any, draft: Any, rule: str, trials: int, *, state: Words) -> Counts:
    r"""Count accepted and rejected drafts by output (A1, A4; ``leviathan2023``, ``chen2023``).

    ``token``: the draft x ~ q is accepted with probability :math:`\min(1, p_x/q_x)`, else a token is recovered from
    :math:`\mathrm{norm}(p - q)_+`; a rejection that leaves nothing of the target is rounding alone, and accepts.
    ``independent``: draft ~ q and output ~ p are drawn apart and accepted if equal. ``argmax``: the draft is q's first
    choice, the output ~ p. ``greedy``: both are first choices, the lowest index where two are equal.

    Draws of a trial, each a uniform into an alias table: the draft if it is sampled; then for ``token`` the coin and,
    after a rejection, the recovered token; else the output if it is sampled.

    Returns array ``[2, V]`` of int: trials by output: row 0 rejected drafts, row 1 accepted ones. Runs add up.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> single_draft([0.5, 0.5], [1.0, 0.0], "token", 1000, state=words(1)).tolist()
    [[0, 487], [513, 0]]
    """
    runs = whole_number("trials", trials)
    p, q = one_pair(target, draft)
    if rule not in RULES:
        raise SettingError(f"the rule is {rule!r}", limit=f"there are {', '.join(RULES)}", remedy="name one")
    counts, stream = np.zeros((2, p.size), dtype=np.int64), checked_stream(state)
    if rule == "token":
        left = np.maximum(p - q, 0.0)
        some = bool(left.any())
        _judged(p, q, *alias(q), *alias(left if some else p), some, runs, counts, stream)
    else:
        drafted = -1 if rule == "independent" else int(np.argmax(q))
        output = int(np.argmax(p)) if rule == "greedy" else -1
        _matched(*alias(q), drafted, *alias(p), output, runs, counts, stream)
    return counts


def top_k_match(target: Any, draft: Any, max_rank: int, trials: int, *, state: Words) -> Counts:
    """Count the place of a sampled output among the draft's most probable tokens (R7; ties: the lowest index first).

    Draws of a trial: one uniform, into the target's alias table.

    Returns array ``[max_rank + 1, V]`` of int: entry ``[r - 1, x]`` counts trials whose candidate r was the output x;
    the last row those without any.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> top_k_match([0.5, 0.5], [0.2, 0.8], 1, 1000, state=words(1)).tolist()
    [[0, 491], [509, 0]]
    """
    ranks, runs = whole_number("max_rank", max_rank), whole_number("trials", trials)
    p, q = one_pair(target, draft)
    counts = np.zeros((ranks + 1, p.size), dtype=np.int64)
    candidates = np.argsort(-q, kind="stable")[:ranks]
    _listed(*alias(p), candidates, runs, counts, checked_stream(state))
    return counts


@compiled
def _judged(
    p: Floats, q: Floats, keep: Floats, other: Tokens, left_keep: Floats, left_other: Tokens, some: bool,
    trials: int, counts: Counts, state: Words,
) -> None:  # fmt: skip
    for _ in range(trials):
        token = drawn(keep, other, uniform(state))
        if uniform(state) * q[token] < p[token] or not some:
            counts[1, token] += 1
        else:
            counts[0, drawn(left_keep, left_other, uniform(state))] += 1


@compiled
def _matched(
    keep: Floats, other: Tokens, drafted: int, p_keep: Floats, p_other: Tokens, output: int,
    trials: int, counts: Counts, state: Words,
) -> None:  # fmt: skip
    """Compare draft and output; either is the one given, or sampled if that is below 0."""
    for _ in range(trials):
        x = drafted if drafted >= 0 else drawn(keep, other, uniform(state))
        y = output if output >= 0 else drawn(p_keep, p_other, uniform(state))
        counts[1 if x == y else 0, y] += 1


@compiled
def _listed(keep: Floats, other: Tokens, candidates: Counts, trials: int, counts: Counts, state: Words) -> None:
    for _ in range(trials):
        output, place = drawn(keep, other, uniform(state)), 0
        while place < candidates.size and candidates[place] != output:
            place += 1
        counts[place if place < candidates.size else counts.shape[0] - 1, output] += 1
