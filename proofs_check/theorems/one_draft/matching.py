"""A4: rules that engines really use: independent match, argmax draft, greedy against greedy."""

from __future__ import annotations

import spectheory
from proofs_check.algorithms.enumeration import argmax_coupling, independent_coupling
from proofs_check.forms.divergences import entropy, overlap
from proofs_check.forms.ranks import first, independent
from proofs_check.library.cases import grid, random_pairs
from proofs_check.library.strategies import plain_pairs
from proofs_check.prelude import *
from proofs_check.proofs.divergence_proofs import ENTROPY, LOGARITHM
from proofs_check.statement.calculus import log as log_of
from spectheory.limits import first_choice_at_least, first_choice_at_most
from spectheory.verification import ArgmaxDraft, GreedyMatch, IndependentMatch, TokenVerification

Law = Mapping[tuple[int, int], Real]


def one_hot(token: int, tokens: int) -> tuple[Real, ...]:
    """All mass on one token."""
    return tuple(Fraction(int(x == token)) for x in range(tokens))


def matched(joint: Law, p: AnyPmf, acceptance: Real, given: Sequence[Real]) -> Iterator[Compared]:
    """The joint law of (draft, output) has this output law, this diagonal, and this diagonal given the output."""
    everyone = range(len(p))
    yield equal([sum(share for (_, j), share in joint.items() if j == x) for x in everyone], list(p))
    yield equal(sum(share for (i, j), share in joint.items() if i == j), acceptance)
    yield equal([joint.get((x, x), 0) for x in everyone], [p[x] * given[x] for x in everyone])


def enumerated(p: Pmf, q: Pmf) -> Iterator[Compared]:
    """The three rules, each draft and each output."""
    draft, output = first(q), one_hot(first(p), len(p))
    agree = int(first(p) == draft)
    yield from matched(independent_coupling(p, q), p, independent(p, q), q)
    yield from matched(argmax_coupling(p, q), p, p[draft], one_hot(draft, len(q)))
    yield from matched(argmax_coupling(one_hot(first(p), len(p)), q), output, agree, [agree] * len(p))


