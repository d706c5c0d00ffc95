"""§7: the most a single call can accept, with any verification of a chain of drafts; and a proof that it is reached."""

from __future__ import annotations

from itertools import product as tuples

from proofs_check.agreement.path_cases import CHAINS, constant, edge_chains, random_chains
from proofs_check.agreement.whole_calls import accepted, bound, library, ratio_of_sums
from proofs_check.algorithms.lossless_calls import most_agreement
from proofs_check.prelude import *
from proofs_check.twins import path_theorem
from spectheory.verification import RULES

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
        total: Real = 0
        for a, b in zip(p, q, strict=True):
            more = handed(M, a, b, P * a, Q * b)
            total = total + more + below(depth + 1, more, P * a, Q * b)
        return total

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
    drawn = {name: accepted(CHAINS[name].algorithm, constant(p), constant(q), 2) for name in ("token", "block")}
    yield equal(drawn["token"], Fraction(10, 9))
    yield equal(drawn["block"], block)
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
        terms += share * sum((of(0, i) for i in range(1, k + 1)), Fraction(0))
    yield equal(terms, best(p, q, k))
    yield equal(most_agreement(p, q, k), best(p, q, k))


def block_mean(target: Any, draft: Any, k: int) -> Fraction:
    """E[tau] of block verification."""
    return accepted(CHAINS["block"].algorithm, target, draft, k)


def token_mean(target: Any, draft: Any, k: int) -> Fraction:
    """E[tau] of token verification."""
    return accepted(CHAINS["token"].algorithm, target, draft, k)


def calls(effort: Effort) -> Iterator[Case]:
    """Edges; then single calls on 2 and 3 tokens."""
    yield from edge_chains()
    yield from random_chains(effort, ((2, 1, 1), (2, 1, 2), (2, 1, 3), (3, 1, 1), (3, 1, 2)), 5)


def texts(effort: Effort) -> Iterator[Case]:
    """Texts with room for one call and more."""
    return random_chains(effort, ((2, 3, 1), (2, 3, 2), (2, 3, 3), (3, 2, 2)), 2)


def drawn_sums(_: Effort) -> Iterator[Case]:
    """Sums of four texts of two prompts."""
    for numbers in tuples((0, 1, 2), repeat=2):
        yield {"above": (*numbers, 1, 3), "below": (1, 2, *numbers)}


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
            wrong=Claim("nor than token verification", partial(below, DRAWN, token_mean)),
        ),
        exact(
            Claim(
                "the bound is the mean of min(1, rho_1..rho_i) over the target's text, and the most that k drafts "
                "and a text can agree, by a linear programme in fractions",
                partial(reached, bound),
            ),
            calls,
            over=MODELS,
            wrong=Claim("block verification's mean is", partial(reached, block_mean)),
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
                partial(library, path_theorem.one_call_terms),
            ),
            texts,
            over="traces of all texts of random models, every start with room for a call",
            wrong=Claim("they are block verification's survival", partial(library, path_theorem.block_survival)),
        ),
        agreement(
            Claim("a ratio of sums over prompts, inside its interval", partial(ratio_of_sums, 0)),
            drawn_sums,
            over="four texts of two prompts",
            wrong=Claim("with one more", partial(ratio_of_sums, 1)),
        ),
    ),
    calculators=public("prediction.one_call", "call_terms one_call_bound")
    + public("prediction.text_limit", "StartsByPosition")
    + public("prediction.over_prompts", "Prompts"),
)
