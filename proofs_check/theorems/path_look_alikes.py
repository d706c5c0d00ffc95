"""§7: three statements that look like the path theorem's and are false."""

from __future__ import annotations

from proofs_check.agreement.one_call_bound import accepted, bound
from proofs_check.agreement.path_cases import CHAINS, SurvivalOf, constant, greedy
from proofs_check.algorithms.lossless_calls import most_accepted
from proofs_check.forms.divergences import overlap
from proofs_check.prelude import *
from proofs_check.twins import path_theorem


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

ENTRIES = (
    Entry(
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
                    "some lossless call survives as often (largest by a linear programme)",
                    partial(of_some_rule, STATED),
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
    ),
    Entry(
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
                    "p(argmax q) <= sum min(p, q)",
                    lambda p, q: at_most(argmax_accepts(p, q, 1), overlap(p, q)),
                    NO_TIES,
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
    ),
)
"""What this file refutes."""
