"""Drafts that are copied from the text before the call (prompt lookup), for any rule of a chain, in fractions (§7)."""

from __future__ import annotations

from functools import partial

from proofs_check.algorithms.enumeration import CallLaw, Model, Pmf, Prefix, Rule
from proofs_check.statement.fractions import Fraction

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
    return partial(_call, algorithm)


def _call(algorithm: Rule, target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
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