def matching_library(choice: Callable[[AnyPmf], int]) -> Callable[[AnyPmf, AnyPmf], Iterator[Compared]]:
    """The library's three rules; ties, which doubles may make of near ones, broken by `choice` among the doubles."""

    def compare(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
        target, draft = floats(p), floats(q)
        drafted, output = choice([Fraction(x) for x in draft]), choice([Fraction(x) for x in target])
        yield computed(IndependentMatch().acceptance(target, draft), independent(p, q))
        yield computed(ArgmaxDraft().acceptance(target, draft), p[drafted])
        yield computed(GreedyMatch().acceptance(target, draft), int(output == drafted))
        for x, share in enumerate(q):
            yield computed(IndependentMatch().acceptance_given(target, draft)[x], share)
            yield computed(ArgmaxDraft().acceptance_given(target, draft)[x], int(x == drafted))
            yield computed(GreedyMatch().acceptance_given(target, draft)[x], int(output == drafted))

    return compare


def bounds(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """An independent match stays below 1 - TV and the largest p; an argmax draft below the largest p alone."""
    yield at_most(independent(p, q), overlap(p, q))
    yield at_most(independent(p, q), p[first(p)])
    yield at_most(p[first(q)], p[first(p)])


STEPS: tuple[Step, ...] = (
    in_words(
        "independent draws: P(draft = x = output) is q_x p_x, over P(output = x) = p_x it is a(x) = q_x; the sum over "
        "x is the acceptance",
        lambda p, q: (q * p / p, q),
    ),
    valid(
        "pq <= min(p, q), the most of a rule with draft from q (A1): an independent match accepts at most 1 - TV",
        lambda p, q: at_most(p * q, smaller(p, q)),
        lambda p, q: [p >= 0, p <= 1, q >= 0, q <= 1],
    ),
    valid(
        "with m the largest p, pq <= mq, which sum to m",
        lambda p, q, m: at_most(p * q, m * q),
        lambda p, q, m: [p <= m, q >= 0],
    ),
    valid(
        "an argmax draft is one of law d, d = 1 at argmax q, else 0: any rule accepts min(p, d) = pd at most (A1), and "
        "comparing with the output accepts just that; these sum to p(argmax q), and over p they are a(x) = d",
        lambda p, d: [equal(smaller(p, d), p * d), equal(p * d / p, d)],
        lambda p, d: [p > 0, p <= 1, d * (1 - d) == 0],
    ),
    valid(
        "greedy against greedy is the same with p one at argmax p, else 0: de is 1 where both are 1, so the sum is "
        "1[argmax p = argmax q]",
        lambda e, d: equal(smaller(e, d), e * d),
        lambda e, d: [e * (1 - e) == 0, d * (1 - d) == 0],
    ),
)

LIBRARY = Claim("the library's three rules, ties at the lowest index", matching_library(first))

HIGHEST = Claim(
    "the library's three rules, ties at the highest index",
    matching_library(lambda pmf: max(range(len(pmf)), key=lambda x: (pmf[x], x))),
)


# A4 from the target's entropy alone: how often one token that is not sampled can be right.


FIRST_CHOICE_STEPS: tuple[Step, ...] = (
    valid(
        "with m the largest probability, p u >= p v where u = -log p >= v = -log m: summed, H >= -log m",
        lambda p, u, v: at_least(p * u, p * v),
        lambda p, u, v: [*shares(p), u >= v],
    ),
    *LOGARITHM,
    *ENTROPY,
    same(
        "with e = 1 - m the rest is e times a pmf w on V - 1 tokens, and -e w log(e w) = w(-e log e) + e(-w log w): H "
        "is h(e) plus e times the entropy of w, at most log(V - 1)",
        lambda e, w: (-e * w * log_of(e * w), w * (-e * log_of(e)) + e * (-w * log_of(w))),
    ),
    valid(
        "another token that is drafted has e no less, and h(e) + e log(V - 1) rises up to e = 1 - 1/V: with slope s at "
        "a mean e' it is below the line there (KL of two coins is not negative), so the means obey it too",
        lambda w, x, y, f, g, s, F: at_most(w * f + (1 - w) * g, F),
        lambda w, x, y, f, g, s, F: [
            *shares(w),
            f <= F + s * (x - (w * x + (1 - w) * y)),
            g <= F + s * (y - (w * x + (1 - w) * y)),
        ],
    ),
    valid(
        "and e^-H: log x <= x - 1 at x = e^(m-k), y = e^(m-n), with k and n entropies and m their mean",
        lambda w, x, y, k, n, m: at_least(w * x + (1 - w) * y, 1),
        lambda w, x, y, k, n, m: [*shares(w), m == w * k + (1 - w) * n, m - k <= x - 1, m - n <= y - 1],
    ),
)
"""At one position, then for means over positions."""


def misses(e: Real, tokens: int) -> Real:
    """h(e) + e log(V - 1)."""
    rest = 0 if is_zero(e) else -e * log(e / (tokens - 1))
    return rest + (0 if is_zero(1 - e) else -(1 - e) * log(1 - e))


def most(pmf: AnyPmf) -> Real:
    """The largest probability."""
    best = pmf[0]
    for share in pmf[1:]:
        best = larger(best, share)
    return best


def between(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """e^-H and Fano's bound for two positions with pmfs p and q."""
    best, h = (most(p) + most(q)) / 2, (entropy(p) + entropy(q)) / 2
    yield at_least(best, exp(-h))
    yield at_most(h, misses(1 - best, len(p)))


def library_ends(extra: int, p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The library: e^-H, and the inverse of Fano's bound at the value that a share of misses gives."""
    for pmf in (p, q):
        yield computed(first_choice_at_least(float(spectheory.entropy(floats(pmf)))), exp(-entropy(pmf)))
        share = 1 - float(floats(pmf).max())
        if 0 < share < 0.9 * (1 - 1 / len(pmf)):  # the inverse is steep at the uniform pmf
            yield computed(first_choice_at_most(misses(share, len(pmf)), len(pmf) + extra), most(pmf))


def pmfs(effort: Effort) -> Iterator[Case]:
    """Every pmf on 2 and 3 tokens beside the next of its grid; random pairs on up to 5."""
    for tokens in (2, 3):
        for d in range(1, effort.pick(5, 8)):
            yield from ({"p": p, "q": q} for p, q in pairwise(grid(tokens, d)))
    yield from random_pairs(effort.seed, effort.pick(20, 200), 5, 6)


def small_pmfs() -> Any:
    """2 to 4 tokens."""
    return st.integers(2, 4).flatmap(lambda tokens: plain_pairs(tokens, 99))


BETWEEN = Claim("e^-H <= max p, and H <= h(e) + e log(V-1) with e = 1 - max p, for means", between)
TIGHTER = Claim(
    "H <= h(e) + e log(V-1) - e/10", lambda p, q: at_most(entropy(p), misses(1 - most(p), len(p)) - (1 - most(p)) / 10)
)

A4 = Entry(
    id="A4",
    title="Rules that engines use in place of token verification",
    kind="identity",
    plain="draft and output drawn independently: sum pq, a(x) = q_x, at most 1 - TV; argmax draft against a "
    "sampled target: p(argmax q), a(x) = 1[x = argmax q], which may exceed 1 - TV; greedy against greedy: "
    "1[argmax p = argmax q]; ties go to the lowest index",
    latex=r"\alpha_{independent} = \sum_x p_x q_x,\quad \alpha_{argmax} = p_{\operatorname{argmax} q},\quad "
    r"\alpha_{greedy} = \mathbf 1[\operatorname{argmax} p = \operatorname{argmax} q]",
    assumptions=("p and q are pmfs on one finite vocabulary",),
    calculators=public("verification", "IndependentMatch ArgmaxDraft GreedyMatch"),
    evidence=(
        proof("term by term, for any number of tokens", STEPS),
        exact(
            Claim("every draft and every output of the three rules", enumerated),
            every_pair(7, 10),
            wrong=Claim(
                "independent draws agree with probability sum min(p, q)",
                lambda p, q: matched(independent_coupling(p, q), p, overlap(p, q), q),
            ),
        ),
        exact(
            Claim("independent <= 1 - TV; independent and argmax draft <= the largest p", bounds),
            every_pair(7, 10),
            wrong=Claim(
                "argmax draft <= 1 - TV, as if its draft were drawn from q",
                lambda p, q: at_most(p[first(q)], overlap(p, q)),
            ),
        ),
        agreement(LIBRARY, every_pair(4, 4, others=(100, 1000, 8)), wrong=HIGHEST),
        searched(LIBRARY, exact_pairs, over="2 to 5 tokens, ratios up to 1e30, near ties", wrong=HIGHEST),
        searched(
            Claim("independent <= 1 - TV; independent and argmax draft <= the largest p", bounds),
            exact_pairs,
            over="2 to 5 tokens",
            spaces=(pair_space(2), pair_space(3)),
            wrong=Claim("argmax draft <= 1 - TV", lambda p, q: at_most(p[first(q)], overlap(p, q))),
        ),
        simulated(
            "acceptance and output of independent match and of an argmax draft",
            [each for rule in ("independent", "argmax") for each in at(("single",), (TURNED, LACKING), rule=rule)],
            stated("A4", "lossless"),
            wrong=(
                "they accept as token verification does (A1)",
                instead(stated("A4"), lambda pair, _: TokenVerification().acceptance(pair["target"], pair["draft"])),
            ),
        ),
    ),
)

A4_ENTROPY = Entry(
    id="A4-entropy",
    title="The best first choice from the entropy",
    kind="bounds",
    plain="the mean of max p is at least e^-H and at most 1 - e with h(e) + e log(V-1) = H, H the mean entropy of "
    "the target: a draft token that is not sampled is accepted no more often, a perfect one at least e^-H",
    latex=r"e^{-\mathbb E H} \le \mathbb E\max_x p_x \le 1-e,\qquad h(e)+e\log(V-1)=\mathbb E H",
    assumptions=("one vocabulary of V tokens", "h(e) = -e log e - (1-e) log(1-e)", "0 <= e <= 1 - 1/V"),
    evidence=(
        proof("the largest term of the entropy, Fano's inequality, and the means", FIRST_CHOICE_STEPS),
        certified(BETWEEN, pmfs, over="pmfs on 2 and 3 tokens, random ones on up to 5", wrong=TIGHTER),
        agreement(
            Claim("the library's e^-H and the inverse of Fano's bound", lambda p, q: library_ends(0, p, q)),
            pmfs,
            over="the same pmfs",
            wrong=Claim("with one token more", lambda p, q: library_ends(1, p, q)),
        ),
        searched(BETWEEN, small_pmfs, wrong=TIGHTER),
    ),
    calculators=("spectheory.limits.first_choice_at_least", "spectheory.limits.first_choice_at_most"),
    without={"exact": "logarithms enter"},
)

A4_ENTROPY_UPPER = Entry(
    id="A4-entropy/upper",
    title="The perplexity as a limit of first choices",
    kind="refuted",
    plain="the target's first choice is right at most once in as many tokens as its perplexity says, max p <= e^-H "
    "(it is at least that)",
    latex=r"\max_x p_x \le e^{-H}",
    assumptions=("one position",),
    evidence=(
        counterexample(
            Claim("max p <= e^-H", lambda p, q: at_most(most(p), exp(-entropy(p)))),
            pmfs,
            over="first by tokens and denominator",
            true=Claim("max p >= e^-H", lambda p, q: at_least(most(p), exp(-entropy(p)))),
            kind="certified",
        ),
    ),
    without={"exact": "a logarithm enters"},
)
