"""Whole decodings of a rule, by enumeration: the text's law and the expected calls."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import Texts
from proofs_check.agreement.path_cases import SurvivalOf, constant
from proofs_check.algorithms.enumeration import output_law
from proofs_check.prelude import *
from spectheory.prediction.over_prompts import Prompts, ratio
from spectheory.prediction.text_limit import call_terms, one_call_bound
from spectheory.trace import TextInfo

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


# §7's bound on a single call in fractions, and the library's terms, limits and ratios against it.


def accepted(rule: Rule, target: Model, draft: Model, k: int) -> Fraction:
    """E[tau] of one call, run through."""
    return sum((count * share for (_, count), share in rule(target, draft, (), k).items()), Fraction(0))


def bound(target: Model, draft: Model, k: int) -> Fraction:
    """Sum over i of 1 - TV between both models' laws of i tokens, written out."""
    total = Fraction(0)
    for i in range(1, k + 1):
        drafted = text_law(draft, i)
        total += sum(
            (min(share, drafted.get(run, Fraction(0))) for run, share in text_law(target, i).items()), Fraction(0)
        )
    return total


def library(terms_of: SurvivalOf, target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """The library's terms at every start, their mean over target-sampled text, and the limit of a trace."""
    texts = Texts(target, draft, length)
    trace, exactly = texts.trace(), texts.survivals(terms_of)
    terms = call_terms(trace.columns, k).reshape(-1, length, k)
    for number, of in enumerate(exactly):
        for n in range(length):
            for i in range(1, min(k, length - n) + 1):
                yield computed(terms[number, n, i - 1], of(n, i))
    shares = list(text_law(target.__getitem__, length).values())
    yield computed(np.dot(floats(shares), terms[:, 0].sum(axis=1)), bound(target.__getitem__, draft.__getitem__, k))
    room = [sum((of(n, i) for i in range(1, k + 1)), Fraction(1)) for of in exactly for n in range(length - k + 1)]
    limit = sum(room, Fraction(0)) / len(room)
    yield computed(one_call_bound(Prompts(trace.texts), trace, [k])[k].best, limit)


def ratio_of_sums(shift: int, above: tuple[int, ...], below: tuple[int, ...]) -> Iterator[Compared]:
    """Ratios of sums over prompts, two texts to a prompt, and an interval around them."""
    texts = [TextInfo(str(number), 1, prompt=str(number // 2)) for number in range(len(above))]
    prompts = Prompts(texts)
    interval = ratio(prompts.sum(floats(above)), prompts.sum_rows(floats(below)), limits=(0.0, 9.0))
    yield computed(interval.best, Fraction(sum(above) + shift, sum(below)))
    yield at_most(Fraction(interval.low), Fraction(interval.best))
    yield at_most(Fraction(interval.best), Fraction(interval.high))
