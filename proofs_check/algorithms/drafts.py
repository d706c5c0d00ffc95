"""Drafts of one pass (P-EAGLE, DFlash): each depth has a pmf of its own that no draft before it changes (§10)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from proofs_check.algorithms.enumeration import CallLaw, Model, Pmf, Prefix, Rule, StoppableRule, draft_paths
from proofs_check.statement.fractions import Fraction, total


def marginals(draft: Model, start: Prefix) -> Model:
    """The pmfs of a call that starts after `start`: at each depth the mixture of the draft's over all runs before."""

    def mixture(prefix: Prefix) -> Pmf:
        runs = [(weight, draft(start + path)) for path, weight in draft_paths(draft, start, len(prefix) - len(start))]
        return tuple(total(weight * pmf[x] for weight, pmf in runs) for x in range(len(runs[0][1])))

    return mixture


def parallel(algorithm: Rule) -> Rule:
    """A whole call of a rule whose drafts are drawn from the marginals, independently of each other."""
    return lambda target, draft, prefix, k: algorithm(target, marginals(draft, prefix), prefix, k)


# Drafts that are copied from the text before the call (prompt lookup), for any rule of a chain, in fractions (§7).


NGRAM = 3


def continuation(text: Prefix, k: int, ngram: int = NGRAM) -> Prefix:
    """The at most k tokens that followed the latest earlier occurrence of the longest suffix of the text."""
    for length in range(min(ngram, len(text) - 1), 0, -1):
        for end in range(len(text) - 1, length - 1, -1):
            if text[end - length : end] == text[-length:]:
                return text[end : end + k]
    return ()


def copying(algorithm: Rule) -> Rule:
    """A whole call of a rule whose draft is certain of the copied tokens, as many as there are."""
    return partial(_copied_call, algorithm)


def _copied_call(algorithm: Rule, target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
    copied = continuation(prefix, k)

    def certain(before: Prefix) -> Pmf:
        token = (*prefix, *copied, 0)[len(before)]
        return tuple(Fraction(int(x == token)) for x in range(len(target(before))))

    return algorithm(target, certain, prefix, len(copied))


def repeated(target: Model, draft: Model, text: Prefix) -> _Survival:
    """The survival stated for it: 1 as far as the text repeats the copied tokens."""
    return _Survival(text)


class _Survival:
    """P(tau >= i) of a call that starts at n."""

    def __init__(self, text: Prefix) -> None:
        self.text = text

    def __call__(self, start: int, depth: int) -> Fraction:
        copied = continuation(self.text[:start], depth)
        return Fraction(int(len(copied) == depth and copied == self.text[start : start + depth]))


# Calls whose length the draft decides (§11), in fractions: stopping rules, and runs of drafts that they end.


@dataclass(frozen=True)
class Stop:
    """Where drafting stops, from the draft's pmf at a position and the token drafted there; `keeps` that token."""

    written: str
    stops: Callable[[Pmf, int], bool]
    keeps: bool = False

    def goes_on(self, draft: Model, prefix: Prefix, path: Prefix) -> bool:
        """Whether a call that drafted `path` after `prefix` drafts another token."""
        if self.keeps:
            return not any(self.stops(draft(prefix + path[:i]), token) for i, token in enumerate(path))
        return not any(self.stops(draft(prefix + path[:i]), 0) for i in range(len(path) + 1))


STOPS = (
    Stop("token<0.37", lambda q, token: q[token] < Fraction(37, 100), keeps=True),
    Stop("top<0.61", lambda q, _: max(q) < Fraction(61, 100)),
    Stop("entropy>0.53", lambda q, _: -sum(float(share) * math.log(share) for share in q if share) > 0.53),
)
"""One of each kind, as the library writes it; no pmf of the cases is at a threshold."""


def ended_by(stop: Stop, rule: StoppableRule, *, by_target: bool = False) -> Rule:
    """A whole call whose drafts the stopping rule ends; it reads the draft's pmfs, or the target's in their place."""

    def call(target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
        read = target if by_target else draft
        return rule(target, draft, prefix, k, lambda _, before, path: stop.goes_on(read, before, path))

    return call
