"""Y6: rejection and bias trade one for one, along mixtures of target and draft."""

from __future__ import annotations

from proofs_check.agreement.bias_along_text import TEXT
from proofs_check.algorithms.biased_rules import (
    THETAS,
    accepted,
    biased_rule,
    drawn_mixtures,
    drawn_rules,
    loss_of,
    mixed,
    mixed_pairs,
    mixture,
    over_accepting,
    positions,
    rule_space,
    standard,
    stated_loss,
    with_thetas,
)
from proofs_check.algorithms.rejection_algorithms import (
    Chain,
    Pmf,
    Table,
    array_of,
    chains,
    decoded,
    distance,
    excess,
    model_of,
    outcome,
    start_of,
    steps_of,
    table_of,
    tables,
)
from proofs_check.evidence.simulated_settings import OVER_ACCEPTING
from proofs_check.prelude import *
from proofs_check.twins.batch_recursion import y1_profile
from spectheory import total_variation
from spectheory.limits import bias_frontier, expected_rejections, mean_bias_frontier, mixture_target
from spectheory.verification import BiasedVerification


def _no_cheaper(p: Pmf, q: Pmf, b: Pmf, r: Pmf, factor: int = 1) -> Compared:
    """P(reject) + loss >= TV, any acceptance and recovery."""
    return at_least(outcome(q, b, r)[0] + factor * loss_of(p, q, b, r), distance(p, q))


def _mixture(p: Pmf, q: Pmf, theta: Real, standard_loss: bool = True) -> Iterator[Compared]:
    """The family: its acceptance, output law, rejection and loss."""
    b, m = accepted(p, q, (theta,) * len(p)), mixture(p, q, theta)
    yield equal(
        tuple(accept * share for accept, share in zip(b, q, strict=True)),
        tuple(smaller(low, share) for low, share in zip(m, q, strict=True)),
    )
    rejected, output = outcome(q, b, standard(p, q) if standard_loss else p)
    yield equal(output, m)
    yield equal(rejected, (1 - theta) * distance(p, q))
    yield equal(distance(output, p), theta * distance(p, q))


def _sequence(target: Table, draft: Table, theta: Real, biased_prefixes: bool = True) -> Iterator[Compared]:
    """Whole texts: the law of the chain of mixtures, and its Y1."""
    profile, calls, outputs = decoded(biased_rule(target, draft, theta), target, draft)
    m, steps = mixed(target, draft, theta), steps_of(target)
    yield equal(outputs, {text: share for text, share in text_law(model_of(m), steps).items() if share > 0})
    along = m if biased_prefixes else target
    stated = tuple((1 - theta) * term for term in y1_profile(target, draft, steps, along=along))
    yield equal(profile, stated)
    yield equal(calls, 1 + sum(stated[:-1]))


def _solved(p: Pmf, q: Pmf, theta: Real = THETAS[1], power: int = 1) -> Iterator[Compared]:
    m = mixture(p, q, theta)
    yield equal(sum(excess(q, m)), (1 - theta) * distance(p, q))
    yield equal(distance(m, p), theta**power * distance(p, q))


def _computed_position(p: Pmf, q: Pmf, theta: Real, sign: int = 1) -> Iterator[Compared]:
    """The front and the rule at one position."""
    given, tv, m = (floats(p), floats(q)), distance(p, q), mixture(p, q, theta)
    front = bias_frontier(*given, points=5)
    for i, share in enumerate(Fraction(i, 4) for i in range(5)):
        yield computed(front.theta[i], share)
        yield computed(front.reject[i], (1 - share) * tv)
        yield computed(front.loss[i], share * tv)
        yield computed(np.asarray(front.uno)[i], loss_of(p, q, accepted(p, q, (share,) * len(p)), p))
    yield from map(computed, mixture_target(*given, float(theta)), m)
    rule = BiasedVerification(float(theta))
    yield computed(rule.acceptance(*given), 1 - (1 - theta) * tv * sign)
    of_outputs = tuple(smaller(1, b / c) if c > 0 else 0 * c for b, c in zip(q, m, strict=True))
    yield from map(computed, rule.acceptance_given(*given), of_outputs)


