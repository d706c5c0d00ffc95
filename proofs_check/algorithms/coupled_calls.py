"""Greedy block verification (sun2024block) in fractions: calls that hand the rest of a draft's block on to the next.

A call accepts as much as its drafts and the target's text can agree on. What the text then still owes, the target's law
of the block less the draft's, is the target law of the positions that are left of the block: the next calls verify
against it. So a whole decoding is a tree of calls, each with a target of its own.
"""

from __future__ import annotations

from proofs_check.algorithms.enumeration import Model, Pmf, Prefix, TextLaw, draft_paths, normalised
from proofs_check.algorithms.hierarchical import branch, joint, scanned
from proofs_check.statement.fractions import Fraction

ONE = Fraction(1)


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
