"""Y6: rejection and bias trade one for one, along mixtures of target and draft."""

from __future__ import annotations

from proofs_check.algorithms.enumeration import starts_of
from proofs_check.algorithms.rejection_algorithms import *
from proofs_check.evidence.simulated import OVER_ACCEPTING
from proofs_check.prelude import *
from proofs_check.theorems.rejections.batch_recursion import y1_profile
from spectheory import total_variation
from spectheory.cost import ConstantRatio
from spectheory.limits import bias_frontier, expected_rejections, mean_bias_frontier, mixture_target
from spectheory.prediction.bias_tradeoff import bias_tradeoff
from spectheory.trace import UNO_SHARES, TextInfo, Trace
from spectheory.verification import BiasedVerification

# A biased rule along texts of the target (Y6): its calls from both sides, by algorithm and by the library.


RATIO = Fraction(1, 8)
"""A draft pass over a target step."""


def weighted(p: Pmf, q: Pmf, theta: Real) -> list[Real]:
    """min((1-t) + t rho, rho), rho = q/p, of the tokens the target can output."""
    ratios = (b / a for a, b in zip(p, q, strict=True) if a > 0)
    return [smaller(1 - theta + theta * rho, rho) for rho in ratios]


def mean_weight(p: Pmf, q: Pmf, theta: Real) -> Real:
    """Its mean over the target."""
    positive = (share for share in p if share > 0)
    return sum(share * weight for share, weight in zip(positive, weighted(p, q, theta), strict=True))


def coin(p: Pmf, q: Pmf, theta: Real) -> list[Real]:
    """Acceptance t + (1-t) min(1, q/p) written by q/p, of the tokens the target can output."""
    return [theta + (1 - theta) * smaller(1, b / a) for a, b in zip(p, q, strict=True) if a > 0]


def mean_coin(p: Pmf, q: Pmf, theta: Real) -> Real:
    """Its mean over the target."""
    positive = (share for share in p if share > 0)
    return sum(share * each for share, each in zip(positive, coin(p, q, theta), strict=True))


def acceptance(p: Pmf, q: Pmf, theta: Real) -> Real:
    """Probability that the biased rule accepts a draft, 1 - (1-t) TV."""
    return 1 - (1 - theta) * distance(p, q)


def biased_off_target(target: Table, draft: Table, theta: Real, off: Real) -> Rule:
    """The biased rule that accepts with probability `off` after prefixes the target cannot output."""

    def accept(prefix: Prefix) -> Pmf:
        p, q = target[prefix], draft[prefix]
        written = all(target[prefix[:n]][x] > 0 for n, x in enumerate(prefix))
        return accepted(p, q, (theta,) * len(p)) if written else (off,) * len(p)

    return rule_of_class(accept, lambda prefix: standard(target[prefix], draft[prefix]))


def calls_from_lossless_starts(target: Table, draft: Table, biased: Rule, k: int) -> tuple[Real, Real]:
    """Tokens and calls where calls of the biased rule start where those of token verification do, both enumerated."""
    steps = steps_of(target)
    p, q = model_of(target), model_of(draft)
    starts = starts_of(Decoding(token_verification, k, steps, spare=0).law(p, q))
    tokens = total(
        weight * share * min(count + 1, steps - len(prefix))
        for prefix, weight in starts.items()
        for (_, count), share in biased(p, q, prefix, min(k, steps - len(prefix))).items()
    )
    return tokens, total(starts.values())


def trace_of(target: Table, draft: Table) -> Trace:
    """Every text of the target as often as its probability says, so that means over the trace are expectations."""
    steps = steps_of(target)
    shares = text_law(model_of(target), steps)
    copies = math.lcm(*(share.denominator for share in shares.values()))
    texts = [text for text, share in shares.items() for _ in range(int(share * copies))]
    at = [(target[text[:n]], draft[text[:n]], text[n]) for text in texts for n in range(steps)]
    uno = [[loss_of(p, q, accepted(p, q, (Fraction(t),) * len(p)), p) for t in UNO_SHARES] for p, q, _ in at]
    columns = {
        **_columns([p[x] for p, _, x in at], [q[x] for _, q, x in at]),
        "total_variation": floats(distance(p, q) for p, q, _ in at),
        "uno_loss": np.array([floats(row) for row in uno]),
    }
    return Trace(columns, tuple(TextInfo(str(i), steps) for i in range(len(texts))))


def texts(effort: Effort, full: bool) -> Iterator[Case]:
    """Targets of small denominators over 3 steps, or 3 tokens over 2, of full support or any; any draft; k = 1 to 3."""
    for seed, (tokens, steps, denominator) in enumerate(((2, 3, 3), (2, 3, 4), (3, 2, 4)) * effort.pick(2, 20)):
        rng = np.random.default_rng([71, seed])
        pmfs = [pmf for pmf in cases.grid(tokens, denominator) if min(pmf) > 0 or not full]
        any_law = list(cases.grid(tokens, 5))
        every = prefixes(tokens, steps)
        target, draft = ({at: laws[rng.integers(len(laws))] for at in every} for laws in (pmfs, any_law))
        for k, share in ((1, 0), (2, 1), (2, 2), (3, 3), (1, 4), (3, 4)):
            yield {"target": target, "draft": draft, "theta": Fraction(share, 4), "k": k}