def _computed_positions(pairs: tuple[tuple[Pmf, Pmf], ...], thetas: Pmf, counted: int = 0) -> Iterator[Compared]:
    """The front of the mean, which a theta for each position does not beat."""
    tv = [distance(p, q) for p, q in pairs]
    mean = sum(tv) / (len(tv) + counted)
    reject = sum((1 - theta) * each for theta, each in zip(thetas, tv, strict=True)) / len(tv)
    loss = sum(theta * each for theta, each in zip(thetas, tv, strict=True)) / len(tv)
    yield equal(reject + loss, mean)
    front = mean_bias_frontier(floats(tv), points=5)
    yield from map(computed, front.reject, [(1 - Fraction(i, 4)) * mean for i in range(5)])
    yield from map(computed, front.loss, [Fraction(i, 4) * mean for i in range(5)])


def _computed_sequence(target: Chain, draft: Chain, initial: Pmf, theta: Real, along: str = "mixture") -> Compared:
    """Rejections of a whole sequence by the library's Y1 for the mixture."""
    p, q = table_of(target), table_of(draft)
    following = mixed(p, q, theta) if along == "mixture" else p
    terms = y1_profile(p, q, len(target), start_of(initial), following)
    arrays = array_of(target), array_of(draft)
    value = expected_rejections(mixture_target(*arrays, float(theta)), arrays[1], floats(initial))
    return computed(value, (1 - theta) * sum(terms))


PROOF = (
    valid(
        "with min(1, p/q) <= b <= 1 token x adds (1 - b)q + (bq - p)+ = (q - p)+ to P(reject) + Loss*(b), for Loss* = "
        "sum (bq - p)+ of Y5: the sum is TV, whatever b",
        lambda p, q, b: equal((1 - b) * q + positive_part(b * q - p), positive_part(q - p)),
        lambda p, q, b: [*shares(p, q, b), b * q >= smaller(p, q)],
    ),
    valid(
        "for any b in [0, 1] and s = c r >= 0 recovered, (1 - b)q + (bq + s - p)+ >= (q - p)+: no rule is below the "
        "line, so the front is the line",
        lambda p, q, b, s: at_least((1 - b) * q + positive_part(b * q + s - p), positive_part(q - p)),
        lambda p, q, b, s: [*shares(p, q, b), s >= 0],
    ),
    valid(
        "all of it is reached: b = (1-t) min(1, p/q) + t has bq = min(m, q), m = (1-t)p + tq",
        lambda p, q, t: equal(q * ((1 - t) * smaller(1, p / q) + t), smaller((1 - t) * p + t * q, q)),
        lambda p, q, t: [*shares(p, t), q > 0],
    ),
    valid(
        "(q - m)+ = (1-t)(q - p)+ and (m - q)+ = (1-t)(p - q)+: a rejection has probability (1-t) TV, the recovery law "
        "is the one of token verification for m, and min(m, q) + (m - q)+ = m is the output law",
        lambda p, q, t: [
            equal(positive_part(q - (1 - t) * p - t * q), (1 - t) * positive_part(q - p)),
            equal(positive_part((1 - t) * p + t * q - q), (1 - t) * positive_part(p - q)),
            equal(smaller((1 - t) * p + t * q, q) + positive_part((1 - t) * p + t * q - q), (1 - t) * p + t * q),
        ],
        lambda p, q, t: shares(p, q, t),
    ),
    valid(
        "|m - p| = t |q - p|: it loses t TV",
        lambda p, q, t: equal(absolute((1 - t) * p + t * q - p), t * absolute(q - p)),
        lambda p, q, t: shares(p, q, t),
    ),
    same(
        "at every prefix the rule is token verification for m, so a sequence follows the chain of mixtures and rejects "
        "as Y1 says for it; over positions with TVs x, y a theta for each reaches (1-s)x + (1-t)y and sx + ty, again a "
        "point of the line",
        lambda x, y, s, t: (((1 - s) * x + (1 - t) * y) + (s * x + t * y), x + y),
    ),
)

PRICE = Claim(
    "P(reject) + Loss*(b) = TV for every over-acceptance",
    lambda p, q, b: equal(outcome(q, b, q)[0] + stated_loss(p, q, b), distance(p, q)),
)
LINE = Claim("P(reject) + loss >= TV for any acceptance and recovery law", _no_cheaper)
FAMILY = Claim("b = (1-t) min(1, p/q) + t outputs (1-t)p + tq, rejects (1-t) TV, loses t TV", _mixture)
WHOLE = Claim("whole texts follow the mixtures and reject as Y1 says for them", _sequence)

