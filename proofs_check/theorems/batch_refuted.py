"""Three forms of Y3 and Y4 that are false: the algorithm as printed, f(empty) = 0, the limit without a condition."""

from __future__ import annotations

from proofs_check.algorithms.rejection_algorithms import Pmf, Table, steps_of
from proofs_check.prelude import *
from proofs_check.twins.batch_recursion import (
    Left,
    enumerated,
    left_after,
    nothing,
    profile,
    rarest,
    uncovered,
    y1_profile,
)


def one_model(tokens: int, steps: int, denominator: int) -> Iterator[Case]:
    """Pairs that serve every prefix, by denominator."""
    prefixes = [prefix for n in range(steps) for prefix in product(range(tokens), repeat=n)]
    for pair in cases.pairs(tokens, denominator):
        yield {"target": dict.fromkeys(prefixes, pair["p"]), "draft": dict.fromkeys(prefixes, pair["q"])}


def by_size(effort: Effort) -> Iterator[Case]:
    """By T, then V, then M, then denominator."""
    for steps, tokens, drafts in product((1, 2), (2, 3), (1, 2)):
        for case in one_model(tokens, steps, effort.pick(3, 4)):
            yield {**case, "drafts": drafts}


def _algorithm(target: Table, draft: Table, drafts: int, *, printed: bool, first: int = 1) -> Compared:
    """The enumerated algorithm against the formula."""
    shares, _, _ = enumerated(target, draft, drafts, printed=printed)
    return equal(shares, profile(target, draft, left_after(drafts), first=first))


def _truth(target: Table, draft: Table, drafts: int) -> Iterator[Compared]:
    """What holds in place of the first two: the formula for the one algorithm, Y1 for the other."""
    yield _algorithm(target, draft, drafts, printed=False)
    shares, _, _ = enumerated(target, draft, drafts, printed=True)
    yield equal(shares, y1_profile(target, draft, steps_of(target)))


def _limit(target: Table, draft: Table, drafts: int, left: Left = nothing) -> Iterator[Compared]:
    """The product of the TVs where the text starts, and Y3, within what a geometric approach leaves at M."""
    p, q = target[()], draft[()]
    room = (1 - rarest(target, draft)) ** drafts
    yield at_most(sum(left_after(drafts)(p, q)), sum(left(p, q)) + room)
    rejections: Pmf = profile(target, draft, left_after(drafts))
    yield at_most(sum(rejections), sum(profile(target, draft, left)) + steps_of(target) * room)


BATCH = "M i.i.d. drafts to the horizon T in each round"
FIRST = "first among pairs that serve every prefix, by T, then the number of tokens, then M, then denominator"
TRUE = Claim("Y3 is what the intended algorithm does, and Y1 what the printed one does", _truth)

ENTRIES = (
    Entry(
        id="Y3/printed",
        title="The batch algorithm as printed",
        kind="refuted",
        plain="Algorithm 4 as printed, whose round ends at the first rejected first token, has the rejections of Y3 "
        "(it has those of Y1, for every M)",
        latex=r"E[N_{rej}^{\text{Algorithm 4 as printed}}] = \sum_n E_P TV - \sum_n\sum_{x_{<n}} f(x_{<n})"
        r"\Big[TV(p,q) - \prod_{m\le M} TV(p^m,q)\Big]",
        source=("yin2024",),
        number="Algorithm 4 and Theorem 3",
        assumptions=(BATCH,),
        evidence=(
            counterexample(
                Claim(
                    "Y3 is what Algorithm 4 as printed does",
                    lambda target, draft, drafts: _algorithm(target, draft, drafts, printed=True),
                ),
                by_size,
                over=FIRST,
                true=TRUE,
            ),
            simulated(
                "as printed it rejects as Y3 says, on the paper's test bed, T = 20, M = 4",
                (("batch", {"chains": "yin2024", "length": 20, "drafts": 4, "printed": True}),),
                stated("Y3", printed=False),
                wrong=("it has the rejections of Y1, for every M", stated("Y3/printed")),
            ),
        ),
    ),
    Entry(
        id="Y3/empty",
        title="Y3 from f(empty) = 0",
        kind="refuted",
        plain="Y3 holds with f(empty) = 0 (the gain of the first round is lost)",
        latex=r"f(\emptyset) = 0",
        assumptions=(BATCH, "all M first tokens are tried where a round starts"),
        evidence=(
            counterexample(
                Claim(
                    "Y3 with f(empty) = 0 is what the intended algorithm does",
                    lambda target, draft, drafts: _algorithm(target, draft, drafts, printed=False, first=0),
                ),
                by_size,
                over=FIRST,
                true=TRUE,
            ),
        ),
    ),
    Entry(
        id="Y4/support",
        title="The limit without a condition on supports",
        kind="refuted",
        plain="the product of the TV(p^m, q) tends to 0 and Y3 to sum of E_P TV - E_f TV, f(x_{<=n}) = "
        "h(x_n)[P(x_{<n}) - f(x_{<n})], whatever p and q",
        latex=r"\prod_{m\le M} TV(p^m, q) \to 0",
        source=("yin2024",),
        assumptions=(BATCH, "all M first tokens are tried where a round starts"),
        evidence=(
            counterexample(
                Claim("prod TV <= (1 - d)^M and Y3 <= its limit without o + T (1 - d)^M", _limit),
                by_size,
                over=FIRST,
                true=Claim(
                    "prod TV <= o + (1 - d)^M and Y3 <= Y4 + T (1 - d)^M", lambda **case: _limit(**case, left=uncovered)
                ),
            ),
        ),
    ),
)
