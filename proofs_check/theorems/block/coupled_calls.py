"""V6, V7: greedy block verification (sun2024block), whose calls hand the rest of a block on."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import bound, mean_calls, of_pairs, of_tables, turned
from proofs_check.agreement.path_cases import with_edges
from proofs_check.algorithms.enumeration import output_law
from proofs_check.algorithms.rivals import cut_short, greedy_law, owed
from proofs_check.library.strategies import plain_pairs
from proofs_check.prelude import *
from proofs_check.theorems.block.rivals import NAIVE
from proofs_check.twins.block_values import *

OVER = "over random models of any order without stationarity, zeros included, and edges"

models = with_edges("Edges; texts of 3 and 4 tokens out of 2, of 2 out of 3.", ((2, 3, 2), (2, 4, 2), (3, 2, 2)), 3)

longer = with_edges("Texts of 4 tokens out of 2, two and three drafts, and edges.", ((2, 4, 2), (2, 4, 3)), 12)

several = with_edges("Texts of 3 to 5 tokens, two and three drafts.", ((2, 4, 2), (2, 4, 3), (2, 5, 3), (3, 3, 2)), 3)


def small_pairs(effort: Effort) -> Iterator[Case]:
    """Pairs on 2 tokens."""
    return cases.all_pairs(2, effort.pick(4, 6))


def coupled_calls(target: Model, draft: Model, k: int, length: int) -> Fraction:
    """Expected calls of greedy block verification."""
    law = greedy_law(target, draft, k, length)
    return total(len(accepted) * share for (_, accepted), share in law.items())


def coupled(best: bool, target: Model, draft: Model, k: int, length: int) -> Iterator[Compared]:
    """The text is the target's; the first call accepts the one-call bound (else one draft less of it)."""
    law = greedy_law(target, draft, k, length)
    said = {text: share for text, share in text_law(target, length).items() if share > 0}
    yield equal({text: share for text, share in output_law(law).items() if share > 0}, said)
    first = total(accepted[0] * share for (_, accepted), share in law.items())
    yield equal(first, bound(target, draft, k if best else k - 1))


def coupled_turned(best: bool, p: Pmf, q: Pmf) -> Iterator[Compared]:
    """The same for two drafts and texts of two tokens of models that turn a pair of pmfs."""
    target, draft = turned(p, q)
    return coupled(best, target.__getitem__, draft.__getitem__, 2, 2)


def beside(rule: Rule, fewer: bool, target: Model, draft: Model, k: int, length: int) -> Compared:
    """Its calls against those of another rule."""
    ours, other = coupled_calls(target, draft, k, length), mean_calls(rule, target, draft, k, length)
    return at_most(ours, other) if fewer else at_least(ours, other)


def strictly(target: Model, draft: Model, k: int, length: int) -> Compared:
    """It takes more calls than block verification, not as many."""
    ours, other = coupled_calls(target, draft, k, length), mean_calls(block_verification, target, draft, k, length)
    return equal(int(ours > other), 1)


NO_FEWER = "greedy block verification takes no fewer expected calls than block verification"

V6 = Entry(
    id="V6",
    title="Greedy block verification",
    kind="identity",
    plain="a call that tosses the coins of V2 and outputs one token after the accepted ones owes the rest of its "
    "block: up to k tokens from its start the following calls verify against the law in proportion to (P - Q)+, P "
    "and Q of the run since that start. The text is the target's, and the first call accepts the one-call bound, "
    "but what follows a call is not fresh",
    latex=r"p'(x \mid X) \propto \big(P(Xx) - Q(Xx)\big)_+ \ \text{within the block},\qquad "
    r"E[\tau_1] = \sum_{i\le k} \big(1 - TV(p^{(i)}, q^{(i)})\big)",
    assumptions=("a call's target law is the one it was handed; the draft's law is its own",),
    source=("sun2024block",),
    without={"certified": "no calculator of the library, and no logarithm"},
    evidence=(
        proof(
            "the masses of a call and of what it owes; later calls are lossless for the law they were handed, by "
            "induction over the positions left",
            NAIVE,
        ),
        exact(
            Claim("whole texts are the target's, the first call accepts the bound", of_tables(partial(coupled, True))),
            models,
            over=OVER,
            wrong=Claim("it accepts that of one draft less", of_tables(partial(coupled, False))),
        ),
        searched(
            Claim("the same for two drafts and texts of two tokens", partial(coupled_turned, True)),
            plain_pairs,
            over="models that turn one pair of pmfs on 2 tokens, weights from 0 to 12",
            wrong=Claim("it accepts the bound of one draft less", partial(coupled_turned, False)),
        ),
    ),
)

