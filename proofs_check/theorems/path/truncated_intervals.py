"""§9's calculators beside the exact values they enclose: an interval from two lists, and its value at a completion.

A pair of pmfs is a completion of its own lists. So every pair of a grid, cut to lists, shows one completion of what the
lists leave open, and a grid of pairs shows every completion on the grid.
"""

from __future__ import annotations

from functools import lru_cache

from proofs_check.evidence.judge import ROUNDING
from proofs_check.forms.divergences import (
    entropy,
    g,
    kl,
    moment,
    overlap,
    renyi,
    second_moment,
    similarity,
    total_variation,
)
from proofs_check.forms.kseq_cases import any_of, one
from proofs_check.forms.ranks import at_rank, closed_form, independent, odds, race
from proofs_check.forms.ranks import listed as gumbel_list
from proofs_check.prelude import *
from proofs_check.statement.arithmetic import is_interval
from proofs_check.theorems.path.completions import NO_EXTRAS, Extras, Lengths, Pairs, Seen, best, disjoint, listed, seen
from proofs_check.twins.list_transport import optimum
from proofs_check.twins.race_ranks import rank_law
from spectheory import truncated
from spectheory.intervals import Interval
from spectheory.truncated import TopLogProbs
from spectheory.verification import (
    ArgmaxDraft,
    GreedyMatch,
    GumbelList,
    IndependentMatch,
    KSeq,
    PoissonRace,
    RaceVerification,
    RecursiveRejection,
    TokenVerification,
    TopKMatch,
)
from spectheory.verification import Rule as AnyRule

Lists = tuple[TopLogProbs, TopLogProbs]

Holds = Callable[[AnyPmf, AnyPmf, Lengths, Extras], Iterator[Compared]]
"""A claim's function; without lengths and extras both lists hold one token."""

WEIGHTS = (Fraction(1, 2), Fraction(1), Fraction(2))
"""Values of c of the hockey sticks that are compared."""

RANKS = 3
"""Ranks of the laws."""

BEYOND = 1e-9
"""What a wrong claim is given beyond rounding, so that it fails for its own reason."""


class Quantity(NamedTuple):
    """One calculator of §9: the library's interval, and the value or values of full pmfs that it is to contain.

    A value None is infinite, a pair is a range that holds the value. `rises` says whether the best completion has the
    largest value of all, or the least; None where it has neither.
    """

    bound: Callable[[TopLogProbs, TopLogProbs], Interval]
    value: Callable[[AnyPmf, AnyPmf], Any]
    rises: bool | None = None


def lists(p: AnyPmf, q: AnyPmf, m: Lengths, extra: Extras = NO_EXTRAS) -> Lists:
    """What servers would tell of a pair."""
    return _top(p, m[0], extra[0]), _top(q, m[1], extra[1])


def _top(pmf: AnyPmf, m: int, extra: Sequence[int]) -> TopLogProbs:
    rounded = floats(pmf)
    tokens, more = listed(pmf, m, extra)
    return _made(tuple(tokens), tuple(rounded[tokens]), tuple(more), tuple(rounded[more]), len(rounded))


@lru_cache(maxsize=4096)
def _made(
    tokens: tuple[int, ...],
    values: tuple[float, ...],
    more: tuple[int, ...],
    others: tuple[float, ...],
    vocabulary: int,
) -> TopLogProbs:
    with np.errstate(divide="ignore"):
        return TopLogProbs(tokens, np.log(values), vocabulary, more, np.log(others))


@lru_cache(maxsize=20_000)
def _bound(quantity: Quantity, target: TopLogProbs, draft: TopLogProbs) -> Interval:
    return quantity.bound(target, draft)


