"""All calls of a text together, their mean and variance (§7): proof, algorithms, library and simulation."""

from __future__ import annotations

from proofs_check.agreement.call_counts import chains, mean_over_starts, trees, without_spread
from proofs_check.agreement.kept_noise import kept, noisy_cases
from proofs_check.agreement.path_agreement import counted, mean_of_starts, predicted, tokens_per_call
from proofs_check.agreement.path_cases import edge_chains, random_chains
from proofs_check.prelude import *
from proofs_check.twins import path_theorem
from spectheory.verification.registry import VALIDATED_TREE_RULES

STEPS: tuple[Step, ...] = (
    in_words(
        "what a call leaves to come is a fresh sample of the target whatever the call saw, so probabilities multiply: "
        "calls before with S A, A the target's probability of their tokens, this one with s P, later text R; given the "
        "text that is S A s P R/(A P R) = S s: calls are independent",
        lambda S, A, s, P, R: (S * A * s * P * R / (A * P * R), S * s),
    ),
    same(
        "the last call may reach past the end: summed over the tokens there, y and all others, M_i stays M_i, so the "
        "laws are those of a longer text; and they are the same if fewer drafts are made there, as M_i knows no k",
        lambda M, y: (M * y + M * (1 - y), M),
    ),
    same(
        "the calls T from n on are 1 + T', T' those from n+i+1 on and independent of tau = i; a term of the mean is "
        "s (1 + c) = s + s c and the s sum to 1: C(n) = 1 + sum s C(n+i+1)",
        lambda s, c: (s * (1 + c), s + s * c),
    ),
    same(
        "a term of the second moment, T' of mean c and variance v: s E[(1+T')^2] = s ((1+c)^2 + v) = s (1 + 2c + c^2 + "
        "v), so with A = sum s c and B = sum s (c^2 + v) it is 1 + 2A + B",
        lambda s, c, v: (s * ((1 + c) ** 2 + v), s * (1 + 2 * c + (c**2 + v))),
    ),
    same(
        "less the square of the mean 1 + A: V(n) = sum s (V + C^2)(n+i+1) - (sum s C(n+i+1))^2",
        lambda A, B: (1 + 2 * A + B - (1 + A) ** 2, B - A**2),
    ),
)
"""Independence, mean and variance."""


def few(effort: Effort) -> Iterator[Case]:
    """Edges; then texts of 3 tokens out of 2 and of 2 out of 3."""
    yield from edge_chains()
    yield from random_chains(effort, ((2, 3, 1), (2, 3, 2), (2, 3, 3), (3, 2, 2)), 3)


RECURSION = "C(n) = 1 + sum_i P(tau=i) C(n+i+1) and the second moment's recursion give mean and variance of the calls"

CHAIN_CALLS = Claim(
    f"chains of every rule: {RECURSION}, 1 + C(1) with a prefill that emits a token; drafting less at the end changes "
    "no call; full acceptances and the starts' expected numbers",
    partial(chains, path_theorem.calls),
)

CALLED = {"chains": "yin2024", "length": 20}
"""The paper's test bed: texts of 20 tokens."""

TREED = tuple(rule.name for rule in VALIDATED_TREE_RULES)
"""Rules that take trees."""

CALLS = (
    proof("calls are independent given the text; mean and variance, for any number of branches", STEPS),
    exact(
        CHAIN_CALLS,
        few,
        over="against whole decodings of random models",
        wrong=Claim("the second moment is 1 + sum s Q", partial(chains, without_spread)),
    ),
    exact(
        Claim(
            f"trees of every rule with ranks: {RECURSION}; calls that end at a leaf", partial(trees, path_theorem.calls)
        ),
        lambda effort: random_chains(effort, ((2, 3, 2), (3, 2, 2)), 3),
        over="against whole decodings of random models",
        wrong=Claim("the calls are N/(1 + mean survival over starts)", partial(trees, mean_over_starts)),
    ),
    exact(
        Claim(
            "rules that decide each position by noise of its own may keep it from call to call: calls are independent "
            "with the same laws, though a position that was drafted after a wrong prefix uses its noise again",
            partial(kept, False),
        ),
        noisy_cases,
        over="all noise of random models, drafts and outputs read off one cumulative scale",
        wrong=Claim("positions may share one piece of noise", partial(kept, True)),
    ),
    agreement(
        Claim("the library's calls, variances, full acceptances and starts", partial(counted, path_theorem.calls)),
        few,
        over="chains of all lengths and trees, all texts of random models",
        wrong=Claim("the second moment is 1 + sum s Q", partial(counted, without_spread)),
    ),
    agreement(
        Claim(
            "predict and plan: tokens per call = all tokens over all expected calls, for every rule with a chain, a "
            "batch, a tree and the best tree found, from two numbers per token, and with a prefill that emits one",
            partial(predicted, tokens_per_call),
        ),
        few,
        over="traces of all texts of random models",
        wrong=Claim("tokens per call = 1 + mean accepted drafts over starts", partial(predicted, mean_of_starts)),
    ),
    simulated(
        "calls of texts by token verification, 1, 3 and 6 drafts a call",
        [("token", {**CALLED, "k": k}) for k in (1, 3, 6)],
        stated("§7"),
        wrong=("one draft more", stated("§7", k=lambda k: k + 1)),
    ),
    simulated(
        "calls of texts by block verification, 2 and 3 drafts a call",
        [("block", {**CALLED, "k": k}) for k in (2, 3)],
        stated("§7"),
        wrong=("those of token verification", stated("§7", kind="token")),
    ),
    simulated(
        "calls of texts of 6 tokens by races, distinct recursive rejection and top-k, three nodes a call",
        [("decode", {**CALLED, "length": 6, "rule": rule, "paths": [[1], [2], [1, 1]]}) for rule in TREED],
        stated("§7"),
        wrong=("those of chains of three", stated("§7", paths=[[1], [1, 1], [1, 1, 1]])),
        trials=(5_000, 50_000),
    ),
)
"""What the entry of §7 says about calls."""