V6_CALLS = Entry(
    id="V6/calls",
    title="Accepting the most in a call saves calls",
    kind="refuted",
    plain="greedy block verification, which accepts the most of a call, takes no more expected calls than block "
    "verification (what it accepts now it owes later: the law it hands on is farther from the draft's)",
    latex=r"E[\text{calls}]_{greedy} \le E[\text{calls}]_{block}",
    assumptions=(POSITIVE.says,),
    source=("sun2024block",),
    evidence=(
        counterexample(
            Claim(
                "two drafts, texts of four tokens",
                of_pairs(partial(beside, block_verification, True), k=2, length=4),
                (POSITIVE,),
            ),
            small_pairs,
            over="first among the positive pairs on 2 tokens by their denominator",
            true=Claim(
                "for texts of three tokens it takes as many or fewer than token verification",
                of_pairs(partial(beside, token_verification, True), k=2, length=3),
            ),
        ),
    ),
)

# V7: one call of greedy block verification, then block verification against the law that it hands on.


def starts_of_one(given: Problem, owing: Problem) -> dict[Prefix, Fraction]:
    """The probability that a call starts after each text that goes on; `owing` has the law that is handed on."""
    first = cut_short(given.target, given.draft_from(()), (), given.drafts(()))
    starts = {text: Fraction(not text) for text in going_on(given)}
    for text, share in starts.items():  # shorter texts first
        outputs = (
            stops(owing, text, block_masses(owing, text)).items() if text else ((o, c) for (o, _), c in first.items())
        )
        for output, chance in outputs if share else ():
            if text + output in starts:
                starts[text + output] += share * chance
    return starts


def reached(given: Problem, of: MassesOf, starts: Mapping[Prefix, Fraction], text: Prefix) -> Fraction:
    """Sum over calls that start at most k tokens before the end of a text: P(start) times the mass of the rest."""
    begun = (text[:n] for n in range(max(len(text) - given.drafts(()), 0), len(text) + 1))
    return total(starts[v] * of(given, v)[len(text) - len(v)][text[len(v) :]] for v in begun if starts.get(v))


