"""Rules for several paths and for trees with what is stated of them: survivals, and the bound of any rule."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import accepted
from proofs_check.agreement.path_cases import PathTwin
from proofs_check.algorithms.rivals import greedy_block
from proofs_check.prelude import *
from proofs_check.proofs.path_proofs import BLOCK, TELESCOPE
from proofs_check.twins.list_transport import by_one_sort
from proofs_check.twins.path_theorem import Survival


def path_law(p: Pmf, q: Pmf, paths: int) -> Pmf:
    """The law of the token of the largest ratio p/q among so many, from sorted masses: differences of K-th powers."""
    order = sorted((x for x in range(len(q)) if q[x] > 0), key=lambda x: (p[x] / q[x], x))
    masses = pairwise([Fraction(0), *accumulate(q[x] for x in order)])
    shares = {x: up**paths - below**paths for x, (below, up) in zip(order, masses, strict=True)}
    return tuple(shares.get(x, Fraction(0)) for x in range(len(q)))


def largest_survival(paths: int, target: Model, draft: Model, text: Prefix) -> Survival:
    """The survival of V3: min(1, min_j D_j/P_j), from the mass of smaller tokens at each position of the text."""
    p, q, smaller = [], [], []
    for n, token in enumerate(text):
        a, b = target(text[:n]), draft(text[:n])
        p.append(a[token])
        q.append(b[token])
        place = (a[token] / b[token], token) if b[token] else None
        smaller.append(total(b[y] for y in range(len(b)) if b[y] and place and (a[y] / b[y], y) < place))

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
    p, q = (partial(probability, model, ()) for model in (target, draft))
    runs = (list(product(range(len(target(()))), repeat=i)) for i in range(1, k + 1))
    return total(by_one_sort(tuple(map(p, each)), tuple(map(q, each)), paths) for each in runs)


def within_several(rules: Mapping[int, Rule], target: Model, draft: Model, k: int, **_: int) -> Iterator[Compared]:
    """Rules by their number of i.i.d. paths accept at most the bound."""
    for paths, rule in rules.items():
        yield at_most(accepted(rule, target, draft, k), several_bound(target, draft, k, paths))


# Hierarchical, greedy multi-path block and traversal verification in steps (V1 to V4).


CAPPED: tuple[Step, ...] = (
    valid(
        "a run of ratio r, whose largest beginning (the empty one, of ratio 1, among them) has m: block verification's "
        "running ratio is w = r/m. One token more: r' = r f, m' = max(m, r'), and w' = r'/m' = min(1, w f), f = p/q: "
        "the recursion of block verification, which starts at w = 1 as well",
        lambda r, m, f: equal(r * f / larger(m, r * f), smaller(1, (r / m) * f)),
        lambda r, m, f: [r >= 0, m >= 1, r <= m, f >= 0],
    ),
    same(
        "in the branch of a run the capped P is (P/m) p, so with P = r Q each entry is Q (w p - q): the deficit is Q S "
        "with S = sum (w p - q)+",
        lambda r, m, Q, p, q: (r * Q / m * p - Q * q, Q * ((r / m) * p - q)),
    ),
    valid(
        "an entry of the excess is (q - w p)+ = (w p - q)+ + q - w p: summed, the excess is Q (S + 1 - w)",
        lambda w, p, q: equal(positive_part(q - w * p), positive_part(w * p - q) + q - w * p),
        lambda w, p, q: shares(w, p, q),
    ),
    valid(
        "as w <= 1 the excess is the larger of the two, so h_t = S/(S + 1 - w): block verification's coin",
        lambda S, w, Q: equal(Q * S / larger(Q * S, Q * (S + 1 - w)), S / (S + 1 - w)),
        lambda S, w, Q: [*shares(w), Q > 0, S >= 0, S + 1 - w > 0],
    ),
    valid(
        "the last coin min(1, r/m), m over the shorter runs, is w' of the first step; resampling in proportion to the "
        "deficit is block verification's residual: both draw (w p - q)+/S",
        lambda r, m, p, q: equal(smaller(1, r / m), r / larger(m, r)),
        lambda r, m, p, q: [r >= 0, m >= 1],
    ),
)
"""Algorithm 2 of zhou2026 makes the same tosses as block verification."""

NAIVE: tuple[Step, ...] = (
    valid(
        "runs of t tokens that were drafted and are rejected so far have (Q - P)+: at t = k, Q (1 - min(1, P/Q))",
        lambda P, Q: equal(Q * (1 - smaller(1, P / Q)), positive_part(Q - P)),
        lambda P, Q: [P >= 0, Q > 0],
    ),
    valid(
        "downwards: with E the excess and D the deficit of the branch of a run, E arrives and min(D, E) stays, so "
        "(E - D)+ goes on, and E - D = Q - P, as the entries Q q - P p sum to Q - P",
        lambda D, E: equal(E * (1 - D / larger(D, E)), positive_part(E - D)),
        lambda D, E: [D >= 0, E > 0],
    ),
    in_words(
        "so tau >= t + 1 has 1 - sum (Q - P)+ over runs of t + 1 tokens, which is 1 - TV of their laws: summed over t, "
        "the one-call bound, with a, b, c for P(tau = 1), P(tau = 2), P(tau = 3)",
        lambda a, b, c: ((a + b + c) + (b + c) + c, a + 2 * b + 3 * c),
    ),
    valid(
        "the branch resamples D in all: min(D, E) from tau = t, and (P - Q)+ = (D - E)+ from runs resampled before, "
        "which are themselves resampled on, in proportion to the same entries (P p - Q q)+",
        lambda D, E: equal(smaller(D, E) + positive_part(D - E), D),
        lambda D, E: [D >= 0, E >= 0],
    ),
    valid(
        "with the accepted min(P, Q) that makes P of a run of k tokens: lossless",
        lambda P, Q: equal(smaller(P, Q) + positive_part(P - Q), P),
        lambda P, Q: [P >= 0, Q >= 0],
    ),
)
"""Algorithm 1 of zhou2026."""

LARGEST_PATH: tuple[Step, ...] = (
    same(
        "paths are drawn independently: all K are below the end of the paths that begin with a run with (A + Q)^K, A "
        "the mass of smaller runs, and all are smaller with A^K; here K = 2 and 3",
        lambda A, Q: ((A + Q) ** 2 - A**2 + (A + Q) ** 3 - A**3, Q * (2 * A + Q) + Q * (3 * A**2 + 3 * A * Q + Q**2)),
    ),
    in_words(
        "the runs one token longer are neighbours: with a and b of two tokens the differences add up to the run's own, "
        "so the largest path is a draw from a chain of conditional laws",
        lambda A, a, b: (((A + a) ** 2 - A**2) + ((A + a + b) ** 2 - (A + a) ** 2), (A + a + b) ** 2 - A**2),
    ),
    *BLOCK,
)
"""The largest of K paths has a law of its own; block verification is lossless for drafts of any law."""

LEAVES: tuple[Step, ...] = (
    valid(
        "a node of ratio r, target law p and draft law q for its next child, which is x: the child's ratio is r' = "
        "min(1, r p/q), so the child and what is below it accept E[r'] = r - S, S = sum (r p - q)+",
        lambda r, p, q: equal(q * smaller(1, r * p / q), r * p - positive_part(r * p - q)),
        lambda r, p, q: [*shares(r, p), q > 0],
    ),
    in_words(
        "a node accepts, itself or below, with its ratio r: without children it is one coin; else E[r'] = r - S, and "
        "with what is left, 1 - (r - S), the node goes on with the ratio S/(S + 1 - r), which it accepts by induction",
        lambda r, S: ((r - S) + (1 - (r - S)) * S / (S + 1 - r), r),
    ),
    valid("the rest S/(S + 1 - r) is a ratio", lambda r, S: at_most(S, S + 1 - r), lambda r, S: [*shares(r), S >= 0]),
    same(
        "so with G for the probability that the node is drafted and not decided yet, the mass M = G r of its tokens "
        "gets m = G q r' on each next token x from the child, and keeps G (r p - q)+ = M p - m for the rest of it, "
        "whose target law is (r p - q)+/S: later children and the token after the node get M p - m in all",
        lambda G, r, p, e: (G * r * p - G * (r * p - e), G * e),
    ),
    *TELESCOPE,
)
"""Traversal verification: mass by mass the lemma of §7."""
