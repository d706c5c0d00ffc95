"""§7: all calls of a text together, their mean and variance; and the mean over starts, which is something else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from math import prod

from proofs_check.agreement.call_counts import chains, mean_over_starts, reading, trees, without_spread
from proofs_check.agreement.kept_noise import kept, noisy_cases
from proofs_check.agreement.path_agreement import counted, mean_of_starts, predicted, tokens_per_call
from proofs_check.agreement.path_cases import edge_chains, random_chains
from proofs_check.evidence.entries import Entry
from proofs_check.evidence.makers import agreement, counterexample, exact, proof
from proofs_check.evidence.simulated import simulated, stated
from proofs_check.evidence.symbolic import Step, in_words, same
from proofs_check.statement.claims import Case, Claim, Compared, at_most, equal
from proofs_check.statement.findings import Effort
from proofs_check.twins import path_theorem
from proofs_check.twins.path_theorem import Survival
from proofs_check.twins.tree_theorem import visits

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

# The mean over starts


def along(accept: Sequence[int]) -> Survival:
    """The survival of a rule that accepts at each position by itself."""
    return lambda n, i: Fraction(prod(accept[n : n + i]))


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
    """Acceptances in halves, thirds, ..."""
    for d in range(1, 9):
        for a, b in product(range(d + 1), repeat=2):
            yield {"a": Fraction(a, d), "b": Fraction(b, d)}


def few(effort: Effort) -> Iterator[Case]:
    """Edges; then texts of 3 tokens out of 2 and of 2 out of 3."""
    yield from edge_chains()
    yield from random_chains(effort, ((2, 3, 1), (2, 3, 2), (2, 3, 3), (3, 2, 2)), 3)


def for_trees(effort: Effort) -> Iterator[Case]:
    """The same, with room for two levels of drafts."""
    return random_chains(effort, ((2, 3, 2), (3, 2, 2)), 3)


RECURSION = "C(n) = 1 + sum_i P(tau=i) C(n+i+1) and the second moment's recursion give mean and variance of the calls"

CHAIN_CALLS = Claim(
    f"chains of every rule: {RECURSION}, 1 + C(1) with a prefill that emits a token; drafting less at the end changes "
    "no call; full acceptances and the starts' expected numbers",
    partial(chains, path_theorem.calls),
)

CALLED = {"chains": "yin2024", "length": 20}
"""The paper's test bed: texts of 20 tokens."""

TREED = ("race", "recursive-distinct", "topk")
"""Rules that take trees."""

EVIDENCE = (
    proof(
        "calls are independent given the text; mean and variance, for any number of branches",
        STEPS,
        wrong=same(
            "the second moment is 1 + sum s Q",
            lambda s, c, v: (s * ((1 + c) ** 2 + v), s * (1 + (c**2 + v))),
        ),
    ),
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
        for_trees,
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

MEAN = Claim("N/C(0) = 1 + mean over starts of the accepted drafts", partial(per_call, False))

VISITED = Claim(
    "N/C(0) = 1 + mean accepted drafts over starts weighted by the calls that start there", partial(per_call, True)
)

ENTRIES = (
    Entry(
        id="§7/mean",
        title="Tokens per call as a mean over starts",
        kind="refuted",
        plain="tokens per call are 1 + the accepted drafts of a call averaged over uniform starts (calls start where "
        "the last one ended, so the starts are not uniform: N/C(0) is right)",
        latex=r"\frac{N}{C(0)} = 1 + \frac1N \sum_n \sum_i P(\tau_n \ge i \mid x)",
        source=(),
        assumptions=("drafts are counted that leave the text its last token, so that no end effect is meant",),
        evidence=(
            counterexample(
                MEAN,
                patterns,
                over="first at the shortest text and chain of drafts that always or never hold (accept)",
                true=VISITED,
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
                over="first by the denominator of the positions' acceptances a and b",
                true=Claim(
                    "the calls' own mean is larger by (a-b)^2/(2(2-a-b))",
                    partial(alternating, True),
                ),
            ),
        ),
        calculators=("spectheory.paths.calls_and_visits",),
        without={
            "symbolic": "a counterexample settles it",
            "certified": "no logarithm enters",
            "search": "a counterexample settles it",
        },
    ),
)
"""What this file states by itself."""
