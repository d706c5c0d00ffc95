"""A biased rule along texts of the target (Y6): its calls from both sides, by algorithm and by the library."""

from __future__ import annotations

from math import lcm

from proofs_check.algorithms.biased_rules import accepted, biased_rule, loss_of, mixture, standard
from proofs_check.algorithms.rejection_algorithms import Pmf, Table, distance, model_of, rule_of_class, steps_of
from proofs_check.prelude import *
from proofs_check.twins.batch_recursion import y1_profile
from spectheory.cost import ConstantRatio
from spectheory.prediction.bias_tradeoff import bias_tradeoff
from spectheory.trace import UNO_SHARES, TextInfo, Trace
from spectheory.verification import BiasedVerification

RATIO = Fraction(1, 8)
"""A draft pass over a target step."""


def weighted(p: Pmf, q: Pmf, theta: Real) -> list[Real]:
    """min((1-t) + t rho, rho), rho = q/p, of the tokens the target can output."""
    ratios = (b / a for a, b in zip(p, q, strict=True) if a > 0)
    return [smaller(1 - theta + theta * rho, rho) for rho in ratios]


def mean_weight(p: Pmf, q: Pmf, theta: Real) -> Real:
    """Its mean over the target."""
    drawn = (share for share in p if share > 0)
    return sum(share * weight for share, weight in zip(drawn, weighted(p, q, theta), strict=True))


def coin(p: Pmf, q: Pmf, theta: Real) -> list[Real]:
    """Acceptance t + (1-t) min(1, q/p) written by q/p, of the tokens the target can output."""
    return [theta + (1 - theta) * smaller(1, b / a) for a, b in zip(p, q, strict=True) if a > 0]


def mean_coin(p: Pmf, q: Pmf, theta: Real) -> Real:
    """Its mean over the target."""
    drawn = (share for share in p if share > 0)
    return sum(share * each for share, each in zip(drawn, coin(p, q, theta), strict=True))


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
    running: dict[Prefix, Real] = {(): Fraction(1)}
    tokens: Real = 0
    calls: Real = 0
    while running:
        following: dict[Prefix, Real] = {}
        for prefix, weight in running.items():
            left = min(k, steps - len(prefix))
            calls += weight
            for (_, count), share in biased(p, q, prefix, left).items():
                tokens += weight * share * min(count + 1, steps - len(prefix))
            for (output, _), share in token_verification(p, q, prefix, left).items():
                text = prefix + output
                if len(text) < steps:
                    following[text] = following.get(text, 0) + weight * share
        running = following
    return tokens, calls


def trace_of(target: Table, draft: Table) -> Trace:
    """Every text of the target as often as its probability says, so that means over the trace are expectations."""
    steps = steps_of(target)
    shares = text_law(model_of(target), steps)
    copies = lcm(*(share.denominator for share in shares.values()))
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
        prefixes = [prefix for n in range(steps) for prefix in product(range(tokens), repeat=n)]
        target, draft = ({at: laws[rng.integers(len(laws))] for at in prefixes} for laws in (pmfs, any_law))
        for k, share in ((1, 0), (2, 1), (2, 2), (3, 3), (1, 4), (3, 4)):
            yield {"target": target, "draft": draft, "theta": Fraction(share, 4), "k": k}


def pairs_and_shares(effort: Effort) -> Iterator[Case]:
    """Pairs on 2 and 3 tokens by denominator, whatever their supports, and over-acceptances."""
    for pair, share in product(cases.all_pairs(3, effort.pick(4, 6)), range(4)):
        yield {**pair, "theta": Fraction(share, 3)}


def _mean(p: Pmf, q: Pmf, theta: Real) -> Iterator[Compared]:
    """One draft: no condition on the supports."""
    rule = BiasedVerification(float(theta))
    yield equal(mean_coin(p, q, theta), acceptance(p, q, theta))
    drawn = [x for x, share in enumerate(p) if share > 0]
    columns = _columns([p[x] for x in drawn], [q[x] for x in drawn])
    for survival in (rule.weighted_survival(columns, 1), rule.weighted_survival_above(columns, 1)):
        yield from map(computed, survival[:, 0], coin(p, q, theta))


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
        Claim("E (t + (1-t) min(1, rho)) over the target = P(accept), and both survivals of one draft", _mean),
        pairs_and_shares,
        over="pairs on 2 and 3 tokens, whatever their supports",
        wrong=Claim(
            "E min((1-t) + t rho, rho) = P(accept)",
            lambda p, q, theta: equal(mean_weight(p, q, theta), acceptance(p, q, theta)),
        ),
    ),
    agreement(
        Claim("the rule's acceptance of a token it output is min(1, q/m), m = (1-t)p + tq; 0 where q = 0", _own_text),
        pairs_and_shares,
        over="pairs on 2 and 3 tokens, whatever their supports",
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
