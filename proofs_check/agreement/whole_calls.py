"""Whole decodings of a rule, by enumeration: the text's law and the expected calls."""

from __future__ import annotations

from proofs_check.agreement.path_cases import constant
from proofs_check.algorithms.enumeration import output_law
from proofs_check.prelude import *

Judged = Callable[..., Compared | Iterable[Compared]]


def mean_calls(rule: Rule, target: Model, draft: Model, k: int, length: int) -> Fraction:
    """Expected calls of a whole text."""
    law = Decoding(rule, k, length).law(target, draft)
    return sum((len(accepted) * share for (_, accepted), share in law.items()), Fraction(0))


def lossless(rules: Sequence[Rule], target: Model, draft: Model, k: int, length: int) -> Iterator[Compared]:
    """The law of a whole text, several calls in a row, is the target's."""
    said = {text: share for text, share in text_law(target, length).items() if share > 0}
    for rule in rules:
        law = output_law(Decoding(rule, k, length).law(target, draft))
        yield equal({text: share for text, share in law.items() if share > 0}, said)


def of_tables(claim: Judged) -> Judged:
    """A claim about models, for cases that hold them as tables."""
    return lambda target, draft, **case: claim(target.__getitem__, draft.__getitem__, **case)


def of_pairs(claim: Judged, **case: int) -> Judged:
    """A claim about models, for pairs of pmfs that hold at every position."""
    return lambda p, q: claim(constant(p), constant(q), **case)


def turning(pmf: Pmf) -> Model:
    """A model made of one pmf: it is turned by the tokens before, so that every prefix matters."""
    return lambda prefix: tuple(pmf[(x + sum(prefix)) % len(pmf)] for x in range(len(pmf)))


def turned(p: Pmf, q: Pmf, longest: int = 3) -> tuple[Table, Table]:
    """Tables of the models that turn a pair of pmfs."""
    prefixes = [prefix for n in range(longest + 1) for prefix in product(range(len(p)), repeat=n)]
    target, draft = ({prefix: turning(pmf)(prefix) for prefix in prefixes} for pmf in (p, q))
    return target, draft
