"""The most that any lossless call accepts, by linear programs solved in fractions.

A call draws k drafts from the draft model, accepts some of them and puts one token after them. What it may do with
each run of drafts are the variables; that the text is the target's is the constraint. No rule is assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

from proofs_check.algorithms.enumeration import Model, Prefix, draft_paths, text_law
from proofs_check.statement.fractions import Fraction
from spectheory.errors import load_extra

Terms = dict[int, Fraction]
"""A linear function: number of a variable to its coefficient."""

Row = tuple[Terms, Fraction]
"""An equation: a linear function and its value."""


def most_accepted(target: Model, draft: Model, k: int) -> dict[tuple[Prefix, int], Fraction]:
    """Largest P(tau >= depth | text of k + 1 tokens) of a lossless call, each text and depth asked for by itself."""
    law, paths = text_law(target, k + 1), list(draft_paths(draft, (), k))
    possible = {each[:n] for each in law for n in range(1, k + 2)}
    acts = [
        (row, tau, (*path[:tau], token))
        for row, (path, _) in enumerate(paths)
        for tau in range(k + 1)
        for token in range(len(target(())))
        if (*path[:tau], token) in possible
    ]
    into: dict[Prefix, Terms] = {text: {} for text in law}
    for number, (_, _, output) in enumerate(acts):
        after = text_law(lambda later, before=output: target(before + later), k + 1 - len(output))  # type: ignore[misc]
        for rest, share in after.items():
            into[output + rest][number] = share
    rows: list[Row] = [
        ({number: Fraction(1) for number, act in enumerate(acts) if act[0] == row}, share)
        for row, (_, share) in enumerate(paths)
    ]
    rows += [(into[text], share) for text, share in law.items()]
    asked = [(text, depth) for text in law for depth in range(1, k + 1)]
    gains = [{n: share for n, share in into[text].items() if acts[n][1] >= depth} for text, depth in asked]
    largest = _largest(rows, gains, len(acts))
    return {(text, depth): most / law[text] for (text, depth), most in zip(asked, largest, strict=True)}


def most_agreement(target: Model, draft: Model, k: int, chains: int = 1) -> Fraction:
    """Largest mean number of leading tokens that a text of the target shares with a chain of k drafts, the best of
    several i.i.d. chains, over all couplings.
    """
    drafts, texts = text_law(draft, k), text_law(target, k)
    paths = {each: prod((drafts[run] for run in each), start=Fraction(1)) for each in product(drafts, repeat=chains)}
    pairs = list(product(paths, texts))
    ones = Fraction(1)
    rows: list[Row] = [({n: ones for n, (a, _) in enumerate(pairs) if a == run}, share) for run, share in paths.items()]
    rows += [({n: ones for n, (_, b) in enumerate(pairs) if b == text}, share) for text, share in texts.items()]
    agreed = {
        n: Fraction(max(sum(run[:i] == b[:i] for i in range(1, k + 1)) for run in a)) for n, (a, b) in enumerate(pairs)
    }
    return _largest(rows, [agreed], len(pairs))[0]


def _largest(rows: Sequence[Row], gains: Sequence[Terms], variables: int) -> list[Fraction]:
    """Largest value of each linear function of non-negative variables that meet the equations."""
    z3 = load_extra("z3", extra="proofs")
    shares = [z3.Real(f"c{number}") for number in range(variables)]

    def linear(terms: Terms) -> Any:
        return z3.Sum([c * shares[n] for n, c in terms.items()] or [z3.RealVal(0)])

    programme = z3.Optimize()
    programme.set("priority", "box")  # each goal by itself
    programme.add(*(share >= 0 for share in shares))
    programme.add(*(linear(row) == total for row, total in rows))
    goals = [programme.maximize(linear(gain)) for gain in gains]
    if programme.check() != z3.sat:
        raise ValueError("no lossless call was found, though plain sampling is one")
    return [Fraction(str(programme.upper(goal))) for goal in goals]