def contained(interval: Interval, value: Any, inner: float = 1.0) -> Iterator[Compared]:
    """A value of a completion is within the interval; no tolerance but the interval's own rounding.

    Wrong: within an inner part of it.
    """
    if value is None:
        yield equal(int(interval.high == math.inf), 1)
        return
    least, most = value if isinstance(value, tuple) else (value, value)
    yield equal(int(interval.low == math.inf), 0)
    if interval.kind == "exact":
        yield computed(interval.best, most)
        return
    width = interval.high - interval.low
    cut = (1 - inner) * width / 2 if BEYOND < width < math.inf else 0.0
    yield at_least(least, end_like(interval.low + cut, least))
    if interval.high < math.inf:
        yield at_most(most, end_like(interval.high - cut, most))


def inside(quantities: Sequence[Quantity], inner: float = 1.0) -> Holds:
    """A claim's function: every quantity of the pair is within its interval from the lists, or an inner part of it."""

    def holds(p: AnyPmf, q: AnyPmf, m: Lengths = (1, 1), extra: Extras = NO_EXTRAS) -> Iterator[Compared]:
        pair = lists(p, q, m, extra)
        for quantity in quantities:
            yield from contained(_bound(quantity, *pair), quantity.value(p, q), inner)

    return holds


def at_the_ends(quantities: Sequence[Quantity], near: Callable[[Seen], Pairs] = best) -> Holds:
    """A claim's function: the ends of the intervals are the values at the best completion and at disjoint tails."""

    def holds(p: AnyPmf, q: AnyPmf, m: Lengths = (1, 1), extra: Extras = NO_EXTRAS) -> Iterator[Compared]:
        pair, known = lists(p, q, m, extra), seen(p, q, m, extra)
        closest, farthest = (
            [list(side) for side in zip(*complete(known), strict=True)] for complete in (near, disjoint)
        )
        for quantity in quantities:
            interval = _bound(quantity, *pair)
            ends = (interval.high, interval.low) if quantity.rises else (interval.low, interval.high)
            for end, pmfs in zip(ends, (closest, farthest), strict=True):
                least, most = _range(quantity.value(pmfs[0], pmfs[1]))
                yield computed(end, (least + most) * Fraction(1, 2))

    return holds


def even_tails(p: AnyPmf, q: AnyPmf, m: Lengths, extra: Extras = NO_EXTRAS) -> tuple[AnyPmf, AnyPmf]:
    """The completion with the unseen masses spread evenly over all unseen tokens."""
    sides = []
    for pmf, length, more in zip((p, q), m, extra, strict=True):
        tokens, others = listed(pmf, length, more)
        hidden = [x for x in range(len(pmf)) if x not in {*tokens, *others}]
        mass = sum((pmf[x] for x in hidden), 0 * pmf[0])
        sides.append([mass / len(hidden) if x in hidden else share for x, share in enumerate(pmf)])
    return sides[0], sides[1]


def _range(value: Any) -> tuple[Real, Real]:
    return value if isinstance(value, tuple) else (value, value)


def end_like(end: float, value: Real) -> Real:
    """An end in the arithmetic of a value."""
    if isinstance(value, float):
        return end
    return interval(Fraction(end)) if is_interval(value) else Fraction(end)


# Values of full pmfs


def covered(value: Callable[[AnyPmf, AnyPmf], Real]) -> Callable[[AnyPmf, AnyPmf], Real | None]:
    """The value, None where the draft lacks a token of the target."""

    def value_or_none(p: AnyPmf, q: AnyPmf) -> Real | None:
        lacks = any(is_zero(b) and not is_zero(a) for a, b in zip(p, q, strict=True))
        return None if lacks else value(p, q)

    return value_or_none


def printed_bound(p: AnyPmf, q: AnyPmf) -> Real:
    """R6's printed bound of two races, the sum of p/(1 + g/2)."""
    return sum((p[x] / (1 + behind / Fraction(2)) for x, behind in odds(p, q).items()), 0 * p[0])


