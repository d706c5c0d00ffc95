"""§7: what engines count per call, and what it is not: starts are where calls ended, and depend on k."""

from __future__ import annotations

from math import prod

from proofs_check.agreement.path_cases import CHAINS, SurvivalOf, constant, greedy
from proofs_check.agreement.whole_calls import accepted, bound
from proofs_check.algorithms.lossless_calls import most_accepted
from proofs_check.forms.divergences import overlap
from proofs_check.prelude import *
from proofs_check.theorems.path.call_counts import reading
from proofs_check.twins import path_theorem
from proofs_check.twins.path_theorem import Survival
from proofs_check.twins.tree_theorem import visits


def along(accept: Sequence[int]) -> Survival:
    """The survival of a rule that accepts at each position by itself."""
    return lambda n, i: Fraction(prod(accept[n : n + i]))


def per_call(weighted: bool, accept: Sequence[int], k: int) -> Iterator[Compared]:
    """N/C(0) against the reading over uniform starts, or over the starts that calls have."""
    survival, length = along(accept), len(accept)
    weights = visits(survival, k, length) if weighted else [Fraction(1)] * length
    yield equal(length / path_theorem.calls(survival, k, length)[0], reading(survival, k, length, weights))


def bounded(weighted: bool, accept: Sequence[int], k: int) -> Iterator[Compared]:
    """N/C(0) no more than the reading."""
    for each in per_call(weighted, accept, k):
        yield at_most(each.left, each.right)


def patterns(_: Effort) -> Iterator[Case]:
    """Positions where a draft is always or never accepted, the shortest text and chain first."""
    for length in range(1, 6):
        for k, accept in product(range(1, length + 1), product((0, 1), repeat=length)):
            yield {"accept": accept, "k": k}


def alternating(difference: bool, a: Fraction, b: Fraction) -> Iterator[Compared]:
    """A long text of two positions in turn, k = 1: a call that starts at one of them stays there if its draft holds."""
    shares = [Fraction(1, 2), Fraction(1, 2)] if a == b == 1 else [(1 - b) / (2 - a - b), (1 - a) / (2 - a - b)]
    yield equal(shares[0], shares[0] * a + shares[1] * (1 - b))
    long_run = 1 + shares[0] * a + shares[1] * b
    off = (a - b) ** 2 / (2 * (2 - a - b)) if difference and a != b else Fraction(0)
    yield equal(long_run - (1 + (a + b) / 2), off)


def two_positions(_: Effort) -> Iterator[Case]:
    """Acceptances in halves, thirds, ..."""
    for d in range(1, 9):
        for a, b in product(range(d + 1), repeat=2):
            yield {"a": Fraction(a, d), "b": Fraction(b, d)}


def first_drafts(accept: Sequence[int], k: int) -> tuple[Fraction, Fraction]:
    """The share of calls whose first draft is accepted, as counted on all calls, and by their expected starts."""
    survival, length = along(accept), len(accept)
    law = path_theorem.all_calls_law(survival, k, length)
    calls = sum((share * len(accepted) for accepted, share in law.items()), Fraction(0))
    hits = sum((share * sum(each > 0 for each in accepted) for accepted, share in law.items()), Fraction(0))
    weights = visits(survival, k, length)
    weighed = sum((weight * survival(n, 1) for n, weight in enumerate(weights)), Fraction(0))
    return hits / calls, weighed / sum(weights, Fraction(0))


def as_with_one(accept: Sequence[int], k: int) -> Compared:
    """Counted with k drafts a call and with one."""
    return equal(first_drafts(accept, k)[0], first_drafts(accept, 1)[0])


# §7: three statements that look like the path theorem's and are false.


def as_survival(stated: SurvivalOf, p: Any, q: Any) -> Iterator[Compared]:
    """What is stated against block verification run through, two drafts, every text of two tokens."""
    target, draft = constant(p), constant(q)
    law = Decoding(CHAINS["block"].algorithm, 2, 2).law(target, draft)
    for text in text_law(target, 2):
        counts, survival = given_text(law, text), stated(target, draft, text)
        for i in (1, 2):
            alive = sum((share for calls, share in counts.items() if calls[0] >= i), Fraction(0))
            yield equal(survival(0, i), alive)


