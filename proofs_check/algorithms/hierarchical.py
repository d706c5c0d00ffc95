"""Hierarchical speculative decoding (zhou2026) in fractions: both algorithms as printed, and the public code's mixture.

With joint probabilities P and Q of the first t tokens and r = P/Q, the drafts are scanned from the last one back: depth
t is accepted with probability h_t. A *branch* is a prefix with all its next tokens; its deficit is sum_x (P - Q)+ over
them, its excess sum_x (Q - P)+. Nothing here uses the recursion of block verification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

from proofs_check.algorithms.enumeration import (
    CallLaw,
    Model,
    Pmf,
    Prefix,
    TextLaw,
    add_outputs,
    draft_paths,
    normalised,
)
from proofs_check.statement.fractions import Fraction

ONE = Fraction(1)


def hierarchical(target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
    """Algorithm 2: ratios capped at the largest prefix ratio, one token resampled in the branch (eq. 16 to 20)."""
    return _capped_call(_capped, target, draft, prefix, k)


def hierarchical_published(target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
    """The public code: capped below the last draft, which is accepted with min(1, r), uncapped (as in Algorithm 1)."""
    return _capped_call(_ratio, target, draft, prefix, k)


def _capped_call(
    last_ratio: Callable[[Model, Model, Prefix, Prefix], Fraction], target: Model, draft: Model, prefix: Prefix, k: int
) -> CallLaw:
    law: CallLaw = {}
    for path, weight in draft_paths(draft, prefix, k):
        last = min(ONE, last_ratio(target, draft, prefix, path))
        for depth, share in scanned(target, draft, prefix, path, last, capped=True):
            after = prefix + path[:depth]
            pmf = target(after) if depth == k else _resampled(target, draft, prefix, path[:depth], capped=True)
            add_outputs(law, path[:depth], pmf, weight * share)
    return law


def hierarchical_naive(target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
    """Algorithm 1: nothing capped, every token after the accepted ones resampled until there are k.

    A call has k tokens, k + 1 after full acceptance; `passes` counts the target's forward passes that it needs.
    """
    law: CallLaw = {}
    for path, weight in draft_paths(draft, prefix, k):
        last = min(ONE, _ratio(target, draft, prefix, path))
        for depth, share in scanned(target, draft, prefix, path, last, capped=False):
            if depth == k:
                add_outputs(law, path, target(prefix + path), weight * share)
                continue
            ends = [(path[:depth], weight * share)]
            for _ in range(k - depth):
                ends = [
                    ((*tokens, token), mass * part)
                    for tokens, mass in ends
                    for token, part in enumerate(_resampled(target, draft, prefix, tokens, capped=False))
                    if part > 0
                ]
            for tokens, mass in ends:
                law[tokens, depth] = law.get((tokens, depth), Fraction(0)) + mass
    return law


def passes(accepted: int, k: int) -> int:
    """Target passes of a call of Algorithm 1: one for the drafts, one for each resampled token after the first."""
    return 1 + max(k - accepted - 1, 0)


def joint(model: Model, prefix: Prefix, path: Prefix) -> Fraction:
    """The probability of a run of tokens."""
    return prod((model(prefix + path[:i])[token] for i, token in enumerate(path)), start=ONE)


def _ratio(target: Model, draft: Model, prefix: Prefix, path: Prefix) -> Fraction:
    """The likelihood ratio P/Q of a drafted run."""
    return joint(target, prefix, path) / joint(draft, prefix, path)


def _cap(target: Model, draft: Model, prefix: Prefix, path: Prefix) -> Fraction:
    """The largest ratio of the runs that a drafted run begins with, itself among them, 1 if none is above it."""
    return max([ONE, *(_ratio(target, draft, prefix, path[:i]) for i in range(1, len(path) + 1))])


def _capped(target: Model, draft: Model, prefix: Prefix, path: Prefix) -> Fraction:
    """The ratio r* from the shorter run of the largest ratio on, if that is above 1 (Definitions 4 and 5)."""
    return _ratio(target, draft, prefix, path) / _cap(target, draft, prefix, path[:-1])


def branch(target: Model, draft: Model, prefix: Prefix, path: Prefix, *, capped: bool) -> Pmf:
    """P - Q of every next token; capped: (r* - 1) Q."""
    p, q = target(prefix + path), draft(prefix + path)
    P, Q = joint(target, prefix, path), joint(draft, prefix, path)
    if capped:
        P /= _cap(target, draft, prefix, path)
    return tuple(P * a - Q * b for a, b in zip(p, q, strict=True))


def _accepted(branch: Pmf) -> Fraction:
    """h_t = deficit / max(deficit, excess); where both are 0 a deeper draft is accepted surely, so any value serves."""
    deficit = sum((max(d, Fraction(0)) for d in branch), Fraction(0))
    excess = sum((max(-d, Fraction(0)) for d in branch), Fraction(0))
    return deficit / max(deficit, excess) if deficit or excess else Fraction(0)


def scanned(
    target: Model, draft: Model, prefix: Prefix, path: Prefix, last: Fraction, *, capped: bool
) -> Iterator[tuple[int, Fraction]]:
    """Accepted lengths with their probability, from the last draft back; nothing is left to accept at 0."""
    left = ONE
    for depth in range(len(path), -1, -1):
        share = last if depth == len(path) else ONE
        if 0 < depth < len(path):
            share = _accepted(branch(target, draft, prefix, path[:depth], capped=capped))
        if left * share > 0:
            yield depth, left * share
        left *= 1 - share


def _resampled(target: Model, draft: Model, prefix: Prefix, path: Prefix, *, capped: bool) -> Pmf:
    """The law of the token resampled after a run: in proportion to (P - Q)+ in its branch."""
    return normalised(tuple(max(d, Fraction(0)) for d in branch(target, draft, prefix, path, capped=capped)))


# Greedy block verification (sun2024block) in fractions: calls that hand the rest of a draft's block on to the next.


def owed(target: Model, draft: Model, start: Prefix, k: int) -> Model:
    """The target law of what follows a call at `start` that accepted less than k: in proportion to (P - Q)+ up to k."""

    def next_token(prefix: Prefix) -> Pmf:
        if len(prefix) >= len(start) + k:
            return target(prefix)
        left = tuple(max(d, Fraction(0)) for d in branch(target, draft, start, prefix[len(start) :], capped=False))
        return normalised(left) if any(left) else target(prefix)

    return next_token


def greedy_law(target: Model, draft: Model, k: int, length: int) -> TextLaw:
    """The exact joint law of a text and the accepted drafts of every call; surplus tokens of the last call are cut."""
    done: TextLaw = {}
    running: list[tuple[Prefix, tuple[int, ...], Model, Fraction]] = [((), (), target, ONE)]
    while running:
        text, counts, present, weight = running.pop()
        for path, drawn in draft_paths(draft, text, k):
            last = min(ONE, joint(present, text, path) / joint(draft, text, path))
            for depth, share in scanned(present, draft, text, path, last, capped=False):
                after = text + path[:depth]
                following = present if depth == k else owed(present, draft, text, k)
                for token, part in enumerate(following(after)):
                    if part > 0:
                        state = ((*after, token)[:length], (*counts, depth), weight * drawn * share * part)
                        if len(state[0]) == length:
                            done[state[:2]] = done.get(state[:2], Fraction(0)) + state[2]
                        else:
                            running.append((state[0], state[1], following, state[2]))
    return done
