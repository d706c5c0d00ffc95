"""The best trees of a rule (S4): found on some of the texts, scored on all of them, each on other prompts' tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectheory.drafting import Tree
from spectheory.prediction.best_tree import BestTree
from spectheory.prediction.block_calls import columns_of
from spectheory.prediction.call_system import TextCalls
from spectheory.prediction.cross_fit import cross_fitted
from spectheory.prediction.over_prompts import PARTS, Prompts
from spectheory.prediction.path_laws import PathLaws
from spectheory.prediction.paths import calls_of_laws
from spectheory.prediction.tree_search import text_tree
from spectheory.trace import RECORDED_RANKS, Trace
from spectheory.trace.sample import of_texts, spread
from spectheory.verification import Columns, RankRule
from spectheory.verification.by_start import within

Floats = NDArray[np.float64]


def searched_laws(rule: RankRule, columns: Columns, nodes: int) -> Floats:
    """The rank laws from which a tree of so many nodes is searched: all ranks and depths that are known."""
    return rule.path_laws(columns, min(nodes, rule.known_ranks(columns, RECORDED_RANKS)), within(columns, nodes))


@dataclass(frozen=True)
class ScoredPart:
    """Some texts, a mask ``[texts]``, scored by the tree that was found on all others."""

    texts: NDArray[np.bool_]
    tree: Tree
    calls: TextCalls


def scored_parts(trace: Trace, rule: RankRule, wanted: BestTree, parts: int = PARTS) -> Iterator[ScoredPart]:
    """Each part of the prompts with the tree that was found on the others; one prompt with its own."""
    law, search = _search(trace, rule, wanted)
    for texts, rows, tree in cross_fitted(law, trace.lengths, Prompts(trace.texts).folds(parts), search):
        yield ScoredPart(texts, tree, calls_of_laws(PathLaws(law[rows]), tree, trace.lengths[texts])[0])


@dataclass(frozen=True)
class SearchedTree:
    """The tree found on all prompts, and the calls of each text with a tree that was found on other prompts.

    `first` ``[texts]`` is the sum of P(tau >= 1) over positions. With one prompt nothing is `held_out`.
    """

    tree: Tree
    calls: TextCalls
    first: Floats
    held_out: bool


def searched_trees(
    trace: Trace, rule: RankRule, wanted: Sequence[BestTree], *, prefill_emits_token: bool = False
) -> list[SearchedTree]:
    """The best tree of each size, found on a sample of the texts (:mod:`spectheory.trace.sample`), scored on all."""
    part = Prompts(trace.texts).folds(PARTS)
    chosen = spread(trace.lengths, part)
    sample = of_texts(trace, chosen, columns_of(rule, [], trace.columns))
    trees = [_trees(sample, rule, each, part[chosen]) for each in wanted]
    scored = _scored(trace, rule, wanted, [of_parts for _, of_parts in trees], part, prefill_emits_token)
    unknown = np.full(len(part), np.nan)
    return [
        SearchedTree(tree, TextCalls(expected, full, unknown), first, len(of_parts) > 1)
        for (tree, of_parts), (expected, full, first) in zip(trees, scored, strict=True)
    ]


def _trees(sample: Trace, rule: RankRule, wanted: BestTree, part: NDArray[np.int64]) -> tuple[Tree, list[Tree]]:
    """The tree of all texts, and those of each part, found on all others."""
    law, search = _search(sample, rule, wanted)
    of_parts = [tree for _, _, tree in cross_fitted(law, sample.lengths, part, search)]
    return search(law, sample.lengths) if len(of_parts) > 1 else of_parts[0], of_parts


def _scored(
    trace: Trace,
    rule: RankRule,
    wanted: Sequence[BestTree],
    trees: Sequence[Sequence[Tree]],
    part: NDArray[np.int64],
    prefill: bool,
) -> Floats:
    """Expected calls, those that end at a leaf and sums of P(tau >= 1), ``[trees, 3, texts]``."""
    found, done = np.zeros((len(trees), 3, len(part))), 0
    sizes = [each.nodes for each in wanted]
    for block in trace.blocks(columns_of(rule, [], trace.columns)):
        here = slice(done, done := done + len(block.texts))
        laws = [searched_laws(rule, block.columns, nodes) for nodes in (min(sizes), max(sizes))]
        for number in np.unique(part[here]):
            texts = part[here] == number
            rows, lengths = np.repeat(texts, block.lengths), block.lengths[texts]
            of_part = [PathLaws(law[rows]) for law in laws]
            for scores, of_parts, nodes in zip(found, trees, sizes, strict=True):
                law = of_part[0 if nodes == 1 else 1]  # one rank may be known better than several
                calls, first = calls_of_laws(law, of_parts[number], lengths, prefill_emits_token=prefill)
                scores[:, here][:, texts] = calls.expected, calls.full, first
    return found


def _search(trace: Trace, rule: RankRule, wanted: BestTree) -> tuple[Floats, Callable[..., Tree]]:
    """The rank laws along the texts, and the search for a tree from some of them."""
    law = searched_laws(rule, trace.columns, wanted.nodes)

    def search(law: Floats, lengths: NDArray[np.int64]) -> Tree:
        return text_tree(law, lengths, wanted.nodes, max_depth=wanted.max_depth, consecutive=rule.consecutive).tree

    return law, search