def of_some_rule(stated: SurvivalOf, p: Any, q: Any) -> Iterator[Compared]:
    """What is stated against the most of any lossless call."""
    target, draft = constant(p), constant(q)
    for (text, depth), most in most_accepted(target, draft, 2).items():
        yield at_most(stated(target, draft, text)(0, depth), most)


def falls(stated: SurvivalOf, p: Any, q: Any) -> Iterator[Compared]:
    """P(tau >= 2) is no more than P(tau >= 1)."""
    target, draft = constant(p), constant(q)
    for text in text_law(target, 2):
        survival = stated(target, draft, text)
        yield at_most(survival(0, 2), survival(0, 1))


def in_the_recursion(stated: SurvivalOf, p: Any, q: Any) -> Iterator[Compared]:
    """Expected calls of block verification for texts of three tokens, two drafts."""
    target, draft = constant(p), constant(q)
    law = Decoding(CHAINS["block"].algorithm, 2, 3).law(target, draft)
    for text in text_law(target, 3):
        counts = given_text(law, text)
        mean = sum((len(calls) * share for calls, share in counts.items()), Fraction(0))
        yield equal(path_theorem.calls(stated(target, draft, text), 2, 3)[0], mean)


def first_choice(q: Pmf) -> Pmf:
    """The law of the argmax draft."""
    return greedy(constant(q))(())


def argmax_accepts(p: Pmf, q: Pmf, k: int) -> Fraction:
    """E[tau] of argmax drafts in one call, run through."""
    return accepted(CHAINS["argmax"].algorithm, constant(p), constant(q), k)


NO_TIES = (Assumption("q has one most probable token, so that no tie decides", lambda p, q: q.count(max(q)) == 1),)

STATED, TRUE = path_theorem.one_call_terms, path_theorem.block_survival

BY_DENOMINATOR = "first by the common denominator of one pair on 2 tokens at every position"


P7_MEAN = Entry(
    id="§7/mean",
    title="Tokens per call as a mean over starts",
    kind="refuted",
    plain="tokens per call are 1 + the accepted drafts of a call averaged over uniform starts (calls start where "
    "the last one ended, so the starts are not uniform: N/C(0) is right)",
    latex=r"\frac{N}{C(0)} = 1 + \frac1N \sum_n \sum_i P(\tau_n \ge i \mid x)",
    assumptions=("only drafts before the text's last token are counted, which excludes end effects",),
    evidence=(
        counterexample(
            Claim("N/C(0) = 1 + mean over starts of the accepted drafts", partial(per_call, False)),
            patterns,
            over="first at the shortest text and chain of drafts that always or never hold (accept)",
            true=Claim(
                "N/C(0) = 1 + mean accepted drafts over starts weighted by the calls that start there",
                partial(per_call, True),
            ),
        ),
        counterexample(
            Claim("N/C(0) is at most the mean over starts of the one-call bound", partial(bounded, False)),
            patterns,
            over="the same texts: where ratios are 0 or 1 the bound's terms are the survival",
            true=Claim("it is at most the mean over the starts that calls have", partial(bounded, True)),
        ),
        counterexample(
            Claim("in a long text of two positions in turn with k = 1 the two agree", partial(alternating, False)),
            two_positions,
            over="first by the denominator of the positions' acceptances a and b",
            true=Claim("the calls' own mean is larger by (a-b)^2/(2(2-a-b))", partial(alternating, True)),
        ),
    ),
    calculators=("spectheory.prediction.paths.calls_and_visits",),
)

