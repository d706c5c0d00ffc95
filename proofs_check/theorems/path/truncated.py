"""§9: what the largest probabilities of two pmfs tell for certain; every calculator over every completion of a grid."""

from __future__ import annotations

from proofs_check.forms.divergences import g
from proofs_check.prelude import *
from proofs_check.theorems.path.completions import NO_EXTRAS, Extras, Lengths, Pairs, Seen, best, most_minima, seen
from proofs_check.theorems.path.truncated_cases import drawn, every_setting, few_pairs, pairs
from proofs_check.theorems.path.truncated_intervals import (
    ENCLOSED,
    LAWS,
    LOGARITHMIC,
    MONOTONE,
    RATIONAL,
    SYMMETRIC,
    at_the_ends,
    even_tails,
    inside,
    naive,
    no_better_than_even,
    within_poisson,
    within_recursive,
)
from proofs_check.theorems.path.truncated_moments import (
    cap_of_all,
    evenly_filled,
    given_inside,
    matching_inside,
    only_listed,
    peaks_forgotten,
    rank_entropies,
    read,
    steep_ends,
    twice_the_mean,
    with_ends,
    with_odds,
)
from proofs_check.theorems.path.truncated_proofs import FOLLOWS, MOMENTS, ONE_COMPLETION, OTHER_RULES, SUMS
from spectheory import truncated


def one_is_best(p: AnyPmf, q: AnyPmf, m: Lengths = (1, 1), extra: Extras = NO_EXTRAS) -> Iterator[Compared]:
    """The best completion is one, and its g(c) is at most that of this pair, at every c; its sum of minima is A1's end.

    Both are convex and piecewise linear, so it is enough to compare at the kinks of this pair's and beyond the last.
    """
    known = seen(p, q, m, extra)
    found = best(known)
    yield from _completes(known, found)
    yield from _below(found, p, q)
    yield equal(sum(smaller(a, b) for a, b in found), most_minima(known))


def _completes(known: Seen, found: Pairs) -> Iterator[Compared]:
    ours = len(known.both) + len(known.ours)
    theirs = ours + len(known.theirs)
    yield equal((sum(a for a, _ in found), sum(b for _, b in found)), (1 + 0 * known.s, 1 + 0 * known.t))
    for i, (a, b) in enumerate(found):
        if i >= ours:
            yield at_most(a, known.a)
        if len(known.both) <= i < ours or i >= theirs:
            yield at_most(b, known.b)
        yield at_least(smaller(a, b), 0)


