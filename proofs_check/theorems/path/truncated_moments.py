"""§9 where logarithms enter, and what a list itself says: ends of entropies and of KL and its kin."""

from __future__ import annotations

from proofs_check.evidence.judge import ROUNDING
from proofs_check.forms.divergences import entropy, g, kl, moment, renyi, second_moment
from proofs_check.forms.ranks import closed_form, odds
from proofs_check.prelude import *
from proofs_check.theorems.path.completions import NO_EXTRAS, Extras, Lengths, best, listed, seen
from proofs_check.theorems.path.truncated_intervals import RANKS, contained, covered, end_like, lists
from spectheory import truncated
from spectheory.intervals import Interval
from spectheory.verification import (
    ArgmaxDraft,
    GreedyMatch,
    IndependentMatch,
    PoissonRace,
    RaceVerification,
    RecursiveRejection,
    TokenVerification,
    TopKMatch,
)

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
    found = truncated.total_variation(*pair), truncated.acceptance(TokenVerification(), *pair)
    mean = truncated.mean_interval(found)
    for end in ("low", "high"):
        yield computed(getattr(mean, end), sum(Fraction(getattr(each, end)) for each in found) / 2)


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
        found = bound(target)
        yield from _attained(found.low, value(filled) + 0 * p[0])
        yield from _attained(found.high, value(even) + 0 * p[0])
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
    p: AnyPmf, q: AnyPmf, m: Lengths, extra: Extras, behind: Sequence[tuple[Real, Real]]
) -> Iterator[Compared]:
    """The Poisson race's H(R): above the low end lies H(R|X) already, below the high end the sum of the first ranks.

    And of p as the law of a rank: no more than the largest entropy at its mean logarithm.
    """
    mean = _mean_logarithm(p)
    largest = truncated.largest_rank_entropy(math.nextafter(float(floats([mean])[0]), math.inf))
    yield at_most(entropy(p) + 0 * p[0], end_like(largest, mean))
    target, draft = lists(p, q, m, extra)
    if any(is_zero(b) and not is_zero(a) for a, b in zip(p, q, strict=True)):
        return  # R is infinite
    found = truncated.poisson_rank_entropy(target, draft)
    if found.high - found.low > KNOWN:
        conditional = _conditional_entropy(behind)
        yield at_least(conditional, end_like(found.low, conditional))
    if found.high < math.inf:
        some = _first_ranks(behind)
        yield at_most(some, end_like(found.high + KNOWN, some))


def twice_the_mean(p: AnyPmf, q: AnyPmf, m: Lengths, extra: Extras, behind: Sequence[tuple[Real, Real]]) -> Compared:
    """Of p as the law of a rank: an entropy of at most twice the mean logarithm."""
    return at_most(entropy(p) + 0 * p[0], 2 * _mean_logarithm(p))


def _mean_logarithm(p: AnyPmf) -> Real:
    return sum((share * log(rank) for rank, share in enumerate(p, 1)), 0 * p[0])


def _conditional_entropy(behind: Sequence[tuple[Real, Real]]) -> Real:
    """H(R|X): a geometric rank has (1+g) log(1+g) - g log g."""
    parts = [share * ((1 + y) * log(1 + y) - y * log(y)) for share, y in behind if not is_zero(y)]
    return sum(parts, 0 * behind[0][0])


def _first_ranks(behind: Sequence[tuple[Real, Real]]) -> Real:
    """The sum of -P(R = r) log P(R = r) over the first ranks."""
    total, law = 0 * behind[0][0], [(share / (1 + y), y / (1 + y)) for share, y in behind]
    for _ in range(TERMS):
        mass = sum(share for share, _ in law)
        total = total - (0 if is_zero(mass) else mass * log(mass))
        law = [(share * again, again) for share, again in law]
    return total


# §9 given the output token, and matching rules: intervals from two lists beside the exact values they enclose.


BEYOND = 1e-9
"""What a wrong claim is given beyond rounding, so that it fails for its own reason."""


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


def matching_inside(p: AnyPmf, q: AnyPmf, m: Lengths = (1, 1), extra: Extras = NO_EXTRAS) -> Iterator[Compared]:
    """Top-k drafts for every k, alone and given the output, and the first choices."""
    target, draft = lists(p, q, m, extra)
    order = ranked(q)
    for k in range(1, len(p) + 1):
        yield from contained(truncated.acceptance(TopKMatch(), target, draft, k), sum(p[x] for x in order[:k]))
        for x in range(len(p)):
            drafted = int(x in order[:k]) + 0 * p[x]
            yield from contained(truncated.acceptance_given(TopKMatch(), target, draft, x, k), drafted)
    yield from contained(truncated.acceptance(ArgmaxDraft(), target, draft), p[order[0]])
    yield from contained(truncated.acceptance(GreedyMatch(), target, draft), int(ranked(p)[0] == order[0]) + 0 * p[0])


def only_listed(p: AnyPmf, q: AnyPmf, m: Lengths = (1, 1), extra: Extras = NO_EXTRAS) -> Iterator[Compared]:
    """What the target's list lacks is never accepted."""
    shown = {int(x) for x in lists(p, q, m, extra)[0].known}
    for k in range(1, len(p) + 1):
        drafts = ranked(q)[:k]
        yield at_most(sum(p[x] for x in drafts), sum((p[x] for x in drafts if x in shown), 0 * p[0]))


def ranked(pmf: AnyPmf) -> list[int]:
    """Tokens from the most probable down, ties to the lowest index."""
    rounded = floats(pmf)
    return sorted(range(len(pmf)), key=lambda x: (-rounded[x], x))
