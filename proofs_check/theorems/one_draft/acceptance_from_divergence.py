"""A1 from afar: what the mean divergence of a draft says of its acceptance, and what perplexities do not say."""

from __future__ import annotations

from proofs_check.forms.divergences import kl, overlap, total_variation
from proofs_check.forms.ranks import race
from proofs_check.library.cases import all_pairs, grid, random_pairs
from proofs_check.library.strategies import plain_pairs
from proofs_check.prelude import *
from proofs_check.proofs.divergence_proofs import BRETAGNOLLE_HUBER, PINSKER, TANGENT
from proofs_check.statement import arithmetic
from spectheory import kl_divergence
from spectheory.limits import (
    acceptance_at_least,
    race_acceptance_at_least,
    sufficient_divergence,
    total_variation_at_most,
)

Pair = tuple[AnyPmf, AnyPmf]

STEPS: tuple[Step, ...] = (
    same(
        "on text sampled from p a token's mean cross-entropy is -sum p log q: less the entropy it is KL, p log(p/q)",
        lambda p, u, v: (-p * v - (-p * u), p * (u - v)),
    ),
    *PINSKER,
    *TANGENT,
    *BRETAGNOLLE_HUBER,
    valid(
        "the square of a mean is at most the mean square: (E TV)^2 <= E TV^2 <= E KL/2, and <= 1 - E e^-KL",
        lambda x, y, w: at_most((w * x + (1 - w) * y) ** 2, w * x * x + (1 - w) * y * y),
        lambda x, y, w: shares(w),
    ),
    valid(
        "log x <= x - 1 at x = e^(m-k) and y = e^(m-n), with k and n the KLs and m their mean: w x + (1-w) y >= 1, so "
        "the mean of e^-KL is at least e^-m",
        lambda w, x, y, k, n, m: at_least(w * x + (1 - w) * y, 1),
        lambda w, x, y, k, n, m: [*shares(w), m == w * k + (1 - w) * n, m - k <= x - 1, m - n <= y - 1],
    ),
    valid(
        "the race: (1-v)/(1+v) lies above its tangent at the mean m of the TVs, so its mean is at least that at m",
        lambda v, m: at_least((1 - v) / (1 + v), (1 - m) / (1 + m) - 2 * (v - m) / ((1 + m) * (1 + m))),
        lambda v, m: shares(v, m),
    ),
)
"""At each position, then for means over positions."""


def pairs_of(one: Case, other: Case) -> Case:
    """Two positions of a text, both covered by their drafts."""
    return {"pairs": ((one["p"], one["q"]), (other["p"], other["q"]))}


COVERED = Assumption(
    "the drafts have every token of their targets",
    lambda pairs: arithmetic.every(not is_zero(b) or is_zero(a) for p, q in pairs for a, b in zip(p, q, strict=True)),
)


def over(pairs: tuple[Pair, ...], of: Any) -> Any:
    """The mean over positions."""
    return sum((of(p, q) for p, q in pairs), 0 * pairs[0][0][0]) / len(pairs)


def from_mean(pairs: tuple[Pair, ...]) -> Iterator[Compared]:
    """Pinsker's, and Bretagnolle and Huber's inequality, for means over positions."""
    distance, divergence = over(pairs, total_variation), over(pairs, kl)
    yield at_most(2 * distance * distance, divergence)
    yield at_most(distance * distance, 1 - exp(-divergence))


def bound_library(sharper: int, pairs: tuple[Pair, ...]) -> Iterator[Compared]:
    """The library's bounds: their square, below every mean acceptance, undone by the divergence that suffices."""
    divergence = over(pairs, kl)
    nats = sum(float(kl_divergence(floats(p), floats(q))) for p, q in pairs) / len(pairs)
    bound = total_variation_at_most(nats)
    yield computed(sharper * bound * bound, smaller(divergence / 2, 1 - exp(-divergence)))
    slack = Fraction(1, 10**12)
    yield at_most(Fraction(acceptance_at_least(nats)) - slack, over(pairs, overlap))
    yield at_most(Fraction(race_acceptance_at_least(nats)) - slack, over(pairs, race))
    if 0 < bound < 1 - 1e-6:
        yield at_most(abs(Fraction(sufficient_divergence(1 - bound)) - Fraction(nats)), Fraction(1, 10**6))


