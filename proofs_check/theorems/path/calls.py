"""§7: what engines count per call, and what it is not: starts are where calls ended, and depend on k."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import accepted, bound, library_terms, ratio_of_sums
from proofs_check.agreement.path_cases import CHAINS, SurvivalOf, constant, greedy, random_chains, with_edges
from proofs_check.algorithms.lossless_calls import most_accepted, most_agreement
from proofs_check.forms.divergences import overlap
from proofs_check.prelude import *
from proofs_check.theorems.path.call_counts import reading
from proofs_check.twins import path_theorem
from proofs_check.twins.path_theorem import Survival
from proofs_check.twins.tree_theorem import visits
from spectheory.verification import RULES


def along(accept: Sequence[int]) -> Survival:
    """The survival of a rule that accepts at each position by itself."""
    return lambda n, i: Fraction(math.prod(accept[n : n + i]))


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
    """First by the denominator of the positions' acceptances a and b."""
    for d in range(1, 9):
        for a, b in product(range(d + 1), repeat=2):
            yield {"a": Fraction(a, d), "b": Fraction(b, d)}


def first_drafts(accept: Sequence[int], k: int) -> tuple[Fraction, Fraction]:
    """The share of calls whose first draft is accepted, as counted on all calls, and by their expected starts."""
    survival, length = along(accept), len(accept)
    law = path_theorem.all_calls_law(survival, k, length)
    calls = total(share * len(accepted) for accepted, share in law.items())
    hits = total(share * sum(each > 0 for each in accepted) for accepted, share in law.items())
    weights = visits(survival, k, length)
    weighed = total(weight * survival(n, 1) for n, weight in enumerate(weights))
    return hits / calls, weighed / total(weights)


# §7: three statements that look like the path theorem's and are false.


def as_survival(stated: SurvivalOf, p: Any, q: Any) -> Iterator[Compared]:
    """What is stated against block verification run through, two drafts, every text of two tokens."""
    target, draft = constant(p), constant(q)
    law = Decoding(CHAINS["block"].algorithm, 2, 2).law(target, draft)
    for text in text_law(target, 2):
        counts, survival = given_text(law, text), stated(target, draft, text)
        for i in (1, 2):
            alive = total(share for calls, share in counts.items() if calls[0] >= i)
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
        mean = total(len(calls) * share for calls, share in counts.items())
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
            Claim(
                "S_1(k) = S_1(1), counted on all calls",
                lambda accept, k: equal(first_drafts(accept, k)[0], first_drafts(accept, 1)[0]),
            ),
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


# §7: the most a single call can accept, with any verification of a chain of drafts; and a proof that it is reached.


STEPS: tuple[Step, ...] = (
    in_words(
        "E[tau] is the sum of P(tau >= i) over i >= 1: with a, b, c for P(tau = i), each of them stands in i terms",
        lambda a, b, c: (a + 2 * b + 3 * c, (a + b + c) + (b + c) + c),
    ),
    valid(
        "tau >= i with the tokens x_1..x_i happens only where they were drafted, Q = q(x_1..x_i), and only where they "
        "are the text, P = p(x_1..x_i): its probability m is at most min(P, Q)",
        lambda m, P, Q: at_most(m, smaller(P, Q)),
        lambda m, P, Q: [m >= 0, m <= P, m <= Q],
    ),
    valid(
        "min(P, Q) = (P + Q - |P - Q|)/2: over all x_1..x_i they sum to 1 - TV of the laws of i tokens",
        lambda P, Q: equal(smaller(P, Q), (P + Q - absolute(P - Q)) / 2),
    ),
    valid(
        "and min(P, Q) = P min(1, Q/P): the sum is the mean of min(1, rho_1..rho_i) over the target's text",
        lambda P, Q: equal(smaller(P, Q), P * smaller(1, Q / P)),
        lambda P, Q: [P > 0, Q >= 0],
    ),
    valid(
        "attained: draft and output can agree on x_1..x_i with probability min(P, Q) at all depths at once, for the "
        "sum over the next token of min(P p, Q q) is no more than P and than Q",
        lambda P, Q, p, q: [at_most(smaller(P * p, Q * q), P * p), at_most(smaller(P * p, Q * q), Q * q)],
    ),
    in_words(
        "with c = min(P, Q) and s that sum, outputs that agree no more have P - c before and c - s newly: together "
        "P - s, the sum over x of E_x = P p - min(P p, Q q); drawn from E_x/(P - s) they make the output P p after all",
        lambda P, c, s, E, m: (((P - c) + (c - s)) * E / (P - s) + m, E + m),
    ),
    valid(
        "drafts likewise from F_x = Q q - min(P p, Q q); no x has both, so draft and output part there indeed",
        lambda A, B: equal((A - smaller(A, B)) * (B - smaller(A, B)), 0),
    ),
)
"""The bound, and a joint law of drafts and text that attains it."""