def k_seq(p: AnyPmf, q: AnyPmf, k: int) -> tuple[Real, Real]:
    """A range of k-SEQ's acceptance: at any rho it is between 1-(1-beta)^k, which falls in rho, and rho beta."""
    target, draft = [float(x) for x in floats(p)], [float(x) for x in floats(q)]
    low, high = 1.0, float(k)
    for _ in range(60):
        rho = (low + high) / 2
        beta = one(target, draft, rho)
        low, high = (rho, high) if any_of(beta, k) > rho * beta else (low, rho)
    rho = end_like(high, p[0])
    beta = one(p, q, rho)
    return smaller(any_of(beta, k), rho * beta), larger(any_of(beta, k), rho * beta)


def within_poisson(p: AnyPmf, q: AnyPmf, k: int) -> Real:
    """P(R <= k) of the Poisson race."""
    return sum((at_rank(p, q, rank) for rank in range(1, k + 1)), 0 * p[0])


def within_recursive(p: AnyPmf, q: AnyPmf, k: int) -> Real:
    """P(R <= k) of recursive rejection."""
    return sum(sum(row) for row in closed_form(p, q, k))


def _at_rank(rule: AnyRule, value: Callable[[AnyPmf, AnyPmf, int], Real], rank: int) -> Quantity:
    """One rank of a law."""
    return Quantity(
        lambda target, draft: _law(rule, target, draft)[rank - 1], lambda p, q: value(p, q, rank) + 0 * p[0]
    )


@lru_cache(maxsize=4096)
def _law(rule: AnyRule, target: TopLogProbs, draft: TopLogProbs) -> tuple[Interval, ...]:
    return truncated.rank_pmf(rule, target, draft, RANKS)


def _hockey(c: Fraction) -> Quantity:
    return Quantity(
        lambda target, draft: truncated.hockey_stick(target, draft, float(c)), lambda p, q: g(p, q, c), False
    )


SYMMETRIC = (
    Quantity(truncated.total_variation, total_variation, False),
    Quantity(truncated.harmonic_mean_similarity, similarity, True),
    Quantity(truncated.harmonic_mean_distance, lambda p, q: 1 - similarity(p, q), False),
    Quantity(partial(truncated.acceptance, TokenVerification()), overlap, True),
    *(_hockey(c) for c in WEIGHTS),
)
"""D1-D3 where they are bounded, and A1."""

MONOTONE = (
    Quantity(partial(truncated.acceptance, RaceVerification()), lambda p, q: race(p, q) + 0 * p[0], True),
    Quantity(lambda t, d: truncated.acceptance(PoissonRace(), t, d, 2), lambda p, q: within_poisson(p, q, 2), True),
    Quantity(lambda t, d: truncated.optimal_acceptance(t, d, 2), lambda p, q: optimum(p, q, 2) + 0 * p[0], True),
    Quantity(lambda t, d: truncated.acceptance(KSeq(), t, d, 2), lambda p, q: k_seq(p, q, 2), True),
    Quantity(lambda t, d: truncated.gumbel_list_acceptance_bound(t, d, 2), printed_bound, True),
)
"""Rules that are monotone in the order of channels: A2, R1, R4, R5 and R6's printed bound."""

ENCLOSED = (
    Quantity(lambda t, d: truncated.acceptance(RecursiveRejection(), t, d, 2), lambda p, q: within_recursive(p, q, 2)),
    Quantity(lambda t, d: truncated.acceptance(RecursiveRejection(), t, d, 3), lambda p, q: within_recursive(p, q, 3)),
    Quantity(
        lambda t, d: truncated.acceptance(RaceVerification(), t, d, 2), lambda p, q: sum(rank_law(p, q)[:2], 0 * p[0])
    ),
    Quantity(
        lambda t, d: truncated.acceptance(GumbelList(), t, d, 2),
        lambda p, q: gumbel_list(tuple(p), tuple(q), 2) + 0 * p[0],
    ),
)
"""Rules that are not: R3 beyond one candidate, R2 and R6."""

