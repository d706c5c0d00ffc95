"""Y3's algorithm enumerated in fractions: a batch of M i.i.d. drafts, every run of every draft and every coin.

yin2024, Algorithm 4, in two forms. *Intended*: the first position of a round tries the first tokens of all M drafts
one after the other, the target replaced by its residual after each rejection; the rest of the round verifies the
accepted draft alone, to the horizon. *As printed*: the round ends at the first rejected first token, so that drafts 2
to M are never tried. No formula of Y1-Y4 is used here, and nothing of the library.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from math import prod
from typing import NamedTuple

from proofs_check.algorithms.enumeration import Model, Pmf, Prefix, draft_paths, normalised, positive_part
from proofs_check.statement.fractions import Fraction, end_of, law_of


class Outcome(NamedTuple):
    """A decoded text: its tokens, the positions (from 1) recovered after a rejection, and the rounds it took."""

    text: Prefix
    rejected: tuple[int, ...]
    calls: int


OutcomeLaw = dict[Outcome, Fraction]

Outputs = Iterator[tuple[tuple[Prefix, bool], Fraction]]
"""Outcomes of a round (output tokens, whether the last one was recovered), each with its probability."""


def batch_decoding(target: Model, draft: Model, length: int, drafts: int, *, printed: bool = False) -> OutcomeLaw:
    """Law of the text of `length` tokens, with the rejections and calls it took."""
    one_round = cache(
        lambda text: batch_round(target, draft, text, length - len(text), drafts, printed=printed).items()
    )

    def next_round(before: Outcome) -> Iterator[tuple[Outcome, Fraction]]:
        for (tokens, recovered), share in one_round(before.text):
            text = before.text + tokens
            rejected = (*before.rejected, len(text)) if recovered else before.rejected
            yield Outcome(text, rejected, before.calls + 1), share

    return end_of(Outcome((), (), 0), lambda each: None if len(each.text) == length else next_round(each))


@law_of
def batch_round(
    target: Model, draft: Model, prefix: Prefix, length: int, drafts: int, *, printed: bool = False
) -> Outputs:
    """One round: M drafts of `length` tokens each, verified."""
    for batch in product(list(draft_paths(draft, prefix, length)), repeat=drafts):
        weight = prod(share for _, share in batch)
        for outcome, share in _verify(target, draft, prefix, [run for run, _ in batch], printed):
            yield outcome, weight * share


def _verify(target: Model, draft: Model, prefix: Prefix, runs: list[Prefix], printed: bool) -> Outputs:
    """Try the first token of each draft in turn; the accepted draft goes on, after none a token is recovered."""
    residual, alive = target(prefix), Fraction(1)
    for run in runs:
        accept = min(Fraction(1), residual[run[0]] / draft(prefix)[run[0]])
        if accept > 0:
            yield from _follow(target, draft, prefix, run, alive * accept)
        alive *= 1 - accept
        if alive == 0:
            return
        residual = normalised(positive_part(residual, draft(prefix)))
        if printed:
            break
    yield from _recover((), residual, alive)


def _follow(target: Model, draft: Model, prefix: Prefix, run: Prefix, alive: Fraction) -> Outputs:
    """Token verification of a draft whose first token is accepted."""
    for i in range(1, len(run)):
        p, q = target(prefix + run[:i]), draft(prefix + run[:i])
        accept = min(Fraction(1), p[run[i]] / q[run[i]])
        if accept < 1:
            yield from _recover(run[:i], normalised(positive_part(p, q)), alive * (1 - accept))
        alive *= accept
    yield (run, False), alive


def _recover(accepted: Prefix, law: Pmf, alive: Fraction) -> Outputs:
    return ((((*accepted, token), True), alive * share) for token, share in enumerate(law))