# For any pair


Handed = Callable[[Real, Real, Real, Real, Real], Real]
"""The probability to accept a run and one token more: from the run's own, p and q of the token, and P and Q of both."""


def mean_accepted(p: AnyPmf, q: AnyPmf, k: int, handed: Handed) -> Real:
    """Sum over depths and runs of tokens of the probability to accept the run."""

    def below(depth: int, M: Real, P: Real, Q: Real) -> Real:
        if depth == k:
            return 0
        longer = [(handed(M, a, b, P * a, Q * b), P * a, Q * b) for a, b in zip(p, q, strict=True)]
        return sum(each[0] + below(depth + 1, *each) for each in longer)

    return below(0, 1, 1, 1)


def by_token(p: AnyPmf, q: AnyPmf, k: int) -> Real:
    """E[tau] of token verification."""
    return mean_accepted(p, q, k, lambda M, a, b, P, Q: M * smaller(a, b))


def by_block(p: AnyPmf, q: AnyPmf, k: int) -> Real:
    """E[tau] of block verification."""
    return mean_accepted(p, q, k, lambda M, a, b, P, Q: smaller(Q, M * a))


def at_best(p: AnyPmf, q: AnyPmf, k: int) -> Real:
    """Sum of 1 - TV of the laws of i tokens."""
    return mean_accepted(p, q, k, lambda M, a, b, P, Q: smaller(P, Q))


