"""§12's lock-step batches in any arithmetic, from the laws of their texts' calls: closed forms and definitions."""

from __future__ import annotations

from proofs_check.prelude import *

Law = Sequence[Real]
"""P(calls = t), t = 1, 2, ..."""


def mean(values: Iterable[Real]) -> Real:
    """Their mean."""
    listed = list(values)
    return sum(listed) / len(listed)


def ended(law: Law, t: int) -> Real:
    """P(calls <= t)."""
    return sum(law[:t], 0 * law[0])


def calls(law: Law) -> Real:
    """The mean number of calls of one text."""
    return sum(t * share for t, share in enumerate(law, start=1))


def slowest(laws: Sequence[Law]) -> Real:
    """E[max] by the closed form, the sum of 1 - prod F."""
    return sum(1 - math.prod(ended(law, t) for law in laws) for t in range(len(laws[0])))


def of_draws(laws: Sequence[Law], batch: int) -> Real:
    """E[max] of a batch drawn with replacement, the sum of 1 - (mean F)^B."""
    return sum(1 - mean(ended(law, t) for law in laws) ** batch for t in range(len(laws[0])))


def of_sets(laws: Sequence[Law], batch: int) -> Real:
    """E[max] of a batch of different texts, every set of them alike."""
    return mean(slowest(chosen) for chosen in combinations(laws, batch))


def rounds(laws: Sequence[Law]) -> list[Real]:
    """Expected rounds with m live texts, m = 0..B, by all outcomes of all texts."""
    longest = len(laws[0])
    found = [0 * laws[0][0]] * (len(laws) + 1)
    for counts in product(range(1, longest + 1), repeat=len(laws)):
        share = math.prod(law[count - 1] for law, count in zip(laws, counts, strict=True))
        for t in range(longest):
            found[sum(count > t for count in counts)] += share
    return found
