"""Candidates at one position, judged by coins or compared with a sampled output (A1, A4, R3, R5, R7, Y5, Y6)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulations.draws import Alias, Counts, Floats, Words, alias, token_of, uniform
from simulations.models.pairs import checked_stream, one_pair, whole_number
from spectheory.errors import SettingError, ShapeError
from spectheory.kernels.compiling import compiled, compiled_in_any_order

# Candidates that are judged by coins one after the other


def judged_in_turn(
    accepted: Floats, scaled: Floats, draft: Floats, candidates: int, left: Floats, trials: int, state: Words
) -> Counts:
    """Count ranks and outputs of i.i.d. candidates x, each accepted if u scaled_x < accepted_x, u a uniform.

    After the last rejection the output is drawn from the weights `left`; if there are none, rounding alone rejected the
    last candidate, and it is accepted.

    Returns array ``[candidates + 1, V]`` of int: entry ``[r - 1, x]`` counts trials whose candidate r was the output x;
    the last row those that accepted none.
    """
    rows = np.tile(accepted, (candidates, 1))
    if not left.any():
        rows[-1], left = np.maximum(accepted, scaled), accepted
    counts = np.zeros((candidates + 1, draft.size), dtype=np.int64)
    _in_turn(rows, scaled, alias(draft), alias(left), trials, counts, state)
    return counts


@compiled
def _in_turn(
    accepted: Floats, scaled: Floats, table: Alias, last: Alias, trials: int, counts: Counts, state: Words
) -> None:
    most = counts.shape[0] - 1
    for _ in range(trials):
        rank, token = 0, -1
        while rank < most:
            token = token_of(table, state)
            if uniform(state) * scaled[token] < accepted[rank, token]:
                break
            rank += 1
        if rank == most:
            token = token_of(last, state)
        counts[rank, token] += 1


# One draft token, and the draft's top k

RULES = ("token", "independent", "argmax", "greedy")
"""What decides one draft token."""


def single_draft(target: Any, draft: Any, rule: str, trials: int, *, state: Words) -> Counts:
    r"""Count accepted and rejected drafts by output (A1, A4; ``leviathan2023``, ``chen2023``).

    ``token``: the draft x ~ q is accepted with probability :math:`\min(1, p_x/q_x)`, else a token is recovered from
    :math:`\mathrm{norm}(p - q)_+`; a rejection that leaves nothing of the target is rounding alone, and accepts.
    ``independent``: draft ~ q and output ~ p are drawn apart and accepted if equal. ``argmax``: the draft is q's first
    choice, the output ~ p. ``greedy``: both are first choices, the lowest index where two are equal.

    Returns array ``[2, V]`` of int: trials by output: row 0 rejected drafts, row 1 accepted ones. Runs add up.

    Examples
    --------
    >>> from simulations.draws import words
    >>> single_draft([0.5, 0.5], [1.0, 0.0], "token", 1000, state=words(1)).tolist()
    [[0, 487], [513, 0]]
    """
    runs = whole_number("trials", trials)
    p, q = one_pair(target, draft)
    if rule not in RULES:
        raise SettingError(f"the rule is {rule!r}", limit=f"there are {', '.join(RULES)}", remedy="name one")
    checked_stream(state)
    if rule == "token":
        return judged_in_turn(p, q, q, 1, np.maximum(p - q, 0.0), runs, state)[::-1]
    counts = np.zeros((2, p.size), dtype=np.int64)
    drafted = -1 if rule == "independent" else int(np.argmax(q))
    output = int(np.argmax(p)) if rule == "greedy" else -1
    _matched(alias(q), drafted, alias(p), output, runs, counts, state)
    return counts


def top_k_match(target: Any, draft: Any, max_rank: int, trials: int, *, state: Words) -> Counts:
    """Count the place of a sampled output among the draft's most probable tokens (R7; ties: the lowest index first).

    Returns array ``[max_rank + 1, V]`` of int: entry ``[r - 1, x]`` counts trials whose candidate r was the output x;
    the last row those without any.

    Examples
    --------
    >>> from simulations.draws import words
    >>> top_k_match([0.5, 0.5], [0.2, 0.8], 1, 1000, state=words(1)).tolist()
    [[0, 491], [509, 0]]
    """
    ranks, runs = whole_number("max_rank", max_rank), whole_number("trials", trials)
    p, q = one_pair(target, draft)
    counts = np.zeros((ranks + 1, p.size), dtype=np.int64)
    candidates = np.argsort(-q, kind="stable")[:ranks]
    _listed(alias(p), candidates, runs, counts, checked_stream(state))
    return counts


@compiled
def _matched(
    drafts: Alias, drafted: int, outputs: Alias, output: int, trials: int, counts: Counts, state: Words
) -> None:
    """Compare draft and output; either is the one given, or sampled if that is below 0."""
    for _ in range(trials):
        x = drafted if drafted >= 0 else token_of(drafts, state)
        y = output if output >= 0 else token_of(outputs, state)
        counts[1 if x == y else 0, y] += 1


@compiled
def _listed(outputs: Alias, candidates: Counts, trials: int, counts: Counts, state: Words) -> None:
    for _ in range(trials):
        output, place = token_of(outputs, state), 0
        while place < candidates.size and candidates[place] != output:
            place += 1
        counts[place if place < candidates.size else counts.shape[0] - 1, output] += 1


# Over-acceptance: fewer rejections, paid for in bias (yin2024)

RECOVERIES = ("optimal", "target")
_ROUNDING = 8 * 2.0**-52
"""An acceptance comes from a few operations, so it may miss its limits by a few units of its precision."""


def biased_verification(
    target: Any, draft: Any, accept: Any, trials: int, *, state: Words, recovery: str = "optimal"
) -> Counts:
    r"""Count the outputs of token verification that accepts more than it may (Y5, Y6; ``yin2024``).

    A draft x ~ q is accepted with probability :math:`b_x \ge \min(1, p_x/q_x)`; after a rejection the output is
    recovered from :math:`\mathrm{norm}(p - q)_+` ("optimal", yin2024's OPT) or from p itself ("target", UNO).

    - ``accept``, ``[V]``: b, the probability that a drafted token is accepted, from min(1, p/q) to 1; at least 0 where
      q = 0.

    Returns array ``[2, V]`` of int: trials by output, accepted in row 0 and recovered in row 1. Runs add up.

    Examples
    --------
    >>> from simulations.draws import words
    >>> biased_verification([0.5, 0.5], [1.0, 0.0], [0.75, 1.0], 1000, state=words(1)).tolist()
    [[766, 0], [0, 234]]
    """
    runs = whole_number("trials", trials)
    p, q = one_pair(target, draft)
    b = _checked_accept(accept, p, q)
    law = _recovery_law(p, q, recovery)
    return judged_in_turn(b, np.ones(p.size), q, 1, law, runs, checked_stream(state))


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


# k-SEQ: i.i.d. candidates, each judged against a target scaled down (sun2023spectr)

HALVINGS = 60
"""Of the bracket of rho: down to the spacing of the floats."""


def kseq(target: Any, draft: Any, k: int, trials: int, *, state: Words) -> Counts:
    r"""Count ranks and outputs of k-SEQ (R5; ``sun2023spectr``).

    Candidates are i.i.d. from q, each accepted with probability :math:`\min(1, p_x/(\rho q_x))` until one is; if none
    of k is, the output is drawn from :math:`\mathrm{norm}(p - \rho q)_+`. The factor rho is the one in [1, k] at which
    what all candidates leave, :math:`(1-\beta)^k` with :math:`1-\beta = \sum_x (q_x - p_x/\rho)_+`, is what is to be
    recovered, :math:`\sum_x (p_x - \rho q_x)_+`: the algorithm itself solves for it, here by bisection.

    Returns array ``[k + 1, V]`` of int: entry ``[r - 1, x]`` counts trials whose candidate r was the output x; the last
    row those that accepted none.

    Examples
    --------
    >>> from simulations.draws import words
    >>> kseq([0.5, 0.5], [1.0, 0.0], 1, 1000, state=words(1)).tolist()
    [[513, 0], [0, 487]]
    """
    candidates, runs = whole_number("k", k), whole_number("trials", trials)
    p, q = one_pair(target, draft)
    rho = _factor(p, q, candidates)
    left = np.maximum(p - rho * q, 0.0)
    return judged_in_turn(p, rho * q, q, candidates, left, runs, checked_stream(state))


def _factor(p: Floats, q: Floats, k: int) -> float:
    """The least rho that leaves candidates enough to reject, up to one rounding."""
    low, high = 1.0, float(k)
    for _ in range(HALVINGS):
        rho = (low + high) / 2
        rejected, recovered = np.maximum(q - p / rho, 0.0).sum(), np.maximum(p - rho * q, 0.0).sum()
        low, high = (rho, high) if rejected**k < recovered else (low, rho)
    return high


# Recursive rejection: one after another, i.i.d. (miao2024specinfer) or distinct (Sequoia)
#
# With i.i.d. candidates the residuals p^1, p^2, ... do not depend on what is rejected: they are computed once, and a
# candidate costs two table look-ups. Distinct candidates cost O(V) per rejection.

_SMALL = 1e-290
"""Below this a draft's mass would overflow what is divided by it."""
_BLOCK = 64
"""Weights that are passed over by their sum."""


def recursive_rejection(
    target: Any, draft: Any, max_rank: int, trials: int, *, state: Words, replacement: bool = True
) -> Counts:
    r"""Count ranks and outputs of recursive rejection at one position (R3).

    Candidate m ~ q^m is accepted with probability :math:`\min(1, p^m_x/q^m_x)`; after a rejection
    :math:`p^{m+1} = \mathrm{norm}(p^m - q^m)_+`, and without replacement the token leaves q, which is renormalised, or
    uniform over the tokens not yet rejected when nothing is left of it. After `max_rank` rejections the output is drawn
    from the last residual. A rejection that leaves nothing of the target is rounding alone: it accepts.

    Returns array ``[max_rank + 1, V]`` of int: entry ``[r - 1, x]`` counts trials whose candidate r was the output x;
    the last row those that accepted none. Runs add up; row sums are the rank histogram, column sums the output counts.

    Examples
    --------
    >>> from simulations.draws import words
    >>> recursive_rejection([0.5, 0.5], [1.0, 0.0], 1, 1000, state=words(1)).tolist()
    [[513, 0], [0, 487]]
    """
    ranks, runs = whole_number("max_rank", max_rank), whole_number("trials", trials)
    p, q = one_pair(target, draft)
    checked_stream(state)
    counts = np.zeros((ranks + 1, p.size), dtype=np.int64)
    if replacement:
        left = _residuals(p, q, ranks)
        _in_turn(left, q, alias(q), alias(left[ranks]), runs, counts, state)
    else:
        _distinct_trials(p, q, alias(q), runs, counts, state)
    return counts


def _residuals(p: Floats, q: Floats, rejections: int) -> Floats:
    """What is left of the target after 0, 1, ... rejections, each row a pmf, ``[rejections + 1, V]``."""
    rows = np.empty((rejections + 1, p.size))
    rows[0] = p
    for m in range(rejections):
        left = np.maximum(rows[m] - q, 0.0)
        mass = left.sum()
        if mass == 0:  # candidate m + 1 is accepted whatever the coin; no later row is read
            rows[m] = np.maximum(rows[m], q)
            rows[m + 1 :] = q
            break
        rows[m + 1] = left / mass
    return rows


@compiled
def _distinct_trials(p: Floats, q: Floats, table: Alias, trials: int, counts: Counts, state: Words) -> None:
    most = counts.shape[0] - 1
    left, rest, gone = np.empty(p.size), np.empty(p.size), np.zeros(p.size, np.bool_)
    for _ in range(trials):
        token, rank = token_of(table, state), 0
        accepted = uniform(state) * q[token] < p[token]
        mass = total = 1.0
        while not accepted:
            if rank == 0:
                left[:], rest[:] = p, q
            mass, total = _reject(left, rest, mass / total, token)
            if mass == 0.0:
                break
            gone[token] = True
            if total < _SMALL:
                total = _refilled(rest, total, gone)
            rank += 1
            if rank == most:
                token = _inverted(left, uniform(state) * mass)
                break
            token = _inverted(rest, uniform(state) * total)
            accepted = uniform(state) * (rest[token] / total) < left[token] / mass
        if rank > 0:
            gone[:] = False
        counts[rank, token] += 1


@compiled_in_any_order
def _added(a: float, b: float) -> float:
    return a + b


@compiled
def _reject(left: Floats, rest: Floats, scale: float, token: int) -> tuple[float, float]:
    """Turn p and q into (p - scale q)+ and q without the token; the masses of both. Neither is normalised."""
    mass = total = 0.0
    left[token] = rest[token] = 0.0  # it was rejected, so q had more of it than p
    for y in range(left.size):
        left[y] = max(left[y] - scale * rest[y], 0.0)
        mass = _added(mass, left[y])
        total = _added(total, rest[y])
    return mass, total


@compiled
def _refilled(rest: Floats, total: float, gone: NDArray[np.bool_]) -> float:
    """A draft with almost nothing left is scaled up; one with nothing left is uniform over what is not gone."""
    whole = 0.0
    for y in range(rest.size):
        if total > 0.0:
            rest[y] /= total
        else:
            rest[y] = 0.0 if gone[y] else 1.0
        whole += rest[y]
    return whole


@compiled
def _inverted(weights: Floats, height: float) -> int:
    """The first token at which the running sum exceeds the height; the last that has weight if rounding hides it."""
    start, running = 0, 0.0
    while start + _BLOCK < weights.size:
        block = 0.0
        for x in range(start, start + _BLOCK):
            block = _added(block, weights[x])
        if height < running + block:
            break
        running += block
        start += _BLOCK
    last = -1
    for x in range(start, weights.size):
        if weights[x] > 0.0:
            running += weights[x]
            last = x
            if height < running:
                break
    while last < 0 and start > 0:
        start -= 1
        if weights[start] > 0.0:
            last = start
    return last
