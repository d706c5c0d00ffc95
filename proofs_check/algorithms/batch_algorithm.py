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
from typing import NamedTuple

from proofs_check.algorithms.enumeration import Model, Pmf, Prefix, draft_paths, normalised, positive_part
from proofs_check.statement.fractions import Fraction


class Outcome(NamedTuple):
    """A decoded text: its tokens, the positions (from 1) recovered after a rejection, and the rounds it took."""

    text: Prefix
    rejected: tuple[int, ...]
    calls: int


OutcomeLaw = dict[Outcome, Fraction]

RoundLaw = dict[tuple[Prefix, bool], Fraction]
"""Law of one round: (output tokens, whether the last one was recovered) to probability."""


def batch_decoding(target: Model, draft: Model, length: int, drafts: int, *, printed: bool = False) -> OutcomeLaw:
    """Law of the text of `length` tokens, with the rejections and calls it took."""

    @cache
    def one_round(text: Prefix) -> RoundLaw:
        return batch_round(target, draft, text, length - len(text), drafts, printed=printed)

    done: OutcomeLaw = {}
    running: OutcomeLaw = {Outcome((), (), 0): Fraction(1)}
    while running:
        following: OutcomeLaw = {}
        for before, weight in running.items():
            for (tokens, recovered), share in one_round(before.text).items():
                text = before.text + tokens
                after = Outcome(text, (*before.rejected, len(text)) if recovered else before.rejected, before.calls + 1)
                law = done if len(text) == length else following
                law[after] = law.get(after, Fraction(0)) + weight * share
        running = following
    return done


def batch_round(
    target: Model, draft: Model, prefix: Prefix, length: int, drafts: int, *, printed: bool = False
) -> RoundLaw:
    """One round: M drafts of `length` tokens each, verified."""
    law: RoundLaw = {}
    runs = list(draft_paths(draft, prefix, length))
    for batch in product(runs, repeat=drafts):
        drawn = Fraction(1)
        for _, share in batch:
            drawn *= share
        for tokens, recovered, share in _verify(target, draft, prefix, [run for run, _ in batch], printed):
            if share > 0:
                law[tokens, recovered] = law.get((tokens, recovered), Fraction(0)) + drawn * share
    return law


Outputs = Iterator[tuple[Prefix, bool, Fraction]]


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
    yield run, False, alive


def _recover(accepted: Prefix, law: Pmf, alive: Fraction) -> Outputs:
    for token, share in enumerate(law):
        yield (*accepted, token), True, alive * share
