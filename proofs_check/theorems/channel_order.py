"""§9's limit: recursive rejection of more than one candidate is not monotone in the order of channels."""

from __future__ import annotations

from proofs_check.agreement.truncated_intervals import within_poisson, within_recursive
from proofs_check.prelude import *

Merged = tuple[int, int]
"""Two tokens that a channel takes for one."""


def merged(pmf: AnyPmf, two: Merged) -> list[Real]:
    """The pmf with two tokens as one."""
    return [*(share for x, share in enumerate(pmf) if x not in two), pmf[two[0]] + pmf[two[1]]]


def never_lowered(value: Callable[[AnyPmf, AnyPmf, int], Real]) -> Callable[[AnyPmf, AnyPmf, int, Merged], Compared]:
    """A claim's function: merging two tokens of both pmfs, which lowers every g(c), does not lower the value."""

    def holds(p: AnyPmf, q: AnyPmf, k: int, two: Merged) -> Compared:
        return at_least(value(merged(p, two), merged(q, two), k), value(p, q, k))

    return holds


def mergers(effort: Effort) -> Iterator[Case]:
    """Fewer candidates first; pairs on three tokens by their denominator, p falling, and every two of their tokens."""
    for k in effort.pick((1, 2), (1, 2, 3)):
        for pair in cases.pairs(3, 6):
            if pair["p"][0] >= pair["p"][1] >= pair["p"][2]:
                yield from ({**pair, "k": k, "two": two} for two in combinations(range(3), 2))


def one_merger(effort: Effort) -> Iterator[Case]:
    """Four tokens, of which the second and third are alike to the channel."""
    yield {
        "p": tuple(Fraction(weight, 20) for weight in (16, 3, 1, 0)),
        "q": tuple(Fraction(weight, 20) for weight in (4, 2, 2, 12)),
        "k": 2,
        "two": (1, 2),
    }


RECURSIVE = Claim("merging two tokens never lowers P(R <= k) of recursive rejection", never_lowered(within_recursive))
POISSON = Claim("merging two tokens never lowers P(R <= k) of the Poisson race", never_lowered(within_poisson))

ENTRIES = (
    Entry(
        id="§9/monotone",
        title="Recursive rejection in the order of channels",
        kind="refuted",
        plain="P(R <= k) of recursive rejection (R3) is monotone in the order of channels, as that of the Poisson race "
        "is: so it lies between its values at the best completion and at disjoint tails",
        latex=r"(P,Q)\succeq(P',Q')\ \Rightarrow\ P_{R3}(R\le k)(P,Q)\le P_{R3}(R\le k)(P',Q')",
        assumptions=("candidates are i.i.d. from the draft", "a channel merges tokens and splits them in proportion"),
        evidence=(
            counterexample(
                RECURSIVE,
                mergers,
                over="first with two candidates on three tokens by the denominator; one candidate has none",
                true=POISSON,
            ),
            counterexample(
                RECURSIVE, one_merger, over="p = (.8, .15, .05, 0), q = (.2, .1, .1, .6), k = 2", true=POISSON
            ),
        ),
    ),
)
