"""Rules for several paths and for trees with what is stated of them: survivals, and the bound of any rule."""

from __future__ import annotations

from proofs_check.agreement.one_call_bound import accepted
from proofs_check.agreement.path_cases import PathTwin
from proofs_check.algorithms.greedy_paths import greedy_block
from proofs_check.prelude import *
from proofs_check.twins.list_transport import by_one_sort
from proofs_check.twins.path_theorem import Survival


def path_law(p: Pmf, q: Pmf, paths: int) -> Pmf:
    """The law of the token of the largest ratio p/q among so many, from sorted masses: differences of K-th powers."""
    order = sorted((x for x in range(len(q)) if q[x] > 0), key=lambda x: (p[x] / q[x], x))
    law, below = [Fraction(0)] * len(q), Fraction(0)
    for x in order:
        law[x] = (below + q[x]) ** paths - below**paths
        below += q[x]
    return tuple(law)


def largest_survival(paths: int, target: Model, draft: Model, text: Prefix) -> Survival:
    """The survival of V3: min(1, min_j D_j/P_j), from the mass of smaller tokens at each position of the text."""
    p, q, smaller = [], [], []
    for n, token in enumerate(text):
        a, b = target(text[:n]), draft(text[:n])
        p.append(a[token])
        q.append(b[token])
        own = (a[token] / b[token], token) if b[token] else None
        smaller.append(sum((b[y] for y in range(len(b)) if b[y] and own and (a[y] / b[y], y) < own), Fraction(0)))

    def survival(n: int, i: int) -> Fraction:
        best = mass = target_mass = Fraction(1)
        below = Fraction(0)
        for j in range(n, n + i):
            below += mass * smaller[j]
            mass *= q[j]
            target_mass *= p[j]
            best = min(best, ((below + mass) ** paths - below**paths) / target_mass)
        return best

    return survival


GREEDY: dict[str, PathTwin] = {
    f"{paths} paths": PathTwin(greedy_block(paths), partial(largest_survival, paths)) for paths in (2, 3)
}
"""Greedy multi-path block verification by the number of paths."""


def several_bound(target: Model, draft: Model, k: int, paths: int) -> Fraction:
    """The sum over i of R4 of both models' laws of i tokens, with so many candidates."""
    total = none = Fraction(0)
    for i in range(1, k + 1):
        p, q = text_law(target, i), text_law(draft, i)
        runs = sorted(p.keys() | q.keys())
        total += by_one_sort(tuple(p.get(run, none) for run in runs), tuple(q.get(run, none) for run in runs), paths)
    return total


def within_several(rules: Mapping[int, Rule], target: Model, draft: Model, k: int, **_: int) -> Iterator[Compared]:
    """Rules by their number of i.i.d. paths accept at most the bound."""
    for paths, rule in rules.items():
        yield at_most(accepted(rule, target, draft, k), several_bound(target, draft, k, paths))