def in_order(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """Token <= block <= bound, for two drafts."""
    token, block, best = (of(p, q, 2) for of in (by_token, by_block, at_best))
    yield at_most(token, block)
    yield at_most(block, best)


def thirds(block: Fraction, p: Any, q: Any) -> Iterator[Compared]:
    """The fixed numbers, from the algorithms and from the sums."""
    means = {name: accepted(CHAINS[name].algorithm, constant(p), constant(q), 2) for name in ("token", "block")}
    yield equal(means["token"], Fraction(10, 9))
    yield equal(means["block"], block)
    yield equal((by_token(p, q, 2), by_block(p, q, 2), at_best(p, q, 2)), (Fraction(10, 9), block, Fraction(12, 9)))
    half, one = Fraction(1, 2), Fraction(1)
    for last in (0, 1):
        text = (1, 0, last)
        terms = path_theorem.one_call_terms(constant(p), constant(q), text)
        running = path_theorem.block_survival(constant(p), constant(q), text)
        yield equal((terms(0, 1), terms(0, 2), path_theorem.calls(terms, 2, 3)[0]), (half, one, one))
        yield equal((running(0, 1), running(0, 2), path_theorem.calls(running, 2, 3)[0]), (half, half, 3 * half))


# For models of any order

DRAWN = tuple(name for name in CHAINS if "decoding" in RULES[name].bound_by)
"""Rules whose chain of drafts is drawn from q."""


def below(
    names: Sequence[str], best: Callable[..., Fraction], target: Table, draft: Table, k: int, **_: int
) -> Iterator[Compared]:
    """No rule accepts more."""
    p, q = target.__getitem__, draft.__getitem__
    for name in names:
        yield at_most(accepted(CHAINS[name].algorithm, p, q, k), best(p, q, k))


def reached(best: Callable[..., Fraction], target: Table, draft: Table, k: int, **_: int) -> Iterator[Compared]:
    """The bound, the mean of its terms over the target's text, and the most that drafts and text can agree."""
    p, q = target.__getitem__, draft.__getitem__
    terms = Fraction(0)
    for text, share in text_law(p, k).items():
        of = path_theorem.one_call_terms(p, q, text)
        terms += share * total(of(0, i) for i in range(1, k + 1))
    yield equal(terms, best(p, q, k))
    yield equal(most_agreement(p, q, k), best(p, q, k))


calls = with_edges(
    "Edges; then single calls on 2 and 3 tokens.", ((2, 1, 1), (2, 1, 2), (2, 1, 3), (3, 1, 1), (3, 1, 2)), 5
)


THIRDS: list[Case] = [{"p": (Fraction(1, 3), Fraction(2, 3)), "q": (Fraction(2, 3), Fraction(1, 3))}]
MODELS = "over random models of any order without stationarity, zeros included"

P7_ONE_CALL = Entry(
    id="§7/one-call",
    title="The most a single call can accept",
    kind="upper bound",
    plain="E[tau] <= sum_i (1 - TV of the laws of i tokens) = E_x~p sum_i min(1, rho_1..rho_i) for one call with k "
    "drafts, i = 1..k; reached, for every p, q and k, by a verification whose later text is not drawn afresh",
    latex=r"E[\tau] \le \sum_{i\le k} \big(1 - TV(p^{(i)}, q^{(i)})\big) "
    r"= E_{x\sim p} \sum_{i\le k} \min\Big(1, \prod_{l\le i} \rho_l\Big)",
    assumptions=(
        "the k drafts are one chain drawn from q",
        "the output's law is the target's; drafts may be verified in any way",
        "for one call: its mean over the starts of a text does not bound several calls (§7/mean)",
    ),
    evidence=(
        proof("depth by depth and run by run; then a joint law of drafts and text that attains it", STEPS),
        exact(
            Claim("every rule whose chain is drawn from q accepts no more in one call", partial(below, DRAWN, bound)),
            calls,
            over=MODELS,
            wrong=Claim(
                "nor than token verification", partial(below, DRAWN, partial(accepted, CHAINS["token"].algorithm))
            ),
        ),
        exact(
            Claim(
                "the bound is the mean of min(1, rho_1..rho_i) over the target's text, and the most that k drafts "
                "and a text can agree, by a linear programme in fractions",
                partial(reached, bound),
            ),
            calls,
            over=MODELS,
            wrong=Claim("block verification's mean is", partial(reached, partial(accepted, CHAINS["block"].algorithm))),
        ),
        exact(
            Claim(
                "token 10/9, block 11/9, bound 12/9; text (1, 0, x): the bound's terms 1/2, 1 would give 1 call, "
                "the running minimum 1/2, 1/2 gives 3/2",
                partial(thirds, Fraction(11, 9)),
            ),
            lambda _: THIRDS,
            over="p = (1/3, 2/3), q = (2/3, 1/3), k = 2: the algorithms and the sums over texts",
            wrong=Claim("block 12/9", partial(thirds, Fraction(12, 9))),
        ),
        searched(
            Claim("token <= block <= bound for two drafts", in_order),
            lambda: exact_pairs(3),
            over="one pair of pmfs at every position, 2 or 3 tokens",
            spaces=(pair_space(2),),
            wrong=Claim(
                "block <= sum of (1 - TV)^i, the bound of independent positions",
                lambda p, q: at_most(by_block(p, q, 2), by_token(p, q, 2)),
            ),
        ),
        agreement(
            Claim(
                "the library's terms at every start, their mean over the target's text, and the limit of a trace",
                partial(library_terms, path_theorem.one_call_terms),
            ),
            lambda effort: random_chains(effort, ((2, 3, 1), (2, 3, 2), (2, 3, 3), (3, 2, 2)), 2),
            over="traces of all texts of random models, every start with room for a call",
            wrong=Claim("they are block verification's survival", partial(library_terms, path_theorem.block_survival)),
        ),
        agreement(
            Claim("a ratio of sums over prompts, inside its interval", partial(ratio_of_sums, 0)),
            lambda _: ({"above": (*two, 1, 3), "below": (1, 2, *two)} for two in product((0, 1, 2), repeat=2)),
            over="four texts of two prompts",
            wrong=Claim("with one more", partial(ratio_of_sums, 1)),
        ),
    ),
    calculators=public("prediction.text_limit", "call_terms one_call_bound")
    + public("prediction.text_limit", "StartsByPosition")
    + public("prediction.over_prompts", "Prompts"),
)
