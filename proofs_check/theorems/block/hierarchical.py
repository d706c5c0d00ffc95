"""V1, V2: hierarchical speculative decoding (zhou2026) is block verification, or needs more passes of the target."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import accepted, bound, lossless, mean_calls, of_pairs, of_tables, turned
from proofs_check.agreement.path_cases import with_edges
from proofs_check.algorithms.rivals import cut_short, hierarchical, hierarchical_naive, hierarchical_published, passes
from proofs_check.library.strategies import plain_pairs
from proofs_check.prelude import *
from proofs_check.theorems.block.rivals import CAPPED, NAIVE

OVER = "over random models of any order without stationarity, zeros included, and edges"
DIFFERENT = Assumption("p and q differ", lambda p, q: p != q)
SMALL = "first among the pairs on 2 tokens by their denominator, two drafts"

models = with_edges(
    "Edges; one to three drafts on 2 tokens, two on 3.", ((2, 3, 1), (2, 3, 2), (2, 3, 3), (3, 2, 2)), 5
)

few = with_edges("Fewer of them, for whole texts.", ((2, 3, 2), (2, 4, 3), (3, 2, 2)), 3)


def small_pairs(effort: Effort) -> Iterator[Case]:
    """Pairs on 2 tokens."""
    return cases.all_pairs(2, effort.pick(4, 7))


def same_calls(rule: Rule, target: Model, draft: Model, k: int, **_: int) -> Compared:
    """The law of a call, output and accepted drafts together."""
    return equal(rule(target, draft, (), k), block_verification(target, draft, (), k))


def same_turned(rule: Rule, p: Pmf, q: Pmf) -> Compared:
    """The same for two drafts of models that turn a pair of pmfs."""
    target, draft = turned(p, q)
    return same_calls(rule, target.__getitem__, draft.__getitem__, 2)


def more(strict: bool, target: Model, draft: Model, k: int) -> Iterator[Compared]:
    """Accepted drafts of Algorithm 2 against block and token verification."""
    ours, block, token = (
        accepted(rule, target, draft, k) for rule in (hierarchical, block_verification, token_verification)
    )
    yield at_most(token, block)
    yield equal(Fraction(ours > block), Fraction(strict))


def naive(rule: Rule, target: Model, draft: Model, k: int, length: int) -> Iterator[Compared]:
    """The text is the target's and the one-call bound is reached."""
    yield from lossless((rule,), target, draft, k, length)
    yield equal(accepted(hierarchical_naive, target, draft, k), bound(target, draft, k))


def naive_turned(rule: Rule, p: Pmf, q: Pmf) -> Iterator[Compared]:
    """The same for two drafts of models that turn a pair of pmfs."""
    target, draft = turned(p, q)
    return naive(rule, target.__getitem__, draft.__getitem__, 2, 2)


def mean_passes(target: Model, draft: Model, k: int, length: int) -> Fraction:
    """Expected passes of the target for a text by Algorithm 1; tokens past its end are not resampled."""
    total = Fraction(0)
    for (_, counts), share in Decoding(hierarchical_naive, k, length).law(target, draft).items():
        at = 0
        for tau in counts:
            total += share * (passes(tau, min(k, length - at)) if tau < length - at else 1)
            at += k + (tau == k)
    return total


def cheaper(rule: Rule, target: Model, draft: Model, k: int, length: int) -> Compared:
    """Passes of Algorithm 1 against calls of another rule."""
    return at_most(mean_passes(target, draft, k, length), mean_calls(rule, target, draft, k, length))


# Block verification by products of uniforms, as an engine had it, is not lossless.


