"""The library's columns by start (§10) against the exact values, from pmfs to columns and predictions."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import RANK_RULES, Texts, columns_of, library_tree
from proofs_check.agreement.path_cases import CHAINS, RANKED, TREES, SurvivalOf, chain, survival_by_tree
from proofs_check.agreement.start_cases import HeadTable, Reading
from proofs_check.prelude import *
from proofs_check.twins import path_theorem
from proofs_check.twins.path_theorem import Survival, calls
from proofs_check.twins.tree_theorem import depth
from spectheory import Trace, drafting, predict
from spectheory.drafting import Shape
from spectheory.prediction.one_call import call_terms
from spectheory.prediction.paths import calls_of_tree
from spectheory.prediction.shape_calls import BestTree, survival_of
from spectheory.trace.columns import BY_START, START_RANKS
from spectheory.verification import RULES, PathRule
from spectheory.verification.by_start import PREFIX

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
