"""Y5: the least bias of a rule that accepts more than it may, and the recovery laws that reach it."""

from __future__ import annotations

from proofs_check.algorithms.rejection_algorithms import *
from proofs_check.evidence.simulated import OVER_ACCEPTING
from proofs_check.prelude import *
from spectheory.limits import biased_loss, optimal_recovery, rejection_probability, uno_loss


def _loss(p: Pmf, q: Pmf, b: Pmf, half: int = 2) -> Iterator[Compared]:
    """The least loss, reached by the law of (p - bq)+ and by the standard one; UNO's, between it and TV."""
    best = loss_of(p, q, b, best_recovery(p, q, b))
    yield equal(best, distance(p, kept(q, b)) - outcome(q, b, q)[0] / half)
    yield equal(best, sum(excess(kept(q, b), p)))
    yield equal(best, loss_of(p, q, b, normed(excess(p, q), p)))
    rejected, _ = outcome(q, b, q)
    uno = loss_of(p, q, b, p)
    yield equal(uno, distance([(1 - rejected) * share for share in p], kept(q, b)))
    yield at_most(best, uno)
    yield at_most(uno, distance(p, q))


def _recoveries(p: Pmf, q: Pmf, b: Pmf, r: Pmf, strict: bool = False) -> Iterator[Compared]:
    """No recovery law loses less; the same only if it is 0 where p < bq and at most A elsewhere."""
    rejected, _ = outcome(q, b, r)
    loss, least = loss_of(p, q, b, r), stated_loss(p, q, b)
    yield at_least(loss, least)
    within = all(rejected * share <= most for share, most in zip(r, excess(p, kept(q, b)), strict=True))
    standard = r == best_recovery(p, q, b) or rejected == 0
    yield equal(int(loss == least), int(standard if strict else within))


def _computed(p: Pmf, q: Pmf, b: Pmf, uno_keeps: int = 1) -> Iterator[Compared]:
    given = floats(p), floats(q), floats(b)
    rejected, _ = outcome(q, b, q)
    yield computed(biased_loss(*given), stated_loss(p, q, b))
    yield computed(rejection_probability(*given), rejected)
    yield computed(uno_loss(*given), distance([(1 - uno_keeps * rejected) * a for a in p], kept(q, b)))
    yield from map(computed, optimal_recovery(*given), best_recovery(p, q, b))


def _rule(**values: Real) -> list[Real]:
    return [value >= 0 for value in values.values()]


PROOF = (
    valid(
        "whatever is recovered, s = c r >= 0, token x adds (bq + s - p)+ = (bq - p)+ + (s - (p - bq)+)+ to the loss: "
        "so Loss >= sum (bq - p)+, equal if and only if s <= (p - bq)+, which is r = 0 on {A < 0} and r <= A elsewhere",
        lambda p, q, b, s: equal(
            positive_part(b * q + s - p), positive_part(b * q - p) + positive_part(s - positive_part(p - b * q))
        ),
        lambda p, q, b, s: _rule(p=p, q=q, b=b, s=s),
    ),
    same(
        "such a law exists for every b: p - bq = (1 - b)q + (p - q), whose sum is c",
        lambda p, q, b: (p - b * q, (1 - b) * q + (p - q)),
    ),
    valid(
        "so the positive part of p - bq sums to at least c, and r in proportion to it has c r <= (p - bq)+",
        lambda x, above, c: at_most(c * (x / above), x),
        lambda x, above, c: [x >= 0, above >= c, c > 0],
    ),
    valid(
        "(bq - p)+ = |p - bq|/2 - (p - bq)/2, whose sum is Loss* = sum |p - bq|/2 - c/2",
        lambda p, q, b: equal(2 * positive_part(b * q - p), absolute(p - b * q) - (p - b * q)),
    ),
    valid(
        "with min(1, p/q) <= b <= 1 both (p - bq)+ and (p - q)+ are p - q where p > q, and 0 elsewhere: the standard "
        "recovery law serves every b",
        lambda p, q, b: equal(positive_part(p - b * q), positive_part(p - q)),
        lambda p, q, b: [*_rule(p=p, q=q, b=b), b <= 1, b * q >= smaller(p, q)],
    ),
    same(
        "UNO recovers c p: bq + cp - p = bq - (1 - c)p, so its loss is sum |(1 - c)p - bq|/2, and by the first step "
        "not below Loss*",
        lambda p, q, b, c: (b * q + c * p - p, b * q - (1 - c) * p),
    ),
    valid(
        "and at most TV: ((1 - c)p - bq)+ <= (p - q)+ term by term",
        lambda p, q, b, c: at_most(positive_part((1 - c) * p - b * q), positive_part(p - q)),
        lambda p, q, b, c: [*_rule(p=p, q=q, b=b, c=c), c <= 1, b <= 1, b * q >= smaller(p, q)],
    ),
)