def one_greedy_call(of: MassesOf, target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """Every step of the proof: calls = V + sum D (reached - P), no text reached with less than P, what is owed."""
    given = texts(target.__getitem__, draft.__getitem__, k, length)
    owing = replace(given, target=owed(given.target, given.draft_from(()), (), k))
    value, starts = expected_calls(given), starts_of_one(given, owing)
    fall, P = drop(given, value), partial(probability, given.target, ())
    excess = {text: reached(given, of, starts, text) - P(text) for text in starts}
    yield equal(total(starts.values()), value(()) + total(fall(text) * more for text, more in excess.items()))
    for more in excess.values():
        yield at_least(more, Fraction(0))
    later, masses = starts | {(): Fraction(0)}, cache(partial(block_masses, owing))
    for text in starts:
        if 0 < len(text) <= k:
            left = positive_part(P(text) - probability(given.draft_from(()), (), text))
            yield equal(reached(owing, block_masses, later, text), left)
        for i, depth in enumerate(of(given, text) if 0 < len(text) < k and starts[text] else ()):
            for run, mass in depth.items():
                if len(text + run) > k:
                    yield at_most(masses(text)[i][run], mass)


COUPLED: tuple[Step, ...] = (
    *NAIVE,
    same(
        "a call starts after v with probability c(v). The renewal identity of B7 at every start, for the law P that "
        "the call at hand verifies against, counts the calls of any policy whose text has that law: sum_v c(v) = sum_u "
        "D(u) sum_(v<=u) c(v) mu^v(u-v); and V = sum_u P(u) D(u), as D is what V falls by. Here two texts and D",
        lambda c, m, D, E: ((D + m * E) + c * E, D + (m + c) * E),
    ),
    valid(
        "so a policy takes no fewer calls than V if every text u has sum_(v<=u) c(v) mu^v(u-v) >= P(u), D being 0 or "
        "more: here two texts",
        lambda D, E, a, b, P, R: at_most(P * D + R * E, a * D + b * E),
        lambda D, E, a, b, P, R: [D >= 0, E >= 0, P >= 0, R >= 0, a >= P, b >= R],
    ),
    valid(
        "let one greedy call be followed by block verification against the owed law, o(y|v) = d(vy)/S(v) with d = (P - "
        "Q)+, S(v) = sum_y d(vy), up to k tokens. The text begins with u, |u| <= k, and the greedy call has stopped "
        "before its end with probability d(u): by induction d(v) = (S - E)+ goes on with o, and min(S, E) d/S stops",
        lambda d, S, E: equal(positive_part(S - E) * d / S + smaller(S, E) * d / S, d),
        lambda d, S, E: [d >= 0, S > 0, E >= 0],
    ),
    in_words(
        "later calls have block verification's masses nu for the owed law, and one of them has accepted up to u: "
        "sum_(1<=|v|, v<=u) c(v) nu^v(u-v) = d(u), as the first call does (here v of one token, then u itself)",
        lambda c, n, d: (c * n + (d - c * n), d),
    ),
    valid(
        "|u| <= k: let w be the first beginning of u with the smallest ratio Q/P. If v <= w, then mu^v(u-v) = Q(w|v) "
        "P(u|w): a beginning between v and w, from which e and E lead to w, has no smaller term",
        lambda Q, P, a, e, E: at_most(a * e, a * E),
        lambda Q, P, a, e, E: [P > 0, Q > 0, a >= 0, e >= 0, E > 0, (Q * e) / (P * E) <= Q / P],
    ),
    valid(
        "nor has one after w, to which e and E lead",
        lambda Q, P, a, e, E: at_most(a * E, a * e),
        lambda Q, P, a, e, E: [P > 0, Q > 0, a >= 0, e >= 0, E > 0, (Q * e) / (P * E) >= Q / P],
    ),
    valid(
        "so with r = P(u|w) the first call has mu(u) = Q(w) r, and the calls from v with 1 <= |v|, v <= w have sum "
        "c(v) Q(w|v) r >= sum c(v) nu^v(w-v) r = d(w) r: together (Q + d) r = P(u), as Q(w) <= P(w)",
        lambda P, Q, r, s: at_least(Q * r + s * r, P * r),
        lambda P, Q, r, s: [P >= 0, Q >= 0, Q <= P, r >= 0, s >= positive_part(P - Q)],
    ),
    valid(
        "|u| > k: sum c(v) nu^v(u-v) = P(u), and nu^v(u-v) <= mu^v(u-v): at the j of the least term, within the first "
        "k tokens, its run x to k has p <= q, so the owed law gives x at most d/S(j) <= (P p - Q q)+/(P - Q) <= p",
        lambda P, Q, p, q, S: at_most(positive_part(P * p - Q * q) / S, p),
        lambda P, Q, p, q, S: [Q >= 0, P > Q, p >= 0, q >= p, S >= P - Q],
    ),
    valid(
        "backwards from the longest texts: if the greedy rule takes J >= V of the law handed on, whatever it is, then "
        "1 + sum a J >= 1 + sum a V >= V of the law at hand, here with two outputs",
        lambda a, b, J, K, v, w, V: at_most(V, 1 + a * J + b * K),
        lambda a, b, J, K, v, w, V: [a >= 0, b >= 0, v <= J, w <= K, 1 + a * v + b * w >= V],
    ),
)
"""Greedy block verification takes no fewer calls than block verification."""

V7 = Entry(
    id="V7",
    title="Greedy block verification takes no fewer calls than block verification",
    kind="lower bound",
    plain=f"{NO_FEWER}, for every k, text and draft model. It is not fresh, so B7 does not cover it. But with c(v) the "
    "probability that a call starts after v, any policy whose text has the target's law takes sum_u D(u) sum_(v<=u) "
    "c(v) mu^v(u-v) calls. That is V or more if the inner sum is P(u) or more at every u, which holds for one greedy "
    "call followed by block verification against the law that it hands on. There is no strict form: often both take "
    "as many, 14/9 at p = (1/3, 2/3), q = (2/3, 1/3), two drafts, texts of three tokens",
    latex=r"\sum_{v\le u} c(v)\,\mu^v(u-v) \ge P(u)\ \ \forall u \ \Rightarrow\ E[\text{calls}]_{greedy} = \sum_u D(u)"
    r"\sum_{v \le u} c(v)\,\mu^v(u-v) \ge \sum_u D(u)\,P(u) = E[\text{calls}]_{block}",
    assumptions=(
        "the draft's pmfs depend on the text alone, not on where the call starts",
        "a call's target law is the one it was handed",
    ),
    source=("sun2024block",),
    without={
        "certified": "no calculator of the library, and no logarithm",
        "search": "a case takes too long to draw many; random models are among the exact ones",
    },
    evidence=(
        proof("starts weighed by D, the law handed on, the beginning of the smallest ratio, induction", COUPLED),
        exact(
            Claim(
                "one greedy call, then block verification against the law handed on, run through: every step of the "
                "proof at every text",
                partial(one_greedy_call, block_masses),
            ),
            several,
            over=f"{OVER}; texts of 3 to 5 tokens, two and three drafts",
            wrong=Claim("with token verification's masses", partial(one_greedy_call, token_masses)),
        ),
        exact(
            Claim(NO_FEWER, of_tables(partial(beside, block_verification, False))),
            longer,
            over=OVER,
            wrong=Claim("nor than token verification", of_tables(partial(beside, token_verification, False))),
        ),
        exact(
            Claim(NO_FEWER, of_pairs(partial(beside, block_verification, False), k=2, length=4)),
            small_pairs,
            over="every pair on 2 tokens of denominator up to 4, two drafts, texts of four tokens",
            wrong=Claim(
                "for texts of three tokens it takes more wherever positive p and q differ",
                of_pairs(strictly, k=2, length=3),
                (POSITIVE, Assumption("p and q differ", lambda p, q: p != q)),
            ),
        ),
    ),
)