def first_tokens(products: bool, p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The law of a call's first token, two drafts of one pair of pmfs, recovered from norm (p - q)+."""
    accept = [smaller(1, a / b) for a, b in zip(p, q, strict=True)]

    def rejected(a: Real, b: Real) -> Real:
        """P(not u_1 <= a), products: nor u_1 u_2 <= a b, of uniforms: the integral of 1 - ab/u over u from a to 1."""
        return 1 - a + a * b * log(a) if products else 1 - a

    lost = [sum(q[y] * rejected(accept[x], accept[y]) for y in range(len(q))) for x in range(len(q))]
    mass = sum(q[x] * lost[x] for x in range(len(q)))
    spread = sum(positive_part(a - b) for a, b in zip(p, q, strict=True))
    for x in range(len(p)):
        yield equal(q[x] * (1 - lost[x]) + mass * positive_part(p[x] - q[x]) / spread, p[x])


V1 = Entry(
    id="V1",
    title="Hierarchical speculative decoding is block verification",
    kind="identity",
    plain="Algorithm 2 of zhou2026 (ratios capped by the largest prefix ratio, scanned from the last draft back, "
    "one token resampled) tosses the coins of block verification: r* of the runs is its running ratio, h_t its "
    "S/(S + 1 - r), the resampling law its residual. So output, accepted drafts and calls have its laws: it is "
    "lossless, what follows a call is fresh, and it has the path form of block verification",
    latex=r"\frac{r(X^t)}{\max(1,\max_{i\le t} r(X^i))} = w_t,\quad w_t = \min(1, w_{t-1}\,p/q),\qquad "
    r"\frac{D^*(p,q)}{D^*(q,p)} = \frac{S_t}{S_t + 1 - w_t},\ S_t = \sum_x (w_t p - q)_+",
    assumptions=("the maximum of the prefix ratios includes the run's own where the next token is judged (Def. 4)",),
    source=("zhou2026", "sun2024block"),
    number="Algorithm 2",
    calculators=("spectheory.verification.BlockVerification",),
    without={"certified": "the library's block verification is compared under §7"},
    evidence=(
        proof("the same coins and the same residual", CAPPED),
        exact(
            Claim(
                "the law of (output, accepted drafts) is block verification's",
                of_tables(partial(same_calls, hierarchical)),
            ),
            models,
            over=OVER,
            wrong=Claim("that of the public code is", of_tables(partial(same_calls, hierarchical_published))),
        ),
        exact(
            Claim(
                "whole texts are the target's, several calls in a row", of_tables(partial(lossless, (hierarchical,)))
            ),
            few,
            over=OVER,
            wrong=Claim("those of the public code are", of_tables(partial(lossless, (hierarchical_published,)))),
        ),
        searched(
            Claim("the law of a call is block verification's", partial(same_turned, hierarchical)),
            lambda: exact_pairs(2),
            over="models that turn one pair of pmfs on 2 tokens, weights from 0 to 1e30",
            wrong=Claim("that of the public code is", partial(same_turned, hierarchical_published)),
        ),
    ),
)

V1_MORE = Entry(
    id="V1/more",
    title="Hierarchical speculative decoding accepts more than block verification",
    kind="refuted",
    plain="E[tau] of Algorithm 2 is at least that of block verification, equal for one draft alone (it is equal "
    "always: the two are one rule, V1)",
    latex=r"E[\tau]_{branch} \ge E[\tau]_{block} \ge E[\tau]_{token},\quad \text{equality iff } \gamma = 1",
    assumptions=(POSITIVE.says, DIFFERENT.says),
    source=("zhou2026",),
    number="Theorem 7",
    evidence=(
        counterexample(
            Claim("it accepts more with two drafts", of_pairs(partial(more, True), k=2), (POSITIVE, DIFFERENT)),
            small_pairs,
            over=SMALL,
            true=Claim("it accepts as many, and token verification no more", of_pairs(partial(more, False), k=2)),
        ),
    ),
)

V1_PUBLISHED = Entry(
    id="V1/published",
    title="The public code of hierarchical speculative decoding is lossless",
    kind="refuted",
    plain="with h_t of Algorithm 2 below the last draft and min(1, r), uncapped, at the last one, as the public code "
    "has it, the text is the target's (it accepts the last draft too often wherever a shorter run has a ratio above 1)",
    latex=r"h_\gamma = \min(1, r(X^\gamma))\ \text{in place of}\ \min(1, r^*(X^\gamma))",
    assumptions=(),
    source=("zhou2026",),
    evidence=(
        counterexample(
            Claim(
                "a text of two tokens is the target's",
                of_pairs(partial(lossless, (hierarchical_published,)), k=2, length=2),
            ),
            small_pairs,
            over=SMALL,
            true=Claim("so it is with Algorithm 2", of_pairs(partial(lossless, (hierarchical,)), k=2, length=2)),
        ),
    ),
)

V2 = Entry(
    id="V2",
    title="Naive hierarchical speculative decoding",
    kind="identity",
    plain="Algorithm 1 of zhou2026 (nothing capped, every token after the accepted ones resampled until there are "
    "k) is lossless and accepts sum_i (1 - TV of the laws of i tokens), the one-call bound of §7; what it "
    "resamples after the first token costs a pass of the target each, 1 + max(k - tau - 1, 0) passes a call",
    latex=r"E[\tau] = \sum_{i\le k} \big(1 - TV(p^{(i)}, q^{(i)})\big),\qquad \text{passes} = 1 + (k - \tau - 1)_+",
    assumptions=("a call ends after k tokens, or k + 1 if all drafts are accepted",),
    source=("zhou2026",),
    number="Algorithm 1",
    without={"certified": "no calculator of the library, and no logarithm"},
    evidence=(
        proof("the masses that are rejected, accepted and resampled", NAIVE),
        exact(
            Claim(
                "whole texts are the target's, the one-call bound is reached",
                of_tables(partial(naive, hierarchical_naive)),
            ),
            few,
            over=OVER,
            wrong=Claim(
                "so it is if the next call takes over after one resampled token", of_tables(partial(naive, cut_short))
            ),
        ),
        searched(
            Claim("the same for two drafts and texts of two tokens", partial(naive_turned, hierarchical_naive)),
            plain_pairs,
            over="models that turn one pair of pmfs on 2 tokens, weights from 0 to 12",
            wrong=Claim("with the public code's coins", partial(naive_turned, hierarchical_published)),
        ),
    ),
)

V2_FRESH = Entry(
    id="V2/fresh",
    title="After naive hierarchical decoding the next call may take over",
    kind="refuted",
    plain="the tokens after the first resampled one may be left to the next call, as in block verification (they "
    "are no fresh sample of the target, given what was accepted; only so can the one-call bound be reached)",
    latex=r"X_{\tau+2}, \dots \sim p(\cdot \mid X_{1:\tau+1})",
    assumptions=(),
    evidence=(
        counterexample(
            Claim("the text is the target's", of_pairs(partial(lossless, (cut_short,)), k=2, length=2)),
            small_pairs,
            over=SMALL,
            true=Claim(
                "it is if k tokens are resampled", of_pairs(partial(lossless, (hierarchical_naive,)), k=2, length=2)
            ),
        ),
    ),
)

V2_PASSES = Entry(
    id="V2/passes",
    title="Naive hierarchical decoding needs no more target passes than block verification",
    kind="refuted",
    plain="as it accepts the most of one call, Algorithm 1 needs no more passes of the target than block "
    "verification needs calls (tokens resampled after the first one cost a pass each)",
    latex=r"E[\text{passes}]_{naive} \le E[\text{calls}]_{block}",
    assumptions=(),
    evidence=(
        counterexample(
            Claim(
                "texts of four tokens, three drafts",
                of_pairs(partial(cheaper, block_verification), k=3, length=4),
                (POSITIVE,),
            ),
            small_pairs,
            over="first among the positive pairs on 2 tokens by their denominator",
            true=Claim(
                "it needs no more than plain decoding",
                of_pairs(partial(cheaper, lambda p, q, text, k: token_verification(p, q, text, 0)), k=3, length=4),
            ),
        ),
    ),
)

V1_PRODUCTS = Entry(
    id="V1/products",
    title="Products of uniforms make block verification",
    kind="refuted",
    plain="accepting the longest run with prod min(1, p/q) >= u_1 u_2 ... u_i, and recovering from norm (p - q)+, "
    "is lossless (vLLM Ascend had it as block verification, vllm-project/vllm-ascend#7807; a product of uniforms "
    "is smaller than one uniform, so drafts are accepted too often)",
    latex=r"\prod_{j\le i} \min(1, p/q) \ge \prod_{j \le i} u_j",
    assumptions=(POSITIVE.says, DIFFERENT.says),
    without={"exact": "a logarithm enters: P(u_1 u_2 <= c) = c (1 - log c)"},
    evidence=(
        counterexample(
            Claim("the first token of two drafts is the target's", partial(first_tokens, True), (POSITIVE, DIFFERENT)),
            small_pairs,
            over="first among the pairs on 2 tokens by their denominator",
            true=Claim(
                "it is where each uniform is compared by itself", partial(first_tokens, False), (POSITIVE, DIFFERENT)
            ),
            kind="certified",
        ),
    ),
)