LEAST = Claim("loss >= Loss* for any b and r", lambda p, q, b, r: at_least(loss_of(p, q, b, r), stated_loss(p, q, b)))
UNO = "recovery from p itself loses no more than the best recovery law"


def by_denominator(effort: Effort) -> Iterator[Case]:
    """First among pairs on 2 tokens by denominator, from the unbiased acceptance up."""
    for pair in cases.pairs(2, effort.pick(5, 8)):
        for share in (Fraction(0), Fraction(1, 2), Fraction(1)):
            yield {**pair, "b": accepted(pair["p"], pair["q"], (share, share))}


Y5 = Entry(
    id="Y5",
    title="The least bias of over-acceptance",
    kind="optimality",
    plain="accept x with probability b, else recover from r, c = sum (1-b)q: TV(output, p) >= Loss* = "
    "sum |p - bq|/2 - c/2 = sum (bq - p)+, with equality if and only if r = 0 on {A < 0} and 0 <= r <= A "
    "elsewhere, A = (p - bq)/c; recovery from p itself (UNO) loses sum |(1-c)p - bq|/2, from Loss* to TV",
    latex=r"TV(bq + cr, p) \ge \tfrac12\sum|p-bq| - \tfrac12\sum(1-b)q = \sum(bq-p)_+,\quad "
    r"= \iff 0 \le r \le A_+,\; A = \frac{p-bq}{c}",
    source=("yin2024",),
    assumptions=(
        "one position; in a sequence the prefixes follow the biased output law",
        "0 <= b <= 1 for the least loss and the laws that reach it; min(1, p/q) <= b for the standard law "
        "norm (p - q)+ and for UNO's TV",
        "c = 0 has no recovery, and loss TV",
    ),
    calculators=public("limits", "biased_loss rejection_probability optimal_recovery uno_loss"),
    evidence=(
        proof("term by term, for any vocabulary: the lower bound is the dual of the linear programme over r", PROOF),
        exact(
            Claim("Loss* = sum |p-bq|/2 - sum (1-b)q/2 = sum (bq-p)+, reached; Loss* <= UNO = ... <= TV", _loss),
            over_accepting,
            over="output laws themselves; pairs on 2 tokens of denominator up to 5, random ones on up to 5",
            wrong=Claim("the same with sum (1-b)q in place of its half", lambda p, q, b: _loss(p, q, b, half=1)),
        ),
        exact(
            Claim("loss >= Loss*, and = if and only if c r <= (p - bq)+", _recoveries),
            any_rule,
            wrong=Claim(
                "only the law proportional to (p - bq)+ reaches Loss*", lambda **case: _recoveries(**case, strict=True)
            ),
        ),
        agreement(
            Claim("the library's losses, rejection probability and recovery law", _computed),
            over_accepting,
            over="the same pairs",
            wrong=Claim("UNO's loss with c left out", lambda p, q, b: _computed(p, q, b, uno_keeps=0)),
        ),
        searched(
            LEAST,
            drawn_rules,
            over="3 tokens, entries of all sizes; the optimiser on 2",
            spaces=(rule_space(2),),
            wrong=Claim(
                "loss >= sum |p - bq|/2", lambda p, q, b, r: at_least(loss_of(p, q, b, r), distance(p, kept(q, b)))
            ),
        ),
        simulated(
            "the output's law with the best recovery",
            at(("biased",), OVER_ACCEPTING, recovery="optimal"),
            stated("Y5"),
            wrong=("that of recovery from the target", stated("Y5", recovery="target")),
        ),
    ),
)

Y5_UNO = Entry(
    id="Y5/uno",
    title="Recovery from the target itself",
    kind="refuted",
    plain=UNO,
    latex=r"TV(bq + cp, p) = Loss^*(b)",
    assumptions=("min(1, p/q) <= b <= 1",),
    evidence=(
        counterexample(
            Claim(UNO, lambda p, q, b: at_most(loss_of(p, q, b, p), stated_loss(p, q, b))),
            by_denominator,
            true=Claim(
                "recovery from norm (p - q)+ loses no more",
                lambda p, q, b: at_most(loss_of(p, q, b, normed(excess(p, q), p)), stated_loss(p, q, b)),
            ),
        ),
    ),
)
