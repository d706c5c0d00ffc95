"""§10: drafts that depend on where the call starts, as those of heads that read the target's hidden states."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import RANK_RULES, Texts, at_every_start, library_tree
from proofs_check.agreement.path_cases import CHAINS, RANKED, TREES, PathTwin, SurvivalOf, chain, survival_by_tree
from proofs_check.algorithms.enumeration import output_law
from proofs_check.prelude import *
from proofs_check.theorems.path.head_cases import TREE, HeadTable, by_start, from_start, head_trace, random_heads
from proofs_check.twins import path_theorem
from proofs_check.twins.path_theorem import Survival, all_calls_law, calls
from proofs_check.twins.tree_theorem import depth
from spectheory import Trace, drafting, predict
from spectheory.drafting import Shape
from spectheory.prediction.best_tree import BestTree
from spectheory.prediction.paths import calls_of_tree
from spectheory.prediction.shape_calls import survival_of
from spectheory.prediction.text_limit import call_terms
from spectheory.verification import RULES, PathRule

Reading = Callable[[SurvivalOf, Model, HeadTable, Prefix], Survival]
"""From a survival of drafts by position to that of a head's."""


def headed(rule: Rule, head: HeadTable) -> Rule:
    """A whole call whose drafts come from the head."""

    def call(target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
        return rule(target, from_start(head, prefix), prefix, k)

    return call


def by_position(of: SurvivalOf, target: Model, head: HeadTable, text: Prefix) -> Survival:
    """The per-position reading: every draft has the pmf of a first draft at its position."""
    return of(target, lambda prefix: head[prefix, ()], text)


CALLED: dict[str, PathTwin] = {
    **{name: CHAINS[name] for name in ("token", "block", "argmax", "race", "independent", "recursive")},
    **{
        f"{name}, tree": PathTwin(RANKED[name].call(TREE, len), survival_by_tree(RANKED[name].given, TREE))
        for name in ("race", "recursive", "topk")
    },
}
"""Whole calls, by rules of the library's names: chains, and a tree of two levels."""


def head_calls(reading: Reading, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """The text is the target's; given all of it the calls are independent with the survival of the reading."""
    p = target.__getitem__
    texts = text_law(p, length)
    for name, twin in CALLED.items():
        drafts = depth(TREE) if name.endswith("tree") else k
        law = Decoding(headed(twin.algorithm, head), drafts, length).law(p, p)
        yield equal(output_law(law), texts)
        for text in texts:
            survival = reading(twin.survival, p, head, text)
            yield equal(given_text(law, text), all_calls_law(survival, drafts, length))


# The library's columns by start (§10) against the exact values, from pmfs to columns and predictions.


CHECKED = ("token", "block", "argmax", "greedy", "independent", "race", "poisson", "recursive", "topk")
"""Rules that read columns by start."""


def exactly(reading: Reading, of: SurvivalOf, texts: Texts, head: HeadTable) -> list[Survival]:
    """The exact survival of each text."""
    return [reading(of, texts.target.__getitem__, head, text) for text in texts.all]


def library_calls(reading: Reading, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """Survivals, calls and tokens per call of every rule with a chain, and with a tree if it has ranks."""
    texts, trace = Texts(target, {}, length), head_trace(target, head, k, length)
    for name in CHECKED:
        exact = exactly(reading, CHAINS[name].survival, texts, head)
        yield from _shape(trace, RULES[name], drafting.Chain(k), exact, k, length)
    for name in RANK_RULES.keys() & set(CHECKED):
        for tree in TREES[:3]:
            exact = exactly(reading, survival_by_tree(RANKED[name].given, tree), texts, head)
            yield from _shape(trace, RULES[name], library_tree(tree), exact, depth(tree), length)
        best = predict(trace, RULES[name], BestTree(3)).shape
        paths = frozenset(best.tree().paths)
        of = CHAINS[name].survival if paths == chain(len(paths)) else survival_by_tree(RANKED[name].given, paths)
        yield from _shape(trace, RULES[name], best, exactly(reading, of, texts, head), depth(paths), length)
    terms = exactly(reading, path_theorem.one_call_terms, texts, head)
    yield from at_every_start(call_terms(trace.columns, k), terms, k, length)


def _shape(
    trace: Trace, rule: PathRule, shape: Shape, exact: list[Survival], most: int, length: int
) -> Iterator[Compared]:
    survival, leaves = survival_of(rule, shape, trace.columns)
    moments = calls_of_tree(survival, leaves, trace.lengths, variance=True)
    taken = [calls(of, most, length) for of in exact]
    yield from at_every_start(survival, exact, most, length)
    for number in range(len(exact)):
        yield computed(moments.expected[number], taken[number][0])
        yield computed(moments.variance[number], taken[number][1])
    tokens = Fraction(len(exact) * length) / total(mean for mean, _ in taken)
    yield computed(predict(trace, rule, shape).tokens_per_call.best, tokens)


HEADS = "over random targets and heads, whose pmfs at every start and run of drafts are unrelated, zeros included"


# Lists of accepted lengths


def calls_of(accepted: Sequence[int], k: int) -> int:
    """Calls of k drafts where `accepted` is how many of any number of drafts from each start hold."""
    start = calls = 0
    while start < len(accepted):
        start, calls = start + min(accepted[start], k) + 1, calls + 1
    return calls


def recut(accepted: Sequence[int], k: int, fewer: int, unseen: int) -> int:
    """Calls of `fewer` drafts read off the calls of k: each shows which positions hold, all but its bonus token's."""
    holds, start = [unseen] * len(accepted), 0
    while start < len(accepted):
        end = start + min(accepted[start], k)
        holds[start:end] = [1] * (end - start)
        if end < start + k and end < len(accepted):
            holds[end] = 0
        start = end + 1
    runs = [0] * (len(accepted) + 1)
    for n in reversed(range(len(accepted))):
        runs[n] = runs[n + 1] + 1 if holds[n] else 0
    return calls_of(runs[:-1], fewer)


def within(accepted: tuple[int, ...], k: int, fewer: int) -> Iterator[Compared]:
    """The calls of fewer drafts lie between the two readings of the bonus positions."""
    calls = Fraction(calls_of(accepted, fewer))
    yield at_most(Fraction(recut(accepted, k, fewer, 1)), calls)
    yield at_most(calls, Fraction(recut(accepted, k, fewer, 0)))


def lists(_: Effort) -> Iterator[Case]:
    """Accepted lengths at every start, the shortest text first, then by k."""
    for length in range(1, 6):
        for k in range(1, min(length, 3) + 1):
            for fewer in range(1, k):
                for accepted in product(*(range(length - n + 1) for n in range(length))):
                    yield {"accepted": accepted, "k": k, "fewer": fewer}


ONE_RUN = Assumption(
    "a(n+1) = a(n) - 1 wherever a(n) > 0, as a draft model has it at temperature 0",
    lambda accepted, **_: all(not a or b == a - 1 for a, b in zip(accepted, (*accepted[1:], 0), strict=True)),
)

P10 = Entry(
    id="§10",
    title="Drafts that depend on where the call starts",
    kind="identity",
    plain="let q_(n,i) be the pmf of draft i of a call that starts at n, given that the drafts before it equal the "
    "text. Given the whole text, the calls are independent with the laws of §7 with q_(n,i) in place of q_(n+i): "
    "prod_(j<=i) min(1, rho_(n,j)) for token verification, min(1, min_(j<=i) prod_(l<=j) rho_(n,l)) for block "
    "verification, prod_j 1[x_(n+j) = argmax q_(n,j)] for argmax drafts, products and sums over nodes of the rank "
    "laws at (n, j) for races, lists and trees",
    latex=r"P(\tau \ge i \mid x) = \prod_{j\le i} \min(1, \rho_{n,j}),\quad \min\Big(1, \min_{j\le i} \prod_{l\le j} "
    r"\rho_{n,l}\Big)\ \text{(block)},\qquad \rho_{n,i} = q_{n,i}(x_{n+i}) / p_{n+i}(x_{n+i})",
    assumptions=(
        "the text is the target's sample",
        "a call's drafts come from pmfs that depend on the text before the call and on its drafts before, never "
        "on the text to come or on what earlier calls drafted",
    ),
    evidence=(
        exact(
            Claim(
                "the text is the target's, and given all of it the calls are independent with the survivals by "
                "start (token, block, argmax, race, match and recursive chains; a tree of three rules)",
                partial(head_calls, by_start),
            ),
            lambda effort: random_heads(effort, ((2, 3, 1), (2, 3, 2), (2, 3, 3), (3, 2, 2)), 2),
            over=HEADS,
            wrong=Claim("each draft has the pmf of a first draft at its position", partial(head_calls, by_position)),
        ),
        agreement(
            Claim(
                "the library's survivals, calls and tokens per call from columns by start and depth, chains and "
                "trees, the best tree found among them, and the terms of the one-call bound",
                partial(library_calls, by_start),
            ),
            lambda effort: random_heads(effort, ((2, 3, 2), (2, 4, 3), (3, 2, 3)), 1),
            over=f"all texts, {HEADS}",
            wrong=Claim("they are those of columns by position", partial(library_calls, by_position)),
        ),
    ),
    calculators=(
        *(f"spectheory.verification.by_start.{name}" for name in ("AtDepth", "along_calls", "by_depth", "log_ratio")),
        "spectheory.prediction.text_limit.call_terms",
        "spectheory.predict",
    ),
    without={
        "symbolic": "the steps are those of §7; its proof never uses that a draft's pmf is the same at every start",
        "search": "the cases are enumerated in fractions",
        "simulation": "decoders for heads are held to it in the tests",
    },
)

P10_RECUT = Entry(
    id="§10/recut",
    title="A head's accepted lengths, cut to fewer drafts",
    kind="refuted",
    plain="the accepted lengths of the calls at k give the calls at k' < k, up to the bonus positions (for a draft "
    "model at temperature 0 they do, as an interval: each call shows which positions hold, all but its bonus "
    "token's; for a head they do not, as it drafts anew from every start)",
    latex=r"a_k(n),\ n \in \text{starts at } k \ \Rightarrow\ \text{calls at } k' < k",
    assumptions=("temperature 0: whether a draft holds is a function of start and depth",),
    evidence=(
        counterexample(
            Claim("the calls of fewer drafts lie between the two readings of the bonus positions", within),
            lists,
            over="a(n) of any number of drafts at every start n (accepted); first by the length of the text, k and "
            "the fewer drafts",
            true=Claim("they do for lists that a draft model can have", within, (ONE_RUN,)),
        ),
    ),
)
