"""Calls counted on whole decodings, against the recursions of §7 and what may be taken for them."""

from __future__ import annotations

from proofs_check.agreement.path_cases import CHAINS, RANKED, TREES, survival_by_tree
from proofs_check.algorithms.enumeration import TextLaw
from proofs_check.algorithms.tree_enumeration import children, node_number
from proofs_check.algorithms.tree_enumeration import given_text as ends_given_text
from proofs_check.prelude import *
from proofs_check.twins import path_theorem
from proofs_check.twins.path_theorem import Survival, full_acceptances
from proofs_check.twins.tree_theorem import depth, leaf_calls, rank_laws, visits


def moments(counts: dict[int, Fraction]) -> tuple[Fraction, Fraction]:
    """Mean and variance of a number."""
    mean = total(count * share for count, share in counts.items())
    return mean, total(count * count * share for count, share in counts.items()) - mean**2


def numbers(whole: dict[Any, Fraction]) -> dict[int, Fraction]:
    """The law of the number of calls, from a law of what each call did."""
    return law((len(calls), share) for calls, share in whole.items())


def starts(law: dict[tuple[int, ...], Fraction], length: int) -> list[Fraction]:
    """Expected number of calls that start at each position, from a law of the accepted drafts of all calls."""
    expected = [Fraction(0)] * length
    for accepted, share in law.items():
        for call in range(len(accepted)):
            expected[sum(accepted[:call]) + call] += share
    return expected


Recursion = Callable[..., tuple[Fraction, Fraction]]


def chains(recursion: Recursion, target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """Mean and variance of the calls, with and without a prefill that emits a token; calls with all drafts accepted."""
    q = draft.__getitem__
    for twin in CHAINS.values():
        source = twin.target(target.__getitem__)

        def law(source: Any = source, rule: Any = twin.algorithm, **ends: Any) -> TextLaw:
            return Decoding(rule, k, length, **ends).law(source, q)

        whole, prefilled, cut, spared = law(), law(prefill=True), law(spare=0), law(spare=1)
        for text in text_law(source, length):
            survival = twin.survival(target.__getitem__, q, text)
            accepted = given_text(whole, text)
            yield equal(recursion(survival, k, length), moments(numbers(accepted)))
            after = moments(numbers(given_text(prefilled, text)))
            yield equal(recursion(survival, k, length, prefill=True), after)
            for fewer in (cut, spared):
                yield equal(numbers(given_text(fewer, text)), numbers(accepted))
            full = sum(share * calls[:-1].count(k) for calls, share in accepted.items())
            yield equal(full_acceptances(survival, k, length), full)
            yield equal(tuple(visits(survival, k, length)), tuple(starts(accepted, length)))


def trees(recursion: Recursion, target: Table, draft: Table, length: int, **_: int) -> Iterator[Compared]:
    """The same for a tree; calls that end at a leaf."""
    p, q = target.__getitem__, draft.__getitem__
    for twin, tree in product(RANKED.values(), TREES[1:3]):
        law = Decoding(twin.call(tree, node_number(tree)), depth(tree), length).law(p, q)
        leaves = {node for node in tree if not children(tree, node)}
        for text in text_law(p, length):
            nodes = ends_given_text(law, text, tree)
            survival = survival_by_tree(twin.given, tree)(p, q, text)
            yield equal(recursion(survival, depth(tree), length), moments(numbers(nodes)))
            at_leaf = sum(share * sum(node in leaves for node in calls[:-1]) for calls, share in nodes.items())
            laws = rank_laws(twin.given, p, q, text, 2)
            yield equal(leaf_calls(laws, tree, length), at_leaf)


def without_spread(survival: Survival, k: int, length: int, *, prefill: bool = False) -> tuple[Fraction, Fraction]:
    """The recursion of the second moment without its middle term, 1 + sum s Q in place of 1 + 2 sum s C + sum s Q."""
    mean, _ = path_theorem.calls(survival, k, length, prefill=prefill)
    square = [Fraction(0)] * (length + k + 2)
    for n in range(length - 1, -1, -1):
        law = path_theorem.accepted_law(survival, n, k, length)
        square[n] = 1 + total(share * square[n + i + 1] for i, share in enumerate(law))
    first = int(prefill)
    return mean, square[first] - (mean - first) ** 2


def mean_over_starts(survival: Survival, k: int, length: int, *, prefill: bool = False) -> tuple[Fraction, Fraction]:
    """Calls as if N over 1 + the mean survival of a uniformly drawn start."""
    _, variance = path_theorem.calls(survival, k, length, prefill=prefill)
    return length / reading(survival, k, length, [Fraction(1)] * length), variance


def reading(survival: Survival, k: int, length: int, weights: list[Fraction]) -> Fraction:
    """1 + the mean accepted drafts of a call, starts weighted; a call drafts what leaves the text its last token."""
    depths = [range(1, min(k, length - n - 1) + 1) for n in range(len(weights))]
    means = (total(survival(n, i) for i in depths[n]) for n in range(len(weights)))
    return 1 + total(weight * mean for weight, mean in zip(weights, means, strict=True)) / sum(weights)
