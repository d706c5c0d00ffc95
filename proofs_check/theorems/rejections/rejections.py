"""Y1: the rejections and calls of token verification along a text that is drafted to its horizon."""

from __future__ import annotations

from proofs_check.algorithms.rejection_algorithms import *
from proofs_check.library.strategies import models
from proofs_check.prelude import *
from proofs_check.statement.fractions import Fraction
from proofs_check.theorems.rejections.batch_recursion import y1_profile
from spectheory.limits import expected_calls, expected_rejections, rejection_profile, rejections_of_text

HALF_DIGIT = Fraction(1, 2000)
"""Half a unit of the last digit of the test bed's numbers, 16.405 and 33.535."""


def paper_chains(steps: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The paper's chains, target and draft: 7 states, rows of RandomState(10) normalised, the draft's drawn first."""
    rng = np.random.RandomState(10)
    draft, target = (rows / rows.sum(axis=-1, keepdims=True) for rows in (rng.rand(steps, 7, 7) for _ in range(2)))
    return target, draft


def _y1(target: Table, draft: Table, along: str = "target") -> Iterator[Compared]:
    profile, calls, outputs = decoded(token_verification, target, draft)
    stated = y1_profile(target, draft, steps_of(target), along=draft if along == "draft" else target)
    yield equal(profile, stated)
    yield equal(calls, 1 + sum(stated[:-1]))
    yield equal(outputs, text_law(model_of(target), steps_of(target)))


def _computed(target: Chain, draft: Chain, initial: Pmf, along: str = "target") -> Iterator[Compared]:
    p, q, reach, steps = table_of(target), table_of(draft), start_of(initial), len(target)
    stated = y1_profile(p, q, steps, reach, q if along == "draft" else p)
    given = array_of(target), array_of(draft), floats(initial)
    yield computed(expected_rejections(*given), sum(stated))
    yield computed(expected_calls(*given), 1 + sum(stated[:-1]))
    yield from map(computed, rejection_profile(*given), stated)
    texts = reach
    for _ in range(steps):
        texts = followed(texts, p)
    along_texts = [distance(p[text[:n]], q[text[:n]]) for text in texts for n in range(1, steps + 1)]
    per_text = rejections_of_text(floats(along_texts), [steps] * len(texts))
    yield computed(per_text @ floats(texts.values()), sum(stated))


def _test_bed(steps: int, printed: Fraction, roles: int = 1) -> Iterator[Compared]:
    target, draft = paper_chains(steps)[::roles]
    uniform = np.full(7, 1 / 7)
    total: Real = 0
    reach: list[Real] = _exactly(uniform)
    for p, q in zip(map(_rows, target), map(_rows, draft), strict=True):
        total += sum(mass * distance(a, b) for mass, a, b in zip(reach, p, q, strict=True))
        reach = [sum(mass * row[y] for mass, row in zip(reach, p, strict=True)) for y in range(7)]
    yield computed(expected_rejections(*paper_chains(steps), uniform), total)
    yield at_most(absolute(total - printed), HALF_DIGIT)


def _rows(matrix: NDArray[np.float64]) -> list[list[Real]]:
    return [_exactly(row) for row in matrix]


def _exactly(values: NDArray[np.float64]) -> list[Real]:
    return [Fraction(float(value)) for value in values]


PROOF = (
    valid(
        "token x is drafted and rejected with probability q(1 - min(1, p/q)) = (q - p)+",
        lambda p, q: equal(q * (1 - smaller(1, p / q)), positive_part(q - p)),
        lambda p, q: [p >= 0, q > 0],
    ),
    valid(
        "(q - p)+ + (p - q)+ = |p - q| and (q - p)+ - (p - q)+ = q - p, which sums to 0 over the tokens: both positive "
        "parts sum to TV, so a position rejects with probability TV",
        lambda p, q: [
            equal(positive_part(q - p) + positive_part(p - q), absolute(p - q)),
            equal(positive_part(q - p) - positive_part(p - q), q - p),
        ],
    ),
    valid(
        "accepted, q min(1, p/q), or recovered, TV times (p - q)+/TV, token x is output with probability p: so the "
        "prefixes follow the target",
        lambda p, q, tv: equal(q * smaller(1, p / q) + tv * (positive_part(p - q) / tv), p),
        lambda p, q, tv: [p >= 0, q > 0, tv > 0],
    ),
    valid(
        "let D be the rejections expected after output x: it does not depend on whether the round goes on, as each "
        "round drafts to the horizon, so x adds min(p, q) D + (p - q)+ (1 + D) = (p - q)+ + pD; summed over x, from "
        "the last position back, C_n = TV + E C_{n+1} and C_{T+1} = 0: Y1. Calls after the first obey the same "
        "recursion, but for a rejection at T, which starts none",
        lambda p, q, D: equal(smaller(p, q) * D + positive_part(p - q) * (1 + D), positive_part(p - q) + p * D),
    ),
)

Y1 = Claim("P(reject at n) = E TV over target prefixes, calls = 1 + its sum over n < T, output law the target's", _y1)
DRAFT_PREFIXES = Claim("the same with prefixes from the draft", lambda target, draft: _y1(target, draft, "draft"))


# Y2: no unbiased rule that decides each draft token by its prefix and itself rejects less than Y1.


def unbiased_rule(target: Table, draft: Table, shares: Table) -> Rule:
    """A rule of the class without bias: b is a share of min(1, p/q), the recovery law what is left of p, (p - bq)/c."""

    def accept(prefix: Prefix) -> Pmf:
        at = zip(target[prefix], draft[prefix], shares[prefix], strict=True)
        return tuple(share * smaller(1, p / q) if q > 0 else share for p, q, share in at)

    def recovery(prefix: Prefix) -> Pmf:
        at = zip(target[prefix], draft[prefix], accept(prefix), strict=True)
        return normalised(tuple(p - b * q for p, q, b in at))

    return rule_of_class(accept, recovery)


UNBIASED = Assumption("the output law is the target", lambda p, q, b, r: outcome(q, b, r)[1] == p)


def rules_of_a_grid(effort: Effort) -> Iterator[Case]:
    """Those without bias among all acceptances and recovery laws of a grid, pairs on 2 tokens."""
    fine = effort.pick(4, 6)
    ends = [Fraction(i, fine) for i in range(fine + 1)]
    return with_each(cases.pairs(2, 4), b=product(ends, repeat=2), r=cases.grid(2, fine))


def shared_tables(effort: Effort) -> Iterator[Case]:
    """Random models of the whole prefix, up to 3 tokens and 3 steps, random shares of min(1, p/q)."""
    rng = random.Random(21)
    for case in tables(22, ((2, 1), (3, 1), (2, 2), (3, 2), (2, 3), (3, 3)), effort.pick(12, 60)):
        shares = {at: tuple(Fraction(rng.randrange(5), 4) for _ in pmf) for at, pmf in case["target"].items()}
        yield {**case, "shares": shares}


def drawn_shares() -> st.SearchStrategy[Case]:
    """2 tokens, 2 steps, entries of all sizes; the optimiser at one position."""
    share = st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(0)])
    every = st.fixed_dictionaries({at: st.tuples(share, share) for at in ((), (0,), (1,))})
    return st.fixed_dictionaries({"target": models(2, 2), "draft": models(2, 2), "shares": every})


def one_position(tokens: int) -> Space:
    """Pairs of pmfs and shares, for the optimiser."""

    def weights(x: NDArray[np.float64]) -> Case:
        target, draft, shares = x.reshape(3, tokens)
        parts = {"target": softmax(target), "draft": softmax(draft)}
        parts["shares"] = tuple((1 / (1 + np.exp(-shares.clip(-30, 30)))).tolist())
        return {name: {(): part} for name, part in parts.items()}

    return Space(3 * tokens, weights, "target draft")


def _one_rule(p: Pmf, q: Pmf, b: Pmf, r: Pmf) -> Iterator[Compared]:
    yield at_least(outcome(q, b, r)[0], distance(p, q))
    for share, drafted, accept in zip(p, q, b, strict=True):
        yield at_most(accept * drafted, smaller(share, drafted))


def _sequences(target: Table, draft: Table, shares: Table) -> Iterator[Compared]:
    profile, _, outputs = decoded(unbiased_rule(target, draft, shares), target, draft)
    yield equal(outputs, text_law(model_of(target), steps_of(target)))
    yield from map(at_least, profile, y1_profile(target, draft, steps_of(target)))


def _fewest(target: Table, draft: Table, shares: Table, factor: Fraction = Fraction(1)) -> Compared:
    profile, _, _ = decoded(unbiased_rule(target, draft, shares), target, draft)
    return at_least(sum(profile), factor * sum(y1_profile(target, draft, steps_of(target))))


def _any_rule(rule: Rule) -> Callable[..., Iterator[Compared]]:
    """Unbiased, and not below Y1."""

    def holds(target: Table, draft: Table) -> Iterator[Compared]:
        profile, _, outputs = decoded(rule, target, draft)
        yield equal(outputs, text_law(model_of(target), steps_of(target)))
        yield at_least(sum(profile), sum(y1_profile(target, draft, steps_of(target))))

    return holds


def _two_tokens(p: Real, q: Real, b: Real, d: Real, r: Real) -> tuple[Pmf, Pmf, Real, Pmf]:
    pmfs = (p, 1 - p), (q, 1 - q), (r, 1 - r)
    rejected, law = outcome(pmfs[1], (b, d), pmfs[2])
    return pmfs[0], pmfs[1], rejected, law


OPTIMALITY_PROOF = (
    valid(
        "at a prefix of probability w > 0 the text's law is w times the output law o, so no bias means o = p there",
        lambda p, o, w: equal(o, p),
        lambda p, o, w: [w > 0, w * o == w * p],
    ),
    valid(
        "o = bq + s, s >= 0 being what recovery adds: no bias forces bq <= p, so bq <= min(p, q) and b <= min(1, p/q)",
        lambda p, q, b, s: [at_most(b * q, smaller(p, q)), at_most(b, smaller(1, p / q))],
        lambda p, q, b, s: [q > 0, *shares(b), s >= 0, b * q + s == p],
    ),
    valid(
        "so a token adds q - bq >= (q - p)+ to the probability of a rejection, which is at least their sum, TV",
        lambda p, q, a: at_least(q - a, positive_part(q - p)),
        lambda p, q, a: [a <= smaller(p, q)],
    ),
    valid(
        "and a token adds (q - p)+ alone only if bq = min(p, q): where q > 0 token verification is the only one",
        lambda p, q, a: equal(a, smaller(p, q)),
        lambda p, q, a: [a <= smaller(p, q), q - a <= positive_part(q - p)],
    ),
    valid(
        "over the horizon: D rejections after x where token verification has C <= D; recovery adds s = p - bq >= "
        "(p - q)+, so bq D + s(1 + D) >= (p - q)+ + pC; summed over x, from the last position back, at least Y1",
        lambda p, q, a, D, C: at_least(a * D + (p - a) * (1 + D), positive_part(p - q) + p * C),
        lambda p, q, a, D, C: [p >= 0, a >= 0, a <= smaller(p, q), D >= C, C >= 0],
    ),
    valid(
        "on two tokens in one piece: every acceptance and every recovery law without bias reject at least TV",
        lambda p, q, b, d, r: at_least(_two_tokens(p, q, b, d, r)[2], absolute(p - q)),
        lambda p, q, b, d, r: [*shares(p, q, b, d, r), _two_tokens(p, q, b, d, r)[3][0] == p],
    ),
)

ONE_RULE = Claim("an unbiased rule accepts x with bq <= min(p, q) and rejects at least TV", _one_rule, (UNBIASED,))
TOO_MUCH = Claim("rejections of the class >= 11/10 of Y1", lambda **case: _fewest(**case, factor=Fraction(11, 10)))
HORIZON = "every round drafts to the horizon T"

Y1_ENTRY = Entry(
    id="Y1",
    title="Rejections of token verification along a text",
    kind="identity",
    plain="E[rejections] = sum over n of E TV(P_n, Q_n), prefixes drawn from the target; "
    "calls = 1 + sum over n < T of P(reject at n)",
    latex=r"E[N_{rej}] = \sum_{n=1}^T E_{x_{<n}\sim P}\,TV(P_n, Q_n)(x_{<n}),\quad "
    r"E[\text{calls}] = 1 + \sum_{n<T} P(\text{reject at } n)",
    source=("yin2024", "leviathan2023"),
    assumptions=(
        "every round drafts to the horizon T, so that every position has a draft",
        "P_n and Q_n are functions of the text before n, of any kind",
    ),
    calculators=public("limits", "expected_rejections expected_calls rejection_profile rejections_of_text"),
    evidence=(
        proof(
            "one position term by term, then from the last position back, for any vocabulary, horizon and models", PROOF
        ),
        solved(
            Claim(
                "sum (q - min(p, q)) = sum (p - q)+ = TV",
                lambda p, q: equal(
                    (sum(b - smaller(a, b) for a, b in zip(p, q, strict=True)), sum(excess(p, q))),
                    (distance(p, q),) * 2,
                ),
            ),
            (2, 3),
            wrong=Claim("sum |p - q| in place of its half", lambda p, q: equal(sum(excess(p, q)), 2 * distance(p, q))),
        ),
        exact(
            Y1,
            lambda effort: tables(1, ((2, 1), (2, 2), (3, 2), (2, 3), (4, 2), (3, 3), (2, 5)), effort.pick(10, 60)),
            over="the whole algorithm enumerated, random models of the whole prefix, up to 4 tokens and 5 steps",
            wrong=DRAFT_PREFIXES,
        ),
        agreement(
            Claim("the library's rejections, calls, profile and mean over sampled texts are those of Y1", _computed),
            lambda effort: chains(2, ((1, 2), (2, 1), (2, 6), (3, 4), (5, 3)), effort.pick(4, 40)),
            over="random non-stationary chains, zeros among their entries",
            wrong=Claim(
                "the same with prefixes from the draft",
                lambda target, draft, initial: _computed(target, draft, initial, "draft"),
            ),
        ),
        agreement(
            Claim("the paper's test bed: Y1 is 16.405 at T = 50 and 33.535 at T = 100", _test_bed),
            lambda effort: (
                {"steps": 50, "printed": Fraction("16.405")},
                {"steps": 100, "printed": Fraction("33.535")},
            ),
            over="the chains' own floats as fractions, no rounding along the way",
            wrong=Claim("target and draft exchanged", lambda steps, printed: _test_bed(steps, printed, -1)),
        ),
        searched(Y1, lambda: drawn_tables(2, 2), over="2 tokens, 2 steps, entries of all sizes", wrong=DRAFT_PREFIXES),
        simulated(
            "rejections on the paper's test bed, T = 20, in all and by position; draws apart, and at once",
            (
                ("batch", {"chains": "yin2024", "length": 20, "drafts": 1}),
                ("rejections", {"chains": "yin2024", "length": 20}),
            ),
            stated("Y1"),
            wrong=("those of a batch of two (Y3)", stated("Y3", kind="batch", drafts=2)),
        ),
    ),
)

Y2 = Entry(
    id="Y2",
    title="Token verification rejects least in its class",
    kind="optimality",
    plain="an unbiased rule that accepts the n-th draft token with a probability b that depends only on x_{<n} and "
    "that token, else draws from a recovery law that depends only on x_{<n}, has b <= min(1, p/q) and at least the "
    "rejections of Y1, position by position; token verification attains it",
    latex=r"\text{output law} = P \;\Rightarrow\; b_n(x) \le \min\Big(1, \frac{p(x)}{q(x)}\Big),\quad "
    r"P(\text{reject at } n) \ge E_{x_{<n}\sim P}\,TV(P_n, Q_n)",
    source=("yin2024",),
    assumptions=(
        HORIZON,
        "b and the recovery law depend on no later draft and on no other draft of the position: block verification "
        "and batches are outside the class",
    ),
    evidence=(
        proof("term by term, for any vocabulary, horizon and models", OPTIMALITY_PROOF),
        exact(ONE_RULE, rules_of_a_grid, wrong=Claim(ONE_RULE.says + ", biased rules too", _one_rule)),
        exact(
            Claim("rules of the class enumerated: the target's law, and never less than Y1", _sequences),
            shared_tables,
            wrong=TOO_MUCH,
        ),
        searched(
            Claim("rejections of the class >= Y1", _fewest), drawn_shares, spaces=(one_position(2),), wrong=TOO_MUCH
        ),
    ),
    without={"certified": "no logarithm enters; the library computes Y1, tied to the exact value there"},
)

Y2_ANY_RULE = Entry(
    id="Y2/any-rule",
    title="Outside the class there are fewer rejections",
    kind="refuted",
    plain="no unbiased rule, block verification included, has fewer rejections than Y1",
    latex=r"\text{output law} = P \;\Rightarrow\; E[N_{rej}] \ge \sum_n E\,TV(P_n, Q_n)",
    assumptions=(HORIZON,),
    evidence=(
        counterexample(
            Claim("block verification rejects at least as Y1 says", _any_rule(block_verification)),
            lambda effort: (case for steps in (1, 2) for case in one_model(2, steps, 4)),
            over="first among pairs on 2 tokens that serve every prefix, by T, then by denominator",
            true=Claim("token verification rejects at least as Y1 says", _any_rule(token_verification)),
        ),
    ),
)