LAWS = (
    *(_at_rank(PoissonRace(), at_rank, rank) for rank in range(1, RANKS + 1)),
    *(
        _at_rank(RecursiveRejection(), lambda p, q, r: sum(closed_form(p, q, r)[-1]), rank)
        for rank in range(1, RANKS + 1)
    ),
)
"""Laws of the rank of R1 and R3."""

RATIONAL = (
    Quantity(truncated.chi_square, covered(lambda p, q: moment(p, q, 2) - 1)),
    Quantity(partial(truncated.acceptance, IndependentMatch()), lambda p, q: independent(p, q) + 0 * p[0]),
)
"""Chi-square and the independent match."""

LOGARITHMIC = (
    Quantity(truncated.kl_divergence, covered(kl), False),
    Quantity(lambda t, d: truncated.renyi_divergence(t, d, 2.0), covered(lambda p, q: renyi(p, q, (2, 1)))),
    Quantity(lambda t, d: truncated.renyi_divergence(t, d, math.inf), covered(lambda p, q: renyi(p, q, (1, 0)))),
    Quantity(lambda t, d: truncated.entropy(t), lambda p, q: entropy(p) + 0 * p[0]),
    Quantity(lambda t, d: truncated.second_log_moment(d), lambda p, q: second_moment(q) + 0 * q[0]),
)
"""KL, Rényi divergences, entropy and the second log-moment."""


# §9 where logarithms enter, and what a list itself says: ends of entropies and of KL and its kin.


TERMS = 12
"""Ranks whose share of the entropy is added up."""

ATTAINED = 10**9
"""Ends that are steep in small masses give way by some ten thousand times the rounding of a mass: one part in this."""

KNOWN = 1e-5
"""An enclosure of H(R) this narrow is that of one pair of pmfs, computed to 1e-6."""


def read(p: AnyPmf, q: AnyPmf, m: Lengths = (1, 1), extra: Extras = NO_EXTRAS) -> Iterator[Compared]:
    """A list's cap and unseen mass, the range of every token, and the mean of two intervals."""
    pair, known = lists(p, q, m, extra), seen(p, q, m, extra)
    for top, pmf, cap, unseen in zip(pair, (p, q), (known.a, known.b), (known.s, known.t), strict=True):
        yield computed(top.cap, cap)
        yield computed(top.unseen, unseen)
        for x, share in enumerate(pmf):
            low, high = top.range(x)
            yield at_most(Fraction(low), share + ROUNDING)
            yield at_least(Fraction(high), share - ROUNDING)
    intervals = truncated.total_variation(*pair), truncated.acceptance(TokenVerification(), *pair)
    mean = truncated.mean_interval(intervals)
    for end in ("low", "high"):
        yield computed(getattr(mean, end), sum(Fraction(getattr(each, end)) for each in intervals) / 2)


def cap_of_all(p: AnyPmf, q: AnyPmf, m: Lengths = (1, 1), extra: Extras = NO_EXTRAS) -> Iterator[Compared]:
    """The cap is the least known probability, that of a token asked for by name too."""
    for top, pmf, length, more in zip(lists(p, q, m, extra), (p, q), m, extra, strict=True):
        tokens, others = listed(pmf, length, more)
        yield computed(top.cap, min(pmf[x] for x in (*tokens, *others)))


