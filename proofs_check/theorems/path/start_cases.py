"""Drafts that depend on where the call starts (§10) in fractions: whole calls beside the survival stated.

A head is a table of a pmf for each text before a call and each run of its drafts: nothing ties the pmfs of two calls
together, not even where they draft for the same position after the same text.
"""

from __future__ import annotations

from proofs_check.agreement.path_agreement import RANK_RULES, Texts, columns_of, library_tree
from proofs_check.agreement.path_cases import CHAINS, RANKED, TREES, PathTwin, SurvivalOf, chain, survival_by_tree
from proofs_check.algorithms.enumeration import output_law
from proofs_check.prelude import *
from proofs_check.twins import path_theorem
from proofs_check.twins.path_theorem import Survival, all_calls_law, calls
from proofs_check.twins.tree_theorem import depth
from spectheory import Trace, drafting, predict
from spectheory.drafting import Shape
from spectheory.prediction.best_tree import BestTree
from spectheory.prediction.paths import calls_of_tree
from spectheory.prediction.shape_calls import survival_of
from spectheory.prediction.text_limit import call_terms
from spectheory.trace.columns import BY_START, START_RANKS
from spectheory.verification import RULES, PathRule
from spectheory.verification.by_start import PREFIX

HeadTable = Mapping[tuple[Prefix, Prefix], Pmf]
"""A pmf for each text before a call and each run of drafts in it."""

Reading = Callable[[SurvivalOf, Model, HeadTable, Prefix], Survival]
"""From a survival of drafts by position to that of a head's."""


def random_head(rng: random.Random, tokens: int, length: int, deepest: int, spread: int = 8) -> HeadTable:
    """Random pmfs for every text shorter than `length` and every run of drafts up to its end and `deepest` beyond."""
    starts = [start for n in range(length) for start in product(range(tokens), repeat=n)]
    return {
        (start, run): random_pmf(rng, tokens, spread)
        for start in starts
        for n in range(length - len(start) + deepest)
        for run in product(range(tokens), repeat=n)
    }


def from_start(head: HeadTable, start: Prefix) -> Model:
    """The draft of the call after `start`; of shorter texts the first drafts, which the call does not read."""
    return lambda prefix: head[prefix[: len(start)], prefix[len(start) :]]


def headed(rule: Rule, head: HeadTable) -> Rule:
    """A whole call whose drafts come from the head."""

    def call(target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
        return rule(target, from_start(head, prefix), prefix, k)

    return call


def by_start(of: SurvivalOf, target: Model, head: HeadTable, text: Prefix) -> Survival:
    """§10: the survival with the pmfs of the call's own start."""
    return lambda n, i: of(target, from_start(head, text[:n]), text)(n, i)


def by_position(of: SurvivalOf, target: Model, head: HeadTable, text: Prefix) -> Survival:
    """The per-position reading: every draft has the pmf of a first draft at its position."""
    return of(target, lambda prefix: head[prefix, ()], text)


TREE = TREES[1]


def random_heads(effort: Effort, sizes: tuple[tuple[int, int, int], ...], rounds: int) -> Iterator[Case]:
    """Random targets and heads {target, head, k, length}, for each (tokens, length, k)."""
    rng = random.Random(f"heads {effort.seed}")
    for _ in range(effort.pick(rounds, 8 * rounds)):
        for tokens, length, k in sizes:
            deepest = max(k, depth(TREE))
            target = random_model(rng, tokens, length + deepest, 8)
            yield {"target": target, "head": random_head(rng, tokens, length, deepest), "k": k, "length": length}


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


def head_trace(target: Table, head: HeadTable, k: int, length: int) -> Trace:
    """All texts with the columns by start to depth k, and those of the first drafts by position."""
    texts = Texts(target, {start: head[start, ()] for start, run in head if not run}, length)
    found = [_at_depth(texts, head, i) for i in range(k)]
    deep = {name: np.stack([at[name] for at in found], axis=1) for name in found[0]}
    plain = texts.trace()
    return replace(plain, columns={**plain.columns, **deep})


def _at_depth(texts: Texts, head: HeadTable, i: int) -> dict[str, NDArray[Any]]:
    """The columns by start of draft i + 1 of the call at each position; past the end those of the last position."""
    rows = []
    for text in texts.all:
        for n in range(texts.length):
            m = min(n + i, texts.length - 1)
            rows.append((texts.target[text[:m]], head[text[:n], text[n:m]], text[m]))
    columns = columns_of(rows)
    ours = {name: columns[name.removeprefix(PREFIX)] for name in BY_START if name.removeprefix(PREFIX) in columns}
    return {name: values[:, :START_RANKS] if values.ndim == 2 else values for name, values in ours.items()}


def exactly(reading: Reading, of: SurvivalOf, texts: Texts, head: HeadTable) -> list[Survival]:
    """The exact survival of each text."""
    return [reading(of, texts.target.__getitem__, head, text) for text in texts.all]


def library(reading: Reading, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
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
    yield from _one_call(trace, exactly(reading, path_theorem.one_call_terms, texts, head), k, length)


def _shape(
    trace: Trace, rule: PathRule, shape: Shape, exact: list[Survival], most: int, length: int
) -> Iterator[Compared]:
    survival, leaves = survival_of(rule, shape, trace.columns)
    found = calls_of_tree(survival, leaves, trace.lengths, variance=True)
    taken = [calls(of, most, length) for of in exact]
    for number, of in enumerate(exact):
        for n in range(length):
            for i in range(1, min(most, length - n) + 1):
                yield computed(survival[number * length + n, i - 1], of(n, i))
        yield computed(found.expected[number], taken[number][0])
        yield computed(found.variance[number], taken[number][1])
    tokens = Fraction(len(exact) * length) / sum((mean for mean, _ in taken), Fraction(0))
    yield computed(predict(trace, rule, shape).tokens_per_call.best, tokens)


def _one_call(trace: Trace, exact: list[Survival], k: int, length: int) -> Iterator[Compared]:
    """The terms of the one-call bound, with the ratio by start and depth."""
    terms = call_terms(trace.columns, k)
    for number, of in enumerate(exact):
        for n in range(length):
            for i in range(1, min(k, length - n) + 1):
                yield computed(terms[number * length + n, i - 1], of(n, i))
