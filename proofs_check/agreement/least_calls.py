"""L, the limit of whole decodings for drafts by start (§12), in fractions and against linear programmes."""

from __future__ import annotations

from proofs_check.agreement.block_limits import SOLVED
from proofs_check.agreement.path_cases import CHAINS
from proofs_check.agreement.start_agreement import head_trace
from proofs_check.agreement.start_cases import HeadTable, by_start, from_start, random_heads
from proofs_check.prelude import *
from proofs_check.twins.block_values import Problem
from proofs_check.twins.path_theorem import calls, least_calls
from proofs_check.twins.policy_programme import fewest_calls
from spectheory.prediction import decoding_limit

DRAWN = ("token", "block", "race", "poisson", "recursive", "independent")
"""Lossless rules whose chain of drafts is drawn."""


def least_of_text(name: str, target: Table, head: HeadTable, k: int, text: Prefix) -> Fraction:
    """L(0) of a text, from the survival of a rule: block verification's is the right one."""
    return least_calls(by_start(CHAINS[name].survival, target.__getitem__, head, text), k, len(text))


def policies(name: str, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """In the mean over texts no policy takes fewer calls, by a linear programme over all of them."""
    given = Problem(
        target.__getitem__,
        lambda text: from_start(head, text),
        lambda _: k,
        lambda text: len(text) >= length,
        len(target[()]),
    )
    least = sum(
        (
            share * least_of_text(name, target, head, k, text)
            for text, share in text_law(target.__getitem__, length).items()
        ),
        Fraction(0),
    )
    yield at_most(least, Fraction(fewest_calls(given)) + SOLVED)


def along_texts(name: str, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """Along every text each rule takes so many calls or more."""
    p = target.__getitem__
    for text in text_law(p, length):
        least = least_of_text(name, target, head, k, text)
        for rule in DRAWN:
            yield at_most(least, calls(by_start(CHAINS[rule].survival, p, head, text), k, length)[0])


def library(limited: bool, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """The library's L of each text; or block verification's calls in its place."""
    trace = head_trace(target, head, k, length)
    found = decoding_limit.fewest_calls(trace, [k])[k]
    for text, each in zip(text_law(target.__getitem__, length), found.tolist(), strict=True):
        survival = by_start(CHAINS["block"].survival, target.__getitem__, head, text)
        yield computed(each, least_calls(survival, k, length) if limited else calls(survival, k, length)[0])


def heads(effort: Effort) -> Iterator[Case]:
    """The head of B7/starts, then random ones."""
    yield certain_head((1, 2, 0, 0), 2)
    yield from random_heads(effort, ((2, 3, 1), (2, 3, 2), (2, 4, 2), (3, 2, 2)), 3)


def certain_head(right: Sequence[int], k: int) -> Case:
    """A target that always says 0, and a head that is right on so many drafts of the call from each start."""
    sure, wrong = (Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))
    drawn = random_heads(Effort(), ((2, len(right), k),), 1)
    case = next(iter(drawn))
    target = dict.fromkeys(case["target"], sure)
    head = {(start, run): sure if len(run) < right[len(start)] else wrong for start, run in case["head"]}
    return {"target": target, "head": head, "k": k, "length": len(right)}