def pairs_and_shares(effort: Effort) -> Iterator[Case]:
    """Pairs on 2 and 3 tokens, whatever their supports."""
    return with_each(cases.all_pairs(3, effort.pick(4, 6)), theta=[Fraction(share, 3) for share in range(4)])


def _mean(p: Pmf, q: Pmf, theta: Real, survivals: Callable[..., Sequence[Real]]) -> Iterator[Compared]:
    """One draft: no condition on the supports."""
    rule = BiasedVerification(float(theta))
    yield equal(mean_coin(p, q, theta), acceptance(p, q, theta))
    support = [x for x, share in enumerate(p) if share > 0]
    columns = _columns([p[x] for x in support], [q[x] for x in support])
    for survival in (rule.weighted_survival(columns, 1), rule.weighted_survival_above(columns, 1)):
        yield from map(computed, survival[:, 0], survivals(p, q, theta))


def _own_text(p: Pmf, q: Pmf, theta: Real, most: bool = True) -> Iterator[Compared]:
    """a(x) of the tokens the rule can output, and of those the draft cannot draw."""
    cut, m = smaller if most else larger, mixture(p, q, theta)
    kept = [x for x, share in enumerate(m) if share > 0 or q[x] == 0]
    given = [cut(1, q[x] / m[x]) if q[x] > 0 else 0 * m[x] for x in kept]
    columns = _columns([p[x] for x in kept], [q[x] for x in kept])
    yield from map(computed, BiasedVerification(float(theta)).accepted_at(columns), given)


def _columns(p: Sequence[Real], q: Sequence[Real]) -> dict[str, NDArray[np.float64]]:
    with np.errstate(divide="ignore"):
        return {"log_target": np.log(floats(p)), "log_draft": np.log(floats(q))}


def _tradeoff(target: Table, draft: Table, theta: Real, k: int, tail: int = 0) -> Iterator[Compared]:
    cost = ConstantRatio(float(RATIO))
    (point,) = bias_tradeoff(trace_of(target, draft), k, [float(theta)], cost)
    tokens, calls = calls_from_lossless_starts(target, draft, biased_rule(target, draft, theta), k + tail)
    yield computed(point.tokens_per_call.best, tokens / calls)
    if point.upper_tokens_per_call is not None:
        yield computed(point.upper_tokens_per_call.best, tokens / calls)
    if point.speedup is not None and point.uno_bias is not None:
        yield computed(point.speedup.best, tokens / calls / (1 + k * RATIO))
        yield computed(point.uno_bias.best, _mean_uno(target, draft, theta))
    yield computed(point.bias.best, theta * sum(y1_profile(target, draft, steps_of(target))) / steps_of(target))


def _sides(target: Table, draft: Table, theta: Real, k: int, covered: bool = False) -> Iterator[Compared]:
    """Any supports: the library's two sides are two algorithms, and the biased one lies between."""
    rules = (biased_off_target(target, draft, theta, off) for off in (theta, Fraction(1)))
    low, high = (_per_call(target, draft, rule, k) for rule in rules)
    exact = _per_call(target, draft, biased_rule(target, draft, theta), k)
    (point,) = bias_tradeoff(trace_of(target, draft), k, [float(theta)])
    yield computed(point.tokens_per_call.best, exact if covered else low)
    if point.upper_tokens_per_call is not None:
        yield computed(point.upper_tokens_per_call.best, high)
    yield at_most(low, exact)
    yield at_most(exact, high)
    if k == 1 or theta in (0, 1):
        yield equal(low, high)


def _per_call(target: Table, draft: Table, biased: Rule, k: int) -> Real:
    tokens, calls = calls_from_lossless_starts(target, draft, biased, k)
    return tokens / calls


def _mean_uno(target: Table, draft: Table, theta: Real) -> Real:
    steps = steps_of(target)
    losses = {at: loss_of(p, draft[at], accepted(p, draft[at], (theta,) * len(p)), p) for at, p in target.items()}
    reached = (text_law(model_of(target), n) for n in range(steps))
    return sum(share * losses[prefix] for law in reached for prefix, share in law.items()) / steps


TEXT = (
    agreement(
        Claim(
            "E (t + (1-t) min(1, rho)) over the target = P(accept), and both survivals of one draft",
            partial(_mean, survivals=coin),
        ),
        pairs_and_shares,
        wrong=Claim("the survivals are min((1-t) + t rho, rho)", partial(_mean, survivals=weighted)),
    ),
    agreement(
        Claim("the rule's acceptance of a token it output is min(1, q/m), m = (1-t)p + tq; 0 where q = 0", _own_text),
        pairs_and_shares,
        wrong=Claim("acceptance cut at 1 from below", lambda **case: _own_text(**case, most=False)),
    ),
    agreement(
        Claim("bias_tradeoff's tokens per call, speed-up and biases are those of the algorithms", _tradeoff),
        lambda effort: texts(effort, full=True),
        over="all texts of the target as often as they are drawn, targets of full support",
        wrong=Claim("the same with a draft more", lambda **case: _tradeoff(**case, tail=1)),
    ),
    agreement(
        Claim(
            "bias_tradeoff's two sides are the algorithms that accept with probability t, or 1, after prefixes the "
            "target cannot output; the biased rule lies between, and they agree for k = 1 and at shares 0 and 1",
            _sides,
        ),
        lambda effort: texts(effort, full=False),
        over="all texts of the target as often as they are drawn, targets with zeros",
        wrong=Claim("the lower side is the biased rule", lambda **case: _sides(**case, covered=True)),
    ),
)
"""Y6 along texts, for its entry."""


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