def with_ends(cases: Iterable[Case]) -> Iterator[Case]:
    """Cases with the best completion, and the target's tail filled up to its cap and spread evenly, in fractions."""
    for case in cases:
        known = seen(**case)
        near = best(known)
        shown = [*(a for a, _ in known.both), *known.ours]
        hidden = len(case["p"]) - len(shown)
        full = min(hidden, known.s // known.a) if known.a > 0 else 0
        filled = [known.a] * full + [known.s - full * known.a] * (full < hidden)
        even = [known.s / hidden] * hidden if hidden else []
        yield {
            **case,
            "near": (tuple(a for a, _ in near), tuple(b for _, b in near)),
            "filled": (*shown, *filled),
            "even": (*shown, *even),
        }


def steep_ends(
    p: AnyPmf, q: AnyPmf, m: Lengths, extra: Extras, near: tuple[AnyPmf, AnyPmf], filled: AnyPmf, even: AnyPmf
) -> Iterator[Compared]:
    """Entropy and second log-moment at both ends, KL and its kin at the best completion, but for steep rounding."""
    target, draft = lists(p, q, m, extra)
    for bound, value in ((truncated.entropy, entropy), (truncated.second_log_moment, second_moment)):
        interval = bound(target)
        yield from _attained(interval.low, value(filled) + 0 * p[0])
        yield from _attained(interval.high, value(even) + 0 * p[0])
    for low, divergence in (
        (truncated.kl_divergence(target, draft).low, covered(kl)(*near)),
        (truncated.chi_square(target, draft).low, covered(lambda p, q: moment(p, q, 2) - 1)(*near)),
        (truncated.renyi_divergence(target, draft, 2.0).low, covered(lambda p, q: renyi(p, q, (2, 1)))(*near)),
    ):
        if divergence is not None and low < math.inf:
            yield from _attained(low, divergence + 0 * p[0])


def evenly_filled(
    p: AnyPmf, q: AnyPmf, m: Lengths, extra: Extras, near: tuple[AnyPmf, AnyPmf], filled: AnyPmf, even: AnyPmf
) -> Iterator[Compared]:
    """The entropy's low end is that of the even tail."""
    target, _ = lists(p, q, m, extra)
    yield from _attained(truncated.entropy(target).low, entropy(even) + 0 * p[0])


def _attained(end: float, exact: Real) -> Iterator[Compared]:
    yield at_most(exact - (1 + exact) / ATTAINED, end_like(end, exact))
    yield at_most(end_like(end, exact), exact + (1 + exact) / ATTAINED)


def with_odds(cases: Iterable[Case]) -> Iterator[Case]:
    """Cases with (p_x, g_x) of every token that both can say, in fractions: an interval would not know a 0."""
    for case in cases:
        behind = odds(case["p"], case["q"])
        yield {**case, "behind": tuple((case["p"][x], value) for x, value in behind.items())}


def rank_entropies(
    p: AnyPmf, q: AnyPmf, m: Lengths, extra: Extras, behind: Sequence[tuple[Real, Real]], part: float = 1.0
) -> Iterator[Compared]:
    """The Poisson race's H(R): above the low end lies H(R|X) already, below the high end the sum of the first ranks.

    And of p as the law of a rank: no more than the largest entropy at its mean logarithm, or a part of that.
    """
    mean = sum((share * log(rank) for rank, share in enumerate(p, 1)), 0 * p[0])
    largest = truncated.largest_rank_entropy(math.nextafter(float(floats([mean])[0]), math.inf))
    yield at_most(entropy(p) + 0 * p[0], end_like(part * largest, mean))
    target, draft = lists(p, q, m, extra)
    if any(is_zero(b) and not is_zero(a) for a, b in zip(p, q, strict=True)):
        return  # R is infinite
    interval = truncated.poisson_rank_entropy(target, draft)
    if interval.high - interval.low > KNOWN:
        parts = [share * ((1 + y) * log(1 + y) - y * log(y)) for share, y in behind if not is_zero(y)]
        conditional = sum(parts, 0 * behind[0][0])  # H(R|X): a geometric rank has (1+g) log(1+g) - g log g
        yield at_least(conditional, end_like(interval.low, conditional))
    if interval.high < math.inf:
        some = _first_ranks(behind)
        yield at_most(some, end_like(interval.high + KNOWN, some))


def _first_ranks(behind: Sequence[tuple[Real, Real]]) -> Real:
    """The sum of -P(R = r) log P(R = r) over the first ranks."""
    total, law = 0 * behind[0][0], [(share / (1 + y), y / (1 + y)) for share, y in behind]
    for _ in range(TERMS):
        mass = sum(share for share, _ in law)
        total = total - (0 if is_zero(mass) else mass * log(mass))
        law = [(share * again, again) for share, again in law]
    return total


# §9 given the output token, and matching rules: intervals from two lists beside the exact values they enclose.


def given_inside(p: AnyPmf, q: AnyPmf, m: Lengths = (1, 1), extra: Extras = NO_EXTRAS) -> Iterator[Compared]:
    """Acceptance and law of the rank, given each output that the target can have."""
    target, draft = lists(p, q, m, extra)
    rows = closed_form(p, q, RANKS)
    for x in (x for x in range(len(p)) if not is_zero(p[x])):
        race = 0 * p[x] if is_zero(q[x]) else 1 / (1 + g(p, q, p[x] / q[x]))
        within = [sum(row[x] for row in rows[:rank]) / p[x] for rank in range(RANKS + 1)]
        token = truncated.acceptance_given(TokenVerification(), target, draft, x)
        yield from contained(token, smaller(1 + 0 * p[x], q[x] / p[x]))
        yield from contained(truncated.acceptance_given(RaceVerification(), target, draft, x), race)
        second = truncated.acceptance_given(PoissonRace(), target, draft, x, 2)
        yield from contained(second, 1 - (1 - race) * (1 - race))
        yield from contained(truncated.acceptance_given(IndependentMatch(), target, draft, x), q[x])
        yield from contained(truncated.acceptance_given(RecursiveRejection(), target, draft, x, 2), within[2])
        poisson = truncated.rank_pmf_given(PoissonRace(), target, draft, x, RANKS)
        recursive = truncated.rank_pmf_given(RecursiveRejection(), target, draft, x, RANKS)
        for rank in range(RANKS):
            yield from contained(poisson[rank], race * (1 - race) ** rank)
            yield from contained(recursive[rank], within[rank + 1] - within[rank])


def peaks_forgotten(p: AnyPmf, q: AnyPmf, m: Lengths = (1, 1), extra: Extras = NO_EXTRAS) -> Iterator[Compared]:
    """The third rank of the Poisson race, given the output, lies between its values at the ends of the first's."""
    target, draft = lists(p, q, m, extra)
    for x in (x for x in range(len(p)) if not (is_zero(p[x]) or is_zero(q[x]))):
        first = truncated.acceptance_given(RaceVerification(), target, draft, x)
        low, high = sorted(a * (1 - a) ** 2 for a in (first.low, first.high))
        race = 1 / (1 + g(p, q, p[x] / q[x]))
        yield from contained(Interval(low - BEYOND, low, high + BEYOND, "bound"), race * (1 - race) ** 2)
    yield at_least(p[0], 0)


def matching_inside(
    p: AnyPmf, q: AnyPmf, m: Lengths = (1, 1), extra: Extras = NO_EXTRAS, inner: float = 1.0
) -> Iterator[Compared]:
    """Top-k drafts for every k, alone and given the output, and the first choices; the former in an inner part."""
    target, draft = lists(p, q, m, extra)
    order = ranked(q)
    for k in range(1, len(p) + 1):
        yield from contained(truncated.acceptance(TopKMatch(), target, draft, k), sum(p[x] for x in order[:k]), inner)
        for x in range(len(p)):
            drafted = int(x in order[:k]) + 0 * p[x]
            yield from contained(truncated.acceptance_given(TopKMatch(), target, draft, x, k), drafted)
    yield from contained(truncated.acceptance(ArgmaxDraft(), target, draft), p[order[0]])
    yield from contained(truncated.acceptance(GreedyMatch(), target, draft), int(ranked(p)[0] == order[0]) + 0 * p[0])


def ranked(pmf: AnyPmf) -> list[int]:
    """Tokens from the most probable down, ties to the lowest index."""
    rounded = floats(pmf)
    return sorted(range(len(pmf)), key=lambda x: (-rounded[x], x))
