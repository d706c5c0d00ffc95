"""The most that any lossless call accepts, by linear programs solved in fractions.

A call draws k drafts from the draft model, accepts some of them and puts one token after them. What it may do with
each run of drafts are the variables; that the text is the target's is the constraint. No rule is assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from proofs_check.enumeration import Model, Prefix, draft_paths, text_law
from spectheory.errors import load_extra

Row = tuple[list[Fraction], Fraction]
"""An equation: the coefficients of the variables, and what their sum is."""


def most_accepted(target: Model, draft: Model, k: int, text: Prefix, depth: int) -> Fraction:
    """Largest P(tau >= depth | text of k + 1 tokens) of a lossless call after which the target goes on by itself.

    Examples
    --------
    >>> third = Fraction(1, 3)
    >>> p, q = (third, 2 * third), (2 * third, third)
    >>> [str(most_accepted(lambda _: p, lambda _: q, 2, (1, 0, 0), depth)) for depth in (1, 2)]
    ['1/2', '1/2']
    """
    law, paths = text_law(target, k + 1), list(draft_paths(draft, (), k))
    possible = {each[:n] for each in law for n in range(1, k + 2)}
    acts = [
        (row, tau, (*path[:tau], token))
        for row, (path, _) in enumerate(paths)
        for tau in range(k + 1)
        for token in range(len(target(())))
        if (*path[:tau], token) in possible
    ]
    after = [
        {output + rest: share for rest, share in _continued(target, output, k + 1 - len(output)).items()}
        for _, _, output in acts
    ]
    rows: list[Row] = [([Fraction(int(act[0] == row)) for act in acts], share) for row, (_, share) in enumerate(paths)]
    rows += [([each.get(whole, Fraction(0)) for each in after], share) for whole, share in law.items()]
    gain = [each.get(text, Fraction(0)) * int(tau >= depth) for each, (_, tau, _) in zip(after, acts, strict=True)]
    return _largest(rows, gain) / law[text]


def most_agreement(target: Model, draft: Model, k: int) -> Fraction:
    """Largest mean number of leading tokens on which a text of the target and k drafts agree, jointly drawn anyhow.

    That is the most a single call can accept if what follows it need not be drawn afresh.

    Examples
    --------
    >>> third = Fraction(1, 3)
    >>> str(most_agreement(lambda _: (third, 2 * third), lambda _: (2 * third, third), 2))
    '4/3'
    """
    paths, texts = text_law(draft, k), text_law(target, k)
    pairs = list(product(paths, texts))
    rows: list[Row] = [([Fraction(int(a == path)) for a, _ in pairs], share) for path, share in paths.items()]
    rows += [([Fraction(int(b == text)) for _, b in pairs], share) for text, share in texts.items()]
    return _largest(rows, [Fraction(sum(a[:n] == b[:n] for n in range(1, k + 1))) for a, b in pairs])


def _continued(target: Model, before: Prefix, length: int) -> dict[Prefix, Fraction]:
    return text_law(lambda after: target(before + after), length)


def _largest(rows: Sequence[Row], gain: Sequence[Fraction]) -> Fraction:
    """Largest value of a linear function of non-negative variables that meet the equations."""
    z3 = load_extra("z3", extra="proofs")
    variables = [z3.Real(f"c{number}") for number in range(len(gain))]

    def linear(coefficients: Sequence[Fraction]) -> object:
        terms = [z3.Q(c.numerator, c.denominator) * v for c, v in zip(coefficients, variables, strict=True) if c]
        return z3.Sum(terms) if terms else z3.RealVal(0)

    programme = z3.Optimize()
    programme.add(*(variable >= 0 for variable in variables))
    programme.add(*(linear(row) == z3.Q(total.numerator, total.denominator) for row, total in rows))
    goal = programme.maximize(linear(gain))
    if programme.check() != z3.sat:
        raise ValueError("no lossless call was found, though plain sampling is one")
    return Fraction(str(programme.upper(goal)))