ENTRIES = (
    Entry(
        id="Y6",
        title="Rejection against bias: a straight line",
        kind="optimality",
        plain="P(reject) + TV(output, p) >= TV(p, q) for every acceptance and recovery law, with equality for every "
        "min(1, p/q) <= b <= 1 and its best recovery; b = (1-t) min(1, p/q) + t with norm (p - q)+ outputs "
        "m = (1-t)p + tq, which is token verification for m: from (TV, 0) to (0, TV)",
        latex=r"P(\text{reject}) + Loss^*(b) = TV(p,q),\quad b = (1-t)\min(1, p/q) + t:\; "
        r"\text{output } (1-t)p + tq,\; P(\text{reject}) = (1-t)\,TV,\; Loss^* = t\,TV",
        source=("yin2024",),
        assumptions=(
            "one position; in a sequence the prefixes follow the mixtures, not the target",
            "along texts of the target: it can output what the draft can draw, and calls start where lossless ones do",
        ),
        calculators=(
            *(
                f"spectheory.limits.{name}"
                for name in ("BiasFrontier", "bias_frontier", "mean_bias_frontier", "mixture_target")
            ),
            "spectheory.verification.BiasedVerification",
            "spectheory.prediction.bias_tradeoff.BiasPoint",
            "spectheory.prediction.bias_tradeoff.bias_tradeoff",
        ),
        evidence=(
            proof("term by term, for any vocabulary", PROOF),
            solved(
                Claim("t = 1/3: sum (q - m)+ = (1-t) TV and TV(m, p) = t TV", _solved),
                (2, 3),
                wrong=Claim("t^2 TV lost", lambda p, q: _solved(p, q, power=2)),
            ),
            exact(
                PRICE,
                over_accepting,
                over="pairs on 2 tokens of denominator up to 5, random ones on up to 5, over-acceptances of a grid",
                wrong=Claim(
                    "P(reject) + 2 Loss* = TV",
                    lambda p, q, b: equal(outcome(q, b, q)[0] + 2 * stated_loss(p, q, b), distance(p, q)),
                ),
            ),
            exact(
                FAMILY,
                mixed_pairs,
                over="pairs on 2 tokens of denominator up to 4, random ones on up to 5, four values of t",
                wrong=Claim("the same recovering from p", lambda **case: _mixture(**case, standard_loss=False)),
            ),
            exact(
                WHOLE,
                lambda effort: with_thetas(tables(63, ((2, 1), (2, 2), (3, 2), (2, 3), (3, 3)), effort.pick(5, 40))),
                over="the algorithm enumerated, random models of the whole prefix, up to 3 tokens and 3 steps",
                wrong=Claim("prefixes from the target", lambda **case: _sequence(**case, biased_prefixes=False)),
            ),
            agreement(
                Claim("the library's front, mixture and rule at a position", _computed_position),
                mixed_pairs,
                over="the same pairs",
                wrong=Claim("acceptance 1 + (1-t) TV", lambda **case: _computed_position(**case, sign=-1)),
            ),
            agreement(
                Claim("the library's front of the mean; a t for each position stays on the line", _computed_positions),
                positions,
                over="random pairs at up to 5 positions",
                wrong=Claim("the mean over one more position", lambda **case: _computed_positions(**case, counted=1)),
            ),
            agreement(
                Claim("the library's Y1 with the mixture for its target counts a sequence", _computed_sequence),
                lambda effort: with_thetas(chains(64, ((2, 1), (2, 5), (3, 4)), effort.pick(3, 30))),
                over="random non-stationary chains",
                wrong=Claim("prefixes from the target", lambda **case: _computed_sequence(**case, along="target")),
            ),
            *TEXT,
            searched(
                LINE,
                drawn_rules,
                over="3 tokens, entries of all sizes, any acceptance and recovery; the optimiser on 2",
                spaces=(rule_space(2),),
                wrong=Claim("without the loss", lambda **case: _no_cheaper(**case, factor=0)),
            ),
            searched(
                FAMILY,
                drawn_mixtures,
                over="3 tokens, entries of all sizes",
                wrong=Claim("the same recovering from p", lambda **case: _mixture(**case, standard_loss=False)),
            ),
            simulated(
                "rejections of rules that accept too much, recovering by the best law or from the target",
                [
                    *at(("biased",), OVER_ACCEPTING, recovery="optimal"),
                    *at(("biased",), OVER_ACCEPTING, recovery="target"),
                ],
                stated("Y6"),
                wrong=(
                    "they reject with probability TV",
                    instead(stated("Y6"), lambda rule, _: total_variation(rule["target"], rule["draft"])),
                ),
            ),
        ),
    ),
)
