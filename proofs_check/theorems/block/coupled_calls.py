"""V6, V7: greedy block verification (sun2024block), whose calls hand the rest of a block on."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import bound, mean_calls, of_pairs, of_tables, turned
from proofs_check.agreement.path_cases import with_edges
from proofs_check.algorithms.enumeration import output_law
from proofs_check.algorithms.rivals import greedy_law
from proofs_check.library.strategies import plain_pairs
from proofs_check.prelude import *
from proofs_check.theorems.block.rivals import NAIVE

OVER = "over random models of any order without stationarity, zeros included, and edges"

models = with_edges("Edges; texts of 3 and 4 tokens out of 2, of 2 out of 3.", ((2, 3, 2), (2, 4, 2), (3, 2, 2)), 3)

longer = with_edges("Texts of 4 tokens out of 2, two drafts, and edges.", ((2, 4, 2),), 24)


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

V7 = Entry(
    id="V7",
    title="Greedy block verification takes no fewer calls than block verification: not refuted",
    kind="lower bound",
    plain=f"{NO_FEWER}: no counterexample was found, and no proof is known here (it is not fresh, so B7 does not "
    "speak of it). There is no strict form: often both take as many, 14/9 at p = (1/3, 2/3), q = (2/3, 1/3), two "
    "drafts, texts of three tokens",
    latex=r"E[\text{calls}]_{greedy} \ge E[\text{calls}]_{block}",
    assumptions=(),
    source=("sun2024block",),
    without={
        "symbolic": "no proof is known here",
        "certified": "no calculator of the library, and no logarithm",
        "search": "a case takes too long to draw many; random models are among the exact ones",
    },
    evidence=(
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
