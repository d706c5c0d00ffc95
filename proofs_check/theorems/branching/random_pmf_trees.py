"""Random trees of §5 in fractions: the best tree, the probability of a text as it grows, and their two moments.

An ensemble is a list of equally likely pmfs; each prefix draws one of them, independently of all others. The weight
pi(v) of a prefix v is its probability under the target, the product of its tokens' probabilities, and W_n = e^-S_n that
of the first n tokens of a sampled text. Thresholds c = e^-t are fractions too, so nothing here is rounded.
"""

from __future__ import annotations

import heapq
from itertools import takewhile

from proofs_check.prelude import *

Ensemble = Sequence[Pmf]
"""Equally likely pmfs on one vocabulary."""

Weights = dict[Fraction, Fraction]
"""Weights of prefixes to expected values."""


def grown(model: Model, capacity: int) -> list[tuple[Fraction, Prefix]]:
    """The heaviest prefixes of a known target with their weights, at most `capacity`, the heaviest first."""
    waiting: list[tuple[Fraction, Prefix]] = [(-share, (token,)) for token, share in enumerate(model(())) if share > 0]
    heapq.heapify(waiting)
    tree: list[tuple[Fraction, Prefix]] = []
    while waiting and len(tree) < capacity:
        weight, prefix = heapq.heappop(waiting)
        tree.append((-weight, prefix))
        for token, share in enumerate(model(prefix)):
            if share > 0:
                heapq.heappush(waiting, (weight * share, (*prefix, token)))
    return tree


def best(model: Model, capacity: int) -> Fraction:
    """E[X] of the best tree of `capacity` prefixes for a known target: the sum of the heaviest weights."""
    return total(weight for weight, _ in grown(model, capacity))


def best_of_one(pmf: Pmf, capacity: int) -> Fraction:
    """The same where every prefix has one pmf."""
    return best(lambda _: pmf, capacity)


def assignments(pmfs: Ensemble, depth: int) -> Iterator[dict[Prefix, Pmf]]:
    """Every way to give each prefix shorter than `depth` one of the pmfs; all are equally likely."""
    inside = prefixes(len(pmfs[0]), depth)
    for chosen in product(pmfs, repeat=len(inside)):
        yield dict(zip(inside, chosen, strict=True))


def mean_best(pmfs: Ensemble, capacity: int) -> Fraction:
    """E[X] of the best tree, over the ensemble: what every form of B bounds; states are the weights that wait."""
    states, mean = law(_shown((), Fraction(1), pmfs, Fraction(1), capacity)), Fraction(0)
    for left in range(capacity - 1, -1, -1):
        grow = {waiting: chance for waiting, chance in states.items() if waiting}
        mean += total(chance * waiting[0] for waiting, chance in grow.items())
        states = law(
            after for waiting, chance in grow.items() for after in _shown(waiting[1:], chance, pmfs, waiting[0], left)
        )
    return mean


def _shown(
    waiting: tuple[Fraction, ...], chance: Fraction, pmfs: Ensemble, weight: Fraction, most: int
) -> Iterator[tuple[tuple[Fraction, ...], Fraction]]:
    """What waits once a prefix of this weight has shown its pmf: of the weights the `most` heaviest."""
    for pmf in pmfs:
        children = [weight * share for share in pmf if share > 0]
        yield tuple(sorted((*waiting, *children), reverse=True)[:most]), chance / len(pmfs)


def mean_best_by_depth(pmfs: Ensemble, capacity: int) -> Fraction:
    """E[X] of the best tree where all prefixes of one length share one pmf, drawn anew for each length."""
    rows = list(product(pmfs, repeat=capacity + 1))
    models: Iterator[Model] = (lambda prefix, row=row: row[len(prefix)] for row in rows)  # type: ignore[misc]
    return total(best(model, capacity) for model in models) / len(rows)


def one_step(pmfs: Ensemble) -> Weights:
    """The law of the probability of a drawn token, W_1."""
    return law((share, share / len(pmfs)) for pmf in pmfs for share in pmf)


def many_steps(pmfs: Ensemble, steps: int) -> Weights:
    """The law of W_n: a product of independent steps."""
    weights: Weights = {Fraction(1): Fraction(1)}
    for _ in range(steps):
        weights = law((a * b, x * y) for (a, x), (b, y) in product(weights.items(), one_step(pmfs).items()))
    return weights


def walk(pmfs: Ensemble) -> Iterator[tuple[Fraction, Fraction]]:
    """The values w of W_1, W_2, ... from 1 downwards, each with the expected number of n >= 1 at which W_n = w.

    By the renewal equation; without end. If every token is certain there is no such number.
    """
    steps = one_step(pmfs)
    still = steps.pop(Fraction(1), Fraction(0))
    expected = {Fraction(1): 1 / (1 - still)}
    waiting = [Fraction(-1)]
    while waiting:
        weight = -heapq.heappop(waiting)
        number = expected.pop(weight)
        visits = number if weight < 1 else number - 1  # the start is a visit, but of no n >= 1
        if visits > 0:
            yield weight, visits
        for chance, share in steps.items():
            after = weight * chance
            if after not in expected:
                heapq.heappush(waiting, -after)
            expected[after] = expected.get(after, Fraction(0)) + number * share / (1 - still)


def visits(pmfs: Ensemble, least: Fraction) -> Weights:
    """Expected number of n >= 1 with W_n = w, for every w >= `least` > 0."""
    return dict(takewhile(lambda visit: visit[0] >= least, walk(pmfs)))


def heaviest(pmfs: Ensemble, capacity: Fraction | int) -> Fraction:
    """B3': the weight of the P heaviest prefixes of the mean tree, in which W_n = w stands for 1/w prefixes."""
    whole, left = Fraction(0), Fraction(capacity)
    for weight, number in walk(pmfs):
        if number / weight >= left:
            return whole + left * weight
        whole, left = whole + number, left - number / weight
    raise AssertionError("the walk has no end")


def moments(pmfs: Sequence[Sequence[Real]]) -> tuple[Real, Real]:
    """The moments mu = E[H(p)] and mu2 = E[sum p log^2 p], in any arithmetic that has logarithms."""
    mu: Real = 0
    mu2: Real = 0
    for pmf in pmfs:
        for share in pmf:
            if not is_zero(share):
                step = -log(share)
                mu, mu2 = mu + share * step / len(pmfs), mu2 + share * step * step / len(pmfs)
    return mu, mu2
