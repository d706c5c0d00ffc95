"""Block verification by products of uniforms, as an engine had it, is not lossless."""

from __future__ import annotations

from proofs_check.prelude import *

DIFFERENT = Assumption("p and q differ", lambda p, q: p != q)


def rejected_first(a: Real, b: Real) -> Real:
    """P(neither u_1 <= a nor u_1 u_2 <= a b) of uniforms: the integral of 1 - ab/u over u from a to 1."""
    return 1 - a + a * b * log(a)


def rejected_by_itself(a: Real, b: Real) -> Real:
    """P(not u_1 <= a)."""
    return 1 - a


def first_tokens(products: bool, p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The law of a call's first token, two drafts of one pair of pmfs, recovered from norm (p - q)+."""
    rejected = rejected_first if products else rejected_by_itself
    accept = [smaller(1, a / b) for a, b in zip(p, q, strict=True)]
    lost = [sum(q[y] * rejected(accept[x], accept[y]) for y in range(len(q))) for x in range(len(q))]
    mass = sum(q[x] * lost[x] for x in range(len(q)))
    spread = sum(positive_part(a - b) for a, b in zip(p, q, strict=True))
    for x in range(len(p)):
        yield equal(q[x] * (1 - lost[x]) + mass * positive_part(p[x] - q[x]) / spread, p[x])


def small_pairs(effort: Effort) -> Iterator[Case]:
    """Pairs on 2 tokens."""
    return cases.all_pairs(2, effort.pick(4, 7))


ENTRIES = (
    Entry(
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
                Claim(
                    "the first token of two drafts is the target's", partial(first_tokens, True), (POSITIVE, DIFFERENT)
                ),
                small_pairs,
                over="first among the pairs on 2 tokens by their denominator",
                true=Claim(
                    "it is where each uniform is compared by itself",
                    partial(first_tokens, False),
                    (POSITIVE, DIFFERENT),
                ),
                kind="certified",
            ),
        ),
    ),
)
"""What this file refutes."""