def two_positions(effort: Effort) -> Iterator[Case]:
    """Grids on two tokens, each beside the next ones; then random pairs."""
    small = list(all_pairs(2, effort.pick(3, 5)))
    for i, one in enumerate(small):
        yield from (pairs_of(one, other) for other in small[i : i + 3])
    sampled_pairs = list(random_pairs(effort.seed, effort.pick(20, 200), 4, 6))
    yield from (pairs_of(one, other) for one, other in pairwise(sampled_pairs))


def any_positions() -> Any:
    """Two positions of two tokens, shares of up to 198."""
    return st.tuples(*[plain_pairs(2, 99)] * 2).map(lambda both: pairs_of(*both))


def two_drafts(effort: Effort) -> Iterator[Case]:
    """Two tokens, first by the common denominator."""
    for d in range(2, effort.pick(12, 20) + 1):
        for share in range(1, d // 2 + 1):
            for above, below in product(range(share + 1, d), range(1, share)):
                p, near, far = ((Fraction(x, d), Fraction(d - x, d)) for x in (share, above, below))
                yield {"p": p, "near": near, "far": far}
                yield {"p": p, "near": far, "far": near}


def more_probable(p: AnyPmf, near: AnyPmf, far: AnyPmf) -> bool:
    """Whether KL of the first draft is less: in fractions, as the powers p of its probabilities are larger."""
    parts = math.lcm(*(share.denominator for share in p))
    one, other = (math.prod(b ** int(a * parts) for a, b in zip(p, q, strict=True)) for q in (near, far))
    return bool(one > other)


def scored(effort: Effort) -> Iterator[Case]:
    """Texts of n tokens out of two, scored alike: first by n and the common denominator."""
    for n, d in product(range(1, 5), range(1, effort.pick(5, 7))):
        for counts in product(range(n + 1), repeat=2):
            for p, q in product(grid(2, d), repeat=2):
                probabilities = [math.prod(a**c for a, c in zip(pmf, counts, strict=True)) for pmf in (p, q)]
                if sum(counts) == n and probabilities[0] == probabilities[1] > 0:
                    yield {"counts": counts, "p": p, "q": q}


def one_pair(effort: Effort) -> Iterator[Case]:
    """Two tokens, first by the common denominator."""
    for case in all_pairs(2, effort.pick(7, 12)):
        if min(*case["p"], *case["q"]) > 0:
            yield case


FROM_MEAN = Claim("2 (E TV)^2 <= E KL and (E TV)^2 <= 1 - e^(-E KL)", from_mean, (COVERED,))
TOO_SHARP = Claim(
    "3 (E TV)^2 <= E KL", lambda pairs: at_most(3 * over(pairs, total_variation) ** 2, over(pairs, kl)), (COVERED,)
)
LESS = Assumption("the target's text is more probable under the first draft", more_probable)

A1_KL = Entry(
    id="A1-KL",
    title="Acceptance from the mean divergence",
    kind="lower bound",
    plain="with K the mean KL of target from draft (on text sampled from the target the draft's mean "
    "cross-entropy less the target's), the mean acceptance of token verification is at least 1 - v, v = "
    "min(sqrt(K/2), sqrt(1 - e^-K)), that of a race at least (1-v)/(1+v)",
    latex=r"\mathbb E[1-TV] \ge 1-v,\quad \mathbb E\,\alpha_{race}\ge\frac{1-v}{1+v},\quad "
    r"v=\min\Big(\sqrt{K/2},\sqrt{1-e^{-K}}\Big),\quad K=\mathbb E\,KL(P_n\|Q_n)",
    assumptions=("both means are over the same positions of text sampled from the target",),
    evidence=(
        proof("Pinsker, Bretagnolle and Huber at each position, and the means", STEPS),
        exact(
            Claim(
                "the mean acceptance of a race is at least (1 - E TV)/(1 + E TV)",
                lambda pairs: at_least(over(pairs, race), 2 / (1 + over(pairs, total_variation)) - 1),
            ),
            two_positions,
            over="two positions: pairs on two tokens, and random ones on up to 4",
            wrong=Claim(
                "it is at least 1 - E TV", lambda pairs: at_least(over(pairs, race), 1 - over(pairs, total_variation))
            ),
        ),
        certified(FROM_MEAN, two_positions, over="the same two positions", wrong=TOO_SHARP),
        agreement(
            Claim(
                "the library's bounds, and the divergence that suffices for an acceptance",
                lambda pairs: bound_library(1, pairs),
                (COVERED,),
            ),
            two_positions,
            over="the same two positions",
            wrong=Claim("the bound on TV is larger by a factor 2", lambda pairs: bound_library(2, pairs), (COVERED,)),
        ),
        searched(FROM_MEAN, any_positions, wrong=TOO_SHARP),
    ),
    source=("daliri2025",),
    calculators=public(
        "limits", "total_variation_at_most acceptance_at_least race_acceptance_at_least sufficient_divergence"
    ),
)

A1_KL_ORDER = Entry(
    id="A1-KL/order",
    title="Lower perplexity as more acceptance",
    kind="refuted",
    plain="of two drafts of one target that with the lower perplexity on the target's text is accepted at least as "
    "often (KL weighs rare tokens by logarithms, acceptance does not)",
    latex=r"KL(P\|Q_1) < KL(P\|Q_2) \implies 1-TV(P,Q_1) \ge 1-TV(P,Q_2)",
    assumptions=("text sampled from the target",),
    evidence=(
        counterexample(
            Claim(
                "the draft of less KL is accepted at least as often",
                lambda p, near, far: at_least(overlap(p, near), overlap(p, far)),
                (LESS,),
            ),
            two_drafts,
            true=Claim(
                "each is accepted as often as its KL assures, 2 TV^2 <= KL",
                lambda p, near, far: [at_most(2 * total_variation(p, q) ** 2, kl(p, q)) for q in (near, far)],
                (LESS,),
            ),
            kind="certified",
        ),
    ),
    without={"exact": "a logarithm enters"},
)

A1_KL_EQUAL = Entry(
    id="A1-KL/equal",
    title="Equal perplexity as full acceptance",
    kind="refuted",
    plain="a draft that scores a text as the target does, with the same perplexity, is accepted always (true of "
    "text sampled from the target, where the difference is KL; other text may favour both alike)",
    latex=r"\textstyle\sum_n\log q(x_n)=\sum_n\log p(x_n) \implies TV(P,Q)=0",
    assumptions=("a text that was not sampled from the target", "both pmfs the same at each position"),
    evidence=(
        counterexample(
            Claim("full acceptance", lambda counts, p, q: equal(overlap(p, q), 1)),
            scored,
            true=Claim(
                "full acceptance if the text's shares are the target's",
                lambda counts, p, q: equal(
                    overlap(p, q) if tuple(Fraction(c, sum(counts)) for c in counts) == tuple(p) else 1, 1
                ),
            ),
        ),
    ),
)

A1_KL_UPPER = Entry(
    id="A1-KL/upper",
    title="The exponential of the divergence as an upper bound",
    kind="refuted",
    plain="acceptance is at most e^-KL, the ratio of the perplexities (no function of KL but 1 is an upper bound: "
    "a draft that lacks a token of small probability has infinite KL and nearly full acceptance)",
    latex=r"1-TV(P,Q)\le e^{-KL(P\|Q)}",
    assumptions=("p and q are positive everywhere",),
    evidence=(
        counterexample(
            Claim("1 - TV <= e^-KL", lambda p, q: at_most(overlap(p, q), exp(-kl(p, q)))),
            one_pair,
            true=Claim("1 - TV >= e^-KL / 2", lambda p, q: at_least(2 * overlap(p, q), exp(-kl(p, q)))),
            kind="certified",
        ),
    ),
    without={"exact": "a logarithm enters"},
)