P7_FIRST_DRAFT = Entry(
    id="§7/first-draft",
    title="The first draft's acceptance and the number of drafts",
    kind="refuted",
    plain="the share of calls whose first draft is accepted does not depend on k (calls start where the last one "
    "ended, so another k has other starts: S_1(k) = sum_n v(n) P(tau >= 1 | n)/sum_n v(n), v the expected calls "
    "that start at n for that k; it may fall or rise with k without any fault)",
    latex=r"S_1(k) = S_1(1)",
    assumptions=("one rule, one pair of models, one text",),
    evidence=(
        counterexample(
            Claim("S_1(k) = S_1(1), counted on all calls", as_with_one),
            patterns,
            over="first at the shortest text and chain of drafts that always or never hold (accept)",
            true=Claim(
                "S_1(k) is the mean over the starts weighted by the calls that start there with that k",
                lambda accept, k: equal(*first_drafts(accept, k)),
            ),
        ),
    ),
    calculators=("spectheory.prediction.paths.calls_and_visits",),
)

P7_PRODUCT = Entry(
    id="§7/product",
    title="The product of the ratios as a survival",
    kind="refuted",
    plain="P(tau >= i | text) = min(1, rho_1..rho_i) for block verification, or for some lossless rule, and may be "
    "used in C(n) (it rises with i where a ratio above 1 follows one below 1: the running minimum is right)",
    latex=r"P(\tau \ge i \mid x) = \min\Big(1, \prod_{l\le i} \rho_{n+l}\Big)",
    assumptions=("drafts drawn from q, a lossless rule, text after the call drawn afresh",),
    evidence=(
        counterexample(
            Claim("it is block verification's survival (two drafts, run through)", partial(as_survival, STATED)),
            lambda _: cases.pairs(2, 6),
            over=BY_DENOMINATOR,
            true=Claim("min(1, min_j rho_1..rho_j) is", partial(as_survival, TRUE)),
        ),
        counterexample(
            Claim(
                "some lossless call survives as often (largest by a linear programme)", partial(of_some_rule, STATED)
            ),
            lambda _: cases.pairs(2, 4),
            over=BY_DENOMINATOR,
            true=Claim("one survives as often as the running minimum", partial(of_some_rule, TRUE)),
        ),
        counterexample(
            Claim("it is a survival function: P(tau >= 2) <= P(tau >= 1)", partial(falls, STATED)),
            lambda _: cases.pairs(2, 6),
            over=BY_DENOMINATOR,
            true=Claim("the running minimum is one", partial(falls, TRUE)),
        ),
        counterexample(
            Claim(
                "in C(n) it gives block verification's calls for texts of three tokens",
                partial(in_the_recursion, STATED),
            ),
            lambda _: cases.pairs(2, 6),
            over=BY_DENOMINATOR,
            true=Claim("the running minimum does", partial(in_the_recursion, TRUE)),
        ),
    ),
)

P7_ARGMAX = Entry(
    id="§7/argmax",
    title="The one-call bound for drafts that are not drawn from q",
    kind="refuted",
    plain="argmax drafts accept no more than 1 - TV(p, q) at one position (A1), nor than the one-call bound in a "
    "call (they may: their law is a point mass, and the bound with that law holds)",
    latex=r"p(\operatorname{argmax} q) \le 1 - TV(p, q)",
    assumptions=("the draft is q's most probable token",),
    evidence=(
        counterexample(
            Claim(
                "p(argmax q) <= sum min(p, q)", lambda p, q: at_most(argmax_accepts(p, q, 1), overlap(p, q)), NO_TIES
            ),
            lambda _: cases.pairs(2, 8),
            over="first by the common denominator, on 2 tokens",
            true=Claim(
                "p(argmax q) = 1 - TV(p, law of the draft)",
                lambda p, q: equal(argmax_accepts(p, q, 1), overlap(p, first_choice(q))),
                NO_TIES,
            ),
        ),
        counterexample(
            Claim(
                "two argmax drafts accept at most the one-call bound of p and q",
                lambda p, q: at_most(argmax_accepts(p, q, 2), bound(constant(p), constant(q), 2)),
                NO_TIES,
            ),
            lambda _: cases.pairs(2, 6),
            over=BY_DENOMINATOR,
            true=Claim(
                "they accept at most the bound of p and the drafts' own law",
                lambda p, q: at_most(argmax_accepts(p, q, 2), bound(constant(p), constant(first_choice(q)), 2)),
                NO_TIES,
            ),
        ),
    ),
)