def _below(found: Pairs, p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    pmfs = [a for a, _ in found], [b for _, b in found]
    for c in (a / b for a, b in zip(p, q, strict=True) if b > 0):
        yield at_most(g(*pmfs, c), g(p, q, c))
    drawable = sum(a for a, b in zip(p, q, strict=True) if b > 0)
    yield at_least(sum(a for a, b in found if b > 0), drawable)


def without_caps_outside(p: AnyPmf, q: AnyPmf, m: Lengths = (1, 1), extra: Extras = NO_EXTRAS) -> Iterator[Compared]:
    """The claim of :func:`one_is_best` with one merged token in place of those known to none, which has no cap."""
    known = seen(p, q, m, extra)
    many = best(known._replace(outside=1000 * known.outside))
    first = len(many) - 1000 * known.outside
    merged = [(a * 1000, b * 1000) for a, b in many[first : first + known.outside]]
    yield from _completes(known, [*many[:first], *merged])


def best_without_caps(known: Seen) -> Pairs:
    """The best completion had unseen tokens no caps."""
    return best(known._replace(a=1 + 0 * known.a, b=1 + 0 * known.b))


def evenly_spread(p: AnyPmf, q: AnyPmf, m: Lengths = (1, 1), extra: Extras = NO_EXTRAS) -> Iterator[Compared]:
    """The claim of :func:`one_is_best` for even tails."""
    yield from _below(list(zip(*even_tails(p, q, m, extra), strict=True)), p, q)


BEST = Claim("the best completion is one, g(c) nowhere above another's, with the sum of minima stated", one_is_best)
EVEN = Claim("even tails are best", evenly_spread)

EVEN_IS_BEST = "no completion is better than that with even tails"

OVER_FEW = "pairs on 3 tokens of denominator up to 4 and on 4 up to 3, lists of one or two tokens, others by name"

OVER = "pairs on 3 and 4 tokens of denominator up to 4, lists of one or two tokens, others by name"


# §9's limit: recursive rejection of more than one candidate is not monotone in the order of channels.


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


P9 = Entry(
    id="§9",
    title="Truncated knowledge: certified intervals from the largest probabilities",
    kind="bounds",
    plain="from the m largest probabilities of both pmfs every quantity lies in a computed interval, whatever the "
    "rest: one completion minimises g(c) for every c, hence every f-divergence, and maximises A1, A2, R1, R4 and "
    "R5; disjoint tails give the other end; H(p) is least with the tail filled up to the cap, largest with an even "
    "tail; R2, R3 beyond one candidate and R6 are enclosed",
    latex=r"\sum_C\min(p,q)\le\sum\min(p,q)\le\sum_C\min(p,q)+u+w+\min(t-u,\,s-w,\,n\min(a,b)),\quad "
    r"\exists\,(P^*,Q^*)\ \forall (P,Q)\ \forall c:\ g_{P^*Q^*}(c)\le g_{PQ}(c)\le\sum_C(cq-p)_++c(1-q(C))",
    assumptions=(
        "the lists hold the most probable tokens; those asked for by name do not lower the cap",
        "log-probabilities are right up to rounding, or their error is stated",
    ),
    calculators=tuple(f"spectheory.truncated.{name}" for name in truncated.__all__),
    evidence=(
        proof("ends that are sums: minima, hockey sticks, the race, KL", SUMS),
        proof("one completion is best for every hockey stick", ONE_COMPLETION),
        proof("what follows for f-divergences, races, k-SEQ and R4", FOLLOWS),
        proof("entropy and second log-moment, by moving mass between two tokens", MOMENTS),
        proof("what encloses R3 and R2, and matching rules", OTHER_RULES),
        exact(
            BEST,
            every_setting,
            over=OVER,
            wrong=Claim("tokens on neither list have no caps at the best completion", without_caps_outside),
        ),
        exact(
            Claim("divergences, hockey sticks and A1 of every completion are inside", inside(SYMMETRIC + RATIONAL)),
            pairs,
            over=OVER,
            wrong=Claim(EVEN_IS_BEST, no_better_than_even(SYMMETRIC)),
        ),
        exact(
            Claim("A2, R1, R4, R5 and R6's bound of every completion are inside", inside(MONOTONE)),
            few_pairs,
            over=OVER_FEW,
            wrong=Claim(EVEN_IS_BEST, no_better_than_even(MONOTONE)),
        ),
        exact(
            Claim("R2, R3 and R6 of every completion, and laws of the rank, are inside", inside(ENCLOSED + LAWS)),
            few_pairs,
            over=OVER_FEW,
            wrong=Claim("they lie between the best completion and disjoint tails", naive(ENCLOSED + LAWS)),
        ),
        exact(
            Claim("what holds given the output is inside, for every output", given_inside),
            few_pairs,
            over=OVER_FEW,
            wrong=Claim("the third rank lies between its values at the ends of the first's", peaks_forgotten),
        ),
        exact(
            Claim("top-k drafts, for every k, and first choices are inside", matching_inside),
            pairs,
            over=OVER,
            wrong=Claim("what the target's list lacks is never accepted", only_listed),
        ),
        agreement(
            Claim("the ends are the values at the best completion and disjoint tails", at_the_ends(SYMMETRIC)),
            pairs,
            over=OVER,
            wrong=Claim(
                "the ends are those of a best completion without caps", at_the_ends(SYMMETRIC, best_without_caps)
            ),
        ),
        agreement(
            Claim("ends of A2, R1, R4, R5 and R6's bound are attained likewise", at_the_ends(MONOTONE)),
            pairs,
            over=OVER,
            wrong=Claim(
                "the ends are those of a best completion without caps", at_the_ends(MONOTONE, best_without_caps)
            ),
        ),
        agreement(
            Claim("a list's cap, unseen mass and ranges, and means of intervals", read),
            pairs,
            over=OVER,
            wrong=Claim("a token asked for by name lowers the cap", cap_of_all),
        ),
        certified(
            Claim("KL, Rényi, entropy and second log-moment of every completion are inside", inside(LOGARITHMIC)),
            pairs,
            over=OVER,
            wrong=Claim(EVEN_IS_BEST, no_better_than_even(LOGARITHMIC[:1])),
        ),
        certified(
            Claim("ends of entropy and moment, low ends of KL, chi-square and Rényi are attained", steep_ends),
            lambda effort: with_ends(few_pairs(effort)),
            over=OVER_FEW,
            wrong=Claim("the entropy is least with an even tail", evenly_filled),
        ),
        certified(
            Claim("the Poisson race's H(R), and the largest entropy at a mean log R", rank_entropies),
            lambda effort: with_odds(pairs(effort)),
            over=OVER,
            wrong=Claim("H(R) is at most twice the mean log R", twice_the_mean),
        ),
        searched(BEST, drawn, over="2 to 4 tokens", spaces=(pair_space(3),), wrong=EVEN),
        searched(
            Claim("KL, chi-square, Rényi and moments of a pair are inside", inside(RATIONAL + LOGARITHMIC)),
            drawn,
            over="2 to 4 tokens, thirty orders of magnitude",
            wrong=Claim(EVEN_IS_BEST, no_better_than_even(LOGARITHMIC[:1])),
        ),
        searched(
            Claim("D1-D3 and the rules of a pair are inside", inside(SYMMETRIC + MONOTONE + ENCLOSED)),
            drawn,
            over="2 to 4 tokens, thirty orders of magnitude",
            wrong=Claim("R3 lies between the best completion and disjoint tails", naive(ENCLOSED[:1])),
        ),
    ),
)

P9_MONOTONE = Entry(
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
        counterexample(RECURSIVE, one_merger, over="p = (.8, .15, .05, 0), q = (.2, .1, .1, .6), k = 2", true=POISSON),
    ),
)
