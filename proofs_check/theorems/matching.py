"""A4: rules that engines really use: independent match, argmax draft, greedy against greedy."""

from __future__ import annotations

from proofs_check.algorithms.enumeration import argmax_coupling, independent_coupling
from proofs_check.forms.divergences import overlap
from proofs_check.forms.ranks import first, independent
from proofs_check.prelude import *
from spectheory.verification import ArgmaxDraft, GreedyMatch, IndependentMatch, TokenVerification

Law = Mapping[tuple[int, int], Real]


def last(pmf: AnyPmf) -> int:
    """The most probable token, the highest index first: the wrong way to break a tie."""
    return max(range(len(pmf)), key=lambda x: (pmf[x], x))


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


def library(choice: Callable[[AnyPmf], int]) -> Callable[[AnyPmf, AnyPmf], Iterator[Compared]]:
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

LIBRARY = Claim("the library's three rules, ties at the lowest index", library(first))

HIGHEST = Claim("the library's three rules, ties at the highest index", library(last))

ENTRIES = (
    Entry(
        id="A4",
        title="Rules that engines use in place of token verification",
        kind="identity",
        plain="draft and output drawn independently: sum pq, a(x) = q_x, at most 1 - TV; argmax draft against a "
        "sampled target: p(argmax q), a(x) = 1[x = argmax q], which may exceed 1 - TV; greedy against greedy: "
        "1[argmax p = argmax q]; ties go to the lowest index",
        latex=r"\alpha_{independent} = \sum_x p_x q_x,\quad \alpha_{argmax} = p_{\operatorname{argmax} q},\quad "
        r"\alpha_{greedy} = \mathbf 1[\operatorname{argmax} p = \operatorname{argmax} q]",
        assumptions=("p and q are pmfs on one finite vocabulary",),
        calculators=(
            "spectheory.verification.IndependentMatch",
            "spectheory.verification.ArgmaxDraft",
            "spectheory.verification.GreedyMatch",
        ),
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
                    instead(
                        stated("A4"), lambda pair, _: TokenVerification().acceptance(pair["target"], pair["draft"])
                    ),
                ),
            ),
        ),
    ),
)
