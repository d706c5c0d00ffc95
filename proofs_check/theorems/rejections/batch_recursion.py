"""Y3 and Y4 as recursions over every prefix, and the batch algorithm they speak of: the two share no line."""

from __future__ import annotations

from proofs_check.algorithms.batch_algorithm import batch_decoding
from proofs_check.algorithms.rejection_algorithms import *
from proofs_check.prelude import *

Left = Callable[[Pmf, Pmf], Pmf]
"""Law of the token recovered where a round starts, from p and q: how likely it is that all drafts are rejected and x
is drawn."""


def tried(p: Pmf, q: Pmf, drafts: int) -> tuple[Real, Pmf]:
    """The product of TV(p^m, q) over m <= M, and p^{M+1}, which is unused where the product is 0."""
    missed: Real = 1
    for _ in range(drafts):
        rest = excess(p, q)
        missed = missed * sum(rest)
        if is_zero(missed):
            return missed, p
        p = tuple(share / sum(rest) for share in rest)
    return missed, p


def left_after(drafts: int) -> Left:
    """The product of TV(p^m, q) over m <= M times p^{M+1}."""

    def left(p: Pmf, q: Pmf) -> Pmf:
        missed, law = tried(p, q, drafts)
        return tuple(missed * share for share in law)

    return left


def left_early(drafts: int) -> Left:
    """Wrong: recovery from p^M."""

    def left(p: Pmf, q: Pmf) -> Pmf:
        missed, _ = tried(p, q, drafts)
        return tuple(missed * share for share in tried(p, q, drafts - 1)[1])

    return left


def left_with_one_fewer(drafts: int) -> Left:
    """Wrong: M - 1 drafts."""
    return left_after(drafts - 1)


def profile(target: Table, draft: Table, left: Left, *, reach: Reach = EMPTY, steps: int = 0, first: int = 1) -> Pmf:
    """The terms E_P TV - sum f [TV - prod TV(p^m, q)] of Y3 with its recursion for f; `first` is f(empty)."""
    starts: Reach = {prefix: first * mass for prefix, mass in reach.items()}
    terms = []
    for _ in range(steps or steps_of(target)):
        term: Real = 0
        following: dict[Prefix, Real] = {}
        for prefix, mass in reach.items():
            p, q, f = target[prefix], draft[prefix], starts[prefix]
            h, u = excess(p, q), left(p, q)
            term += mass * sum(h) - f * (sum(h) - sum(u))
            following |= {(*prefix, x): h[x] * mass - (h[x] - u[x]) * f for x in range(len(p))}
        terms.append(term)
        reach, starts = followed(reach, target), following
    return tuple(terms)


def enumerated(target: Table, draft: Table, drafts: int, *, printed: bool = False) -> tuple[Pmf, Real, dict[Any, Real]]:
    """Run the algorithm: P(reject at n) for n = 1..T, expected calls, the law of the text."""
    steps = steps_of(target)
    whole = batch_decoding(model_of(target), model_of(draft), steps, drafts, printed=printed)
    rejected = law((n, share) for outcome, share in whole.items() for n in outcome.rejected)
    calls = total(share * outcome.calls for outcome, share in whole.items())
    texts = law((outcome.text, share) for outcome, share in whole.items())
    return tuple(rejected.get(n, Fraction(0)) for n in range(1, steps + 1)), calls, texts


def uncovered(p: Pmf, q: Pmf) -> Pmf:
    """What is left of p when every draft was rejected, for ever: the tokens the draft cannot draw; its sum is o."""
    return tuple(a if b == 0 else 0 * a for a, b in zip(p, q, strict=True))


def nothing(p: Pmf, q: Pmf) -> Pmf:
    """What the paper takes to be left."""
    return tuple(0 * a for a in p)


def rarest(target: Table, draft: Table) -> Real:
    """The least positive probability the draft gives to a token that the target can output; 1 if there is none."""
    positive = (b for prefix, p in target.items() for a, b in zip(p, draft[prefix], strict=True) if a > 0 and b > 0)
    return min(positive, default=Fraction(1))


def y1_profile(target: Table, draft: Table, steps: int, reach: Reach = EMPTY, along: Table | None = None) -> Pmf:
    """E TV(P_n, Q_n), n = 1..T, over prefixes from the target, or from `along`."""
    profile = []
    for _ in range(steps):
        profile.append(sum(mass * distance(target[prefix], draft[prefix]) for prefix, mass in reach.items()))
        reach = followed(reach, along or target)
    return tuple(profile)
