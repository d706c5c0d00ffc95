"""Bounds on one call with several i.i.d. chains (§12) in fractions, and the library's against them."""

from __future__ import annotations

from proofs_check.agreement.path_cases import random_chains
from proofs_check.algorithms.lossless_calls import most_agreement
from proofs_check.prelude import *
from proofs_check.twins.list_transport import optimum
from spectheory.limits.several_chains import several_chain_terms, several_chains_bound

Drawn = Callable[[Fraction, int], Fraction]
"""From Q and the number of chains to a bound on the probability that a chain begins with the run."""


def drawn(q: Fraction, chains: int) -> Fraction:
    """D = 1 - (1 - Q)^k."""
    return 1 - (1 - q) ** chains


def counted(q: Fraction, chains: int) -> Fraction:
    """kQ, the mean number of chains that begin with the run."""
    return chains * q


def in_one(q: Fraction, chains: int) -> Fraction:
    """Q, as if there were one chain."""
    return q


def from_runs(of: Drawn, target: Table, draft: Table, k: int, chains: int) -> Fraction:
    """Sum over depths and runs of min(P, D)."""
    total = Fraction(0)
    for i in range(1, k + 1):
        likely = text_law(draft.__getitem__, i)
        for run, share in text_law(target.__getitem__, i).items():
            total += min(share, of(likely.get(run, Fraction(0)), chains))
    return total


def from_laws(target: Table, draft: Table, k: int, chains: int) -> Fraction:
    """Sum over depths of R4, over every set of runs."""
    total = Fraction(0)
    for i in range(1, k + 1):
        p, q = text_law(target.__getitem__, i), text_law(draft.__getitem__, i)
        runs = sorted(p.keys() | q.keys())
        likely, by_draft = (tuple(law.get(run, Fraction(0)) for run in runs) for law in (p, q))
        total += optimum(likely, by_draft, chains)
    return total


def bounded(of: Drawn, target: Table, draft: Table, k: int, chains: int, **_: int) -> Iterator[Compared]:
    """No verification accepts more, by a linear programme in fractions."""
    yield at_most(
        most_agreement(target.__getitem__, draft.__getitem__, k, chains), from_runs(of, target, draft, k, chains)
    )


def by_laws(target: Table, draft: Table, k: int, chains: int, more: int = 0, **_: int) -> Iterator[Compared]:
    """Nor more than the sum of R4 for the laws of runs, of `more` chains."""
    most = most_agreement(target.__getitem__, draft.__getitem__, k, chains)
    yield at_most(most, from_laws(target, draft, k, chains + more))


def in_order(of: Drawn, target: Table, draft: Table, k: int, chains: int, **_: int) -> Iterator[Compared]:
    """R4 of laws <= sum of min(P, D) <= sum of min(P, kQ)."""
    sharp, loose = from_laws(target, draft, k, chains), from_runs(of, target, draft, k, chains)
    yield at_most(sharp, loose)
    yield at_most(loose, from_runs(counted, target, draft, k, chains))
    if chains == 1:
        yield equal(sharp, loose)


def library(more: int, target: Table, draft: Table, k: int, chains: int, **_: int) -> Iterator[Compared]:
    """The library's terms along every text, their mean, and its sum of R4."""
    p, q = target.__getitem__, draft.__getitem__
    mean = Fraction(0)
    for text, share in text_law(p, k).items():
        with np.errstate(divide="ignore"):
            log_p, log_q = (np.log(floats([of(text[:i])[text[i]] for i in range(k)])) for of in (p, q))
        found = several_chain_terms(log_p, log_q, chains)
        likely = [text_law(of, i).get(text[:i], Fraction(0)) for i in range(1, k + 1) for of in (p, q)]
        exact = [min(Fraction(1), drawn(b, chains + more) / a) for a, b in zip(likely[::2], likely[1::2], strict=True)]
        mean += share * sum(exact, Fraction(0))
        for each, value in zip(found.tolist(), exact, strict=True):
            yield computed(each, value)
    yield equal(mean, from_runs(drawn, target, draft, k, chains + more))
    tokens = len(target[()])
    by_target, by_draft = (
        [np.array([floats(of(run)) for run in _runs(tokens, i)]).reshape((tokens,) * (i + 1)) for i in range(k)]
        for of in (p, q)
    )
    yield computed(several_chains_bound(by_target, by_draft, chains), from_laws(target, draft, k, chains + more))


def _runs(tokens: int, length: int) -> list[tuple[int, ...]]:
    return [tuple(index) for index in np.ndindex(*(tokens,) * length)]


def pairs(effort: Effort, sizes: tuple[tuple[int, int, int], ...], rounds: int = 2) -> Iterator[Case]:
    """Random pairs of models, for each (tokens, depth, chains)."""
    for tokens, depth, chains in sizes:
        for case in random_chains(effort, ((tokens, 1, depth),), rounds):
            yield {**case, "chains": chains}