FAMILY = Claim("b = (1-t) min(1, p/q) + t outputs (1-t)p + tq, rejects (1-t) TV, loses t TV", _mixture)


# Y6 along texts of the target: without a condition on supports the likelihood ratio falls short.


WEIGHTS = "the mean of min((1-t) + t rho, rho) over the target is the acceptance of the biased rule"

Y6 = Entry(
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
    calculators=public("limits", "BiasFrontier bias_frontier mean_bias_frontier mixture_target")
    + public("verification", "BiasedVerification")
    + public("prediction.bias_tradeoff", "BiasPoint bias_tradeoff"),
    evidence=(
        proof("term by term, for any vocabulary", PROOF),
        solved(
            Claim("t = 1/3: sum (q - m)+ = (1-t) TV and TV(m, p) = t TV", _solved),
            (2, 3),
            wrong=Claim("t^2 TV lost", lambda p, q: _solved(p, q, power=2)),
        ),
        exact(
            Claim(
                "P(reject) + Loss*(b) = TV for every over-acceptance",
                lambda p, q, b: equal(outcome(q, b, q)[0] + stated_loss(p, q, b), distance(p, q)),
            ),
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
            Claim("whole texts follow the mixtures and reject as Y1 says for them", _sequence),
            lambda effort: with_each(
                tables(63, ((2, 1), (2, 2), (3, 2), (2, 3), (3, 3)), effort.pick(5, 40)), theta=THETAS
            ),
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
            wrong=Claim("the mean over one more position", lambda **case: _computed_positions(**case, counted=1)),
        ),
        agreement(
            Claim("the library's Y1 with the mixture for its target counts a sequence", _computed_sequence),
            lambda effort: with_each(chains(64, ((2, 1), (2, 5), (3, 4)), effort.pick(3, 30)), theta=THETAS),
            over="random non-stationary chains",
            wrong=Claim("prefixes from the target", lambda **case: _computed_sequence(**case, along="target")),
        ),
        *TEXT,
        searched(
            Claim("P(reject) + loss >= TV for any acceptance and recovery law", _no_cheaper),
            drawn_rules,
            over="3 tokens, entries of all sizes, any acceptance and recovery; the optimiser on 2",
            spaces=(rule_space(2),),
            wrong=Claim("without the loss", lambda **case: _no_cheaper(**case, factor=0)),
        ),
        searched(
            FAMILY,
            drawn_mixtures,
            wrong=Claim("the same recovering from p", lambda **case: _mixture(**case, standard_loss=False)),
        ),
        simulated(
            "rejections of rules that accept too much, recovering by the best law or from the target",
            [*at(("biased",), OVER_ACCEPTING, recovery="optimal"), *at(("biased",), OVER_ACCEPTING, recovery="target")],
            stated("Y6"),
            wrong=(
                "they reject with probability TV",
                instead(stated("Y6"), lambda rule, _: total_variation(rule["target"], rule["draft"])),
            ),
        ),
    ),
)

Y6_SUPPORT = Entry(
    id="Y6/support",
    title="Weights along target texts without a condition",
    kind="refuted",
    plain=WEIGHTS + ", for all p and q (a draft outside supp p is accepted with probability t, but no target text "
    "contains it: the mean is too small by t q(outside supp p))",
    latex=r"E_{x\sim p}\min\big((1-t)+t\rho(x),\, \rho(x)\big) = 1-(1-t)\,TV,\quad \rho = q/p",
    assumptions=("b = (1-t) min(1, p/q) + t",),
    evidence=(
        counterexample(
            Claim(WEIGHTS, lambda p, q, theta: equal(mean_weight(p, q, theta), acceptance(p, q, theta))),
            lambda effort: with_each(
                cases.pairs(2, effort.pick(5, 8)), theta=(Fraction(0), Fraction(1, 2), Fraction(1))
            ),
            over="first among pairs on 2 tokens by denominator, t = 0, 1/2, 1",
            true=Claim(
                "the mean and t q(outside supp p) are the acceptance, so the mean is no more",
                lambda p, q, theta: [
                    equal(
                        mean_weight(p, q, theta) + theta * sum(b for a, b in zip(p, q, strict=True) if a == 0),
                        acceptance(p, q, theta),
                    ),
                    at_most(mean_weight(p, q, theta), acceptance(p, q, theta)),
                ],
            ),
        ),
    ),
)
