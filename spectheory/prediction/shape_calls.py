"""Calls of a rule with any shape along the texts of a trace (§7), the shape given or searched for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.drafting import Chain, Copied, Grown, Shape, Stopped, Tree, in_one_pass
from spectheory.drafting.shapes import at_least_one
from spectheory.errors import SettingError
from spectheory.prediction.cross_fit import PARTS, cross_fitted
from spectheory.prediction.drafted_lengths import Drafted, DraftedLengths
from spectheory.prediction.grown_trees import check_grown
from spectheory.prediction.over_prompts import Prompts
from spectheory.prediction.paths import TextCalls, calls_of_chains, calls_of_tree, tree_survival, visits_of
from spectheory.prediction.stopped import check_stops, lengths_along, stopped_survival, surely_stopped
from spectheory.prediction.tree_search import text_tree
from spectheory.trace import RECORDED_RANKS, Trace
from spectheory.verification import Columns, GrownMatch, PathRule, RankRule
from spectheory.verification.by_start import within
from spectheory.verification.registry import ranked_names

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BestTree:
    """Asks for the best draft tree of a size that a local search finds, for each rule (S4).

    The tree is found on all texts of the trace; its score comes from trees that were found on other prompts than those
    they are scored on. Ranks go up to 8, or to what is recorded. Optimality is not guaranteed. `max_depth` limits the
    draft passes of a call; `drafted_as` is the shape that an engine drafts for the tree, if its passes are not the
    tree's own.

    Examples
    --------
    >>> str(BestTree(8))
    'best tree of 8'
    """

    nodes: int
    max_depth: int | None = None
    drafted_as: Callable[[Tree], Shape] | None = None

    def __post_init__(self) -> None:
        for name, value in (("nodes", self.nodes), ("max depth", self.max_depth)):
            if value is not None:
                at_least_one(name, value)

    @property
    def family(self) -> str:
        """What such trees are called in a heading."""
        return f"tree ≤{self.max_depth}" if self.max_depth else "tree"

    def __str__(self) -> str:
        """Short form for tables."""
        return f"best tree of {self.nodes}" + (f", depth {self.max_depth}" if self.max_depth else "")


Wanted = Shape | BestTree
"""A shape, or one to be found."""


@dataclass(frozen=True)
class ShapeCalls:
    """What one shape gives on the texts of a trace.

    `shape` is what `wanted` became; of a copied chain also how often it is short. `calls` are exact, or unbiased
    estimates if the rule's ranks are `estimated`; with a searched tree each text has those of the tree found on other
    prompts, which `held_out` says. `first` ``[N]`` is P(tau >= 1) of a call that starts at each position, `by_drafted`
    ``[texts, k + 1]`` the calls by the tokens that they draft, where that varies, `visits` ``[N]`` the expected calls
    that start at each position, for rules whose drafts do not sample. `lengths` are those of a draft that decides
    itself, of groups of texts by the shape that they have (§11).
    """

    wanted: Wanted
    shape: Shape
    calls: TextCalls
    first: Floats
    held_out: bool = True
    by_drafted: NDArray[np.int64] | None = None
    visits: Floats | None = None
    lengths: Sequence[tuple[Stopped, DraftedLengths]] = ()


def takes(rule: PathRule, wanted: Wanted) -> bool:
    """Whether the rule has a law for the shape: every rule for a chain, a rule with ranks for every fixed shape.

    A draft that decides its length is a model's. Grown trees have a rule of their own, which takes no other shape.
    """
    if rule.grows or isinstance(wanted, Grown):
        return rule.grows and isinstance(wanted, Grown)
    if isinstance(wanted, Stopped):
        return rule.uses_draft
    return isinstance(wanted, Chain) or isinstance(rule, RankRule)


def drafted(rule: PathRule, shape: Shape, counts: NDArray[np.int64] | None = None, *, parallel: bool = False) -> Shape:
    """The shape as the rule drafts it: a chain that is copied from the text costs no draft pass, all of a parallel head
    one.

    `counts` ``[texts, k + 1]`` are the calls by the tokens that they draft, where that varies. `parallel` says whether
    the draft is a parallel head.

    Examples
    --------
    >>> from spectheory.verification import PATH_RULES
    >>> [drafted(PATH_RULES[name], Chain(2)).passes for name in ("token", "lookup")]
    [(1, 1), ()]
    >>> drafted(PATH_RULES["token"], Chain(2), parallel=True).passes
    (2,)
    """
    if rule.uses_draft:
        return in_one_pass(shape) if parallel else shape
    if not isinstance(shape, Chain):
        return shape
    if counts is None or not counts.any():
        return Copied(shape.k)
    return Copied(shape.k, tuple((counts.sum(axis=0) / counts.sum()).tolist()))


def by_parallel_head(provenance: Mapping[str, Any]) -> bool:
    """Whether one pass of a trace's draft gives all drafts of a call (§10)."""
    draft = provenance.get("draft")
    return isinstance(draft, Mapping) and draft.get("parallel") is True


def calls_by_drafted(
    trace: Trace, rule: PathRule, shape: Shape, *, prefill_emits_token: bool = False
) -> NDArray[np.int64] | None:
    """Calls of each text by the tokens that they draft, ``[texts, k + 1]`` (exact); None where all draft the shape."""
    first = int(prefill_emits_token)
    return rule.calls_by_drafted(trace.columns, trace.lengths, trace.most_tokens, shape.nodes, first=first)


def calls_by_shape(
    trace: Trace, rule: PathRule, wanted: Sequence[Wanted], *, prefill_emits_token: bool = False
) -> Iterator[ShapeCalls]:
    """The calls of each shape, chains first; chains share one survival and one system.

    Raises :class:`~spectheory.errors.TraceError` if the trace lacks what the rule reads, and
    :class:`~spectheory.errors.SettingError` if a rule without ranks is asked for another shape than a chain.
    """
    rule.require(trace.columns)
    if rule.grows:
        for shape in wanted:
            check_grown(trace, shape)
    chains = [shape for shape in wanted if isinstance(shape, Chain) and not isinstance(shape, Stopped)]
    if chains:
        survival = rule.path_survival(trace.columns, max(shape.k for shape in chains))
        ks = [shape.k for shape in chains]
        of_chain = calls_of_chains(survival, trace.lengths, ks, prefill_emits_token=prefill_emits_token)
        for shape in chains:
            counts = calls_by_drafted(trace, rule, shape, prefill_emits_token=prefill_emits_token)
            made = drafted(rule, shape, counts, parallel=by_parallel_head(trace.provenance))
            visits = _visits(rule, survival[:, : shape.k], trace, prefill_emits_token)
            yield ShapeCalls(shape, made, of_chain[shape.k], survival[:, 0], by_drafted=counts, visits=visits)
    yield from stopped_calls(trace, rule, wanted, prefill_emits_token=prefill_emits_token)
    for other in wanted:
        if not isinstance(other, Chain):
            yield _with_ranks(trace, rule, other, prefill_emits_token)


def stopped_calls(
    trace: Trace, rule: PathRule, wanted: Sequence[Wanted], *, prefill_emits_token: bool = False
) -> Iterator[ShapeCalls]:
    """The calls of the shapes that a stopping rule may end (§11)."""
    stopped = [shape for shape in wanted if isinstance(shape, Stopped)]
    for shape in stopped:
        check_stops(rule, shape.stop, trace.columns, trace.sampling)
    for k in sorted({shape.k for shape in stopped}):
        drafted_by = Drafted(trace, rule, k, prefill_emits_token=prefill_emits_token)
        for shape in (shape for shape in stopped if shape.k == k):
            along = lengths_along(trace.columns, shape.stop, k, drafted_by.left)
            sure = surely_stopped(trace.columns, shape.stop, k, along)
            found = drafted_by.lengths_of_calls(along, keeps=shape.stop.keeps, sure=sure)
            made = replace(shape, parallel=by_parallel_head(trace.provenance))
            survival = drafted_by.survival * (np.arange(k) < along[:, None])
            visits = _visits(rule, survival, trace, prefill_emits_token)
            calls = found.text_calls(prefill_emits_token)
            yield ShapeCalls(shape, made, calls, survival[:, 0], visits=visits, lengths=[(made, found)])


def survival_of(rule: PathRule, shape: Shape, columns: Columns) -> tuple[Floats, Floats]:
    """P(tau >= i) of a call that starts at each position, and how much of it ends at leaves, ``[N, depth]`` (§7, §10).

    A chain ends at one leaf: what survives to its last draft, or to the last that is drafted along the text (§11).
    """
    if isinstance(rule, RankRule) and not isinstance(shape, Chain):
        return tree_survival(rule.path_laws(columns, shape.max_rank, shape.depth), shape.tree())
    survival = (
        stopped_survival(rule, shape, columns)
        if isinstance(shape, Stopped)
        else rule.path_survival(columns, shape.depth)
    )
    leaves = np.zeros_like(survival)
    leaves[:, -1] = survival[:, -1]
    return survival, leaves


def searched_laws(rule: RankRule, columns: Columns, nodes: int) -> Floats:
    """The rank laws from which a tree of so many nodes is searched: all ranks and depths that are known."""
    return rule.path_laws(columns, min(nodes, rule.known_ranks(columns, RECORDED_RANKS)), within(columns, nodes))


def _with_ranks(trace: Trace, rule: PathRule, wanted: Wanted, prefill_emits_token: bool) -> ShapeCalls:
    if isinstance(wanted, Grown) and not rule.grows:
        raise SettingError(
            f"{rule.name} verification is asked for {wanted}",
            limit="trees grown from confidences are matched with the target's own draw",
            remedy="use the rule grown",
        )
    if not isinstance(rule, RankRule | GrownMatch):
        raise SettingError(
            f"{rule.name} verification is asked for {wanted}",
            limit="it judges one chain of drafts",
            remedy=f"use a chain, or a rule with ranks: {ranked_names()}",
        )
    if isinstance(wanted, BestTree):
        assert isinstance(rule, RankRule)
        return _searched(trace, rule, wanted, prefill_emits_token)
    survival, leaves = survival_of(rule, wanted, trace.columns)
    calls = calls_of_tree(survival, leaves, trace.lengths, prefill_emits_token=prefill_emits_token)
    made = drafted(rule, wanted, parallel=by_parallel_head(trace.provenance))
    return ShapeCalls(wanted, made, calls, survival[:, 0], visits=_visits(rule, survival, trace, prefill_emits_token))


def _visits(rule: PathRule, survival: Floats, trace: Trace, prefill: bool) -> Floats | None:
    """Expected calls that start at each position; None for rules whose drafts sample."""
    return visits_of(survival, trace.lengths, prefill_emits_token=prefill) if "text" in rule.bound_by else None


@dataclass(frozen=True)
class ScoredPart:
    """Some texts (masks `texts` ``[texts]`` and `rows` ``[N]``), scored by the tree that was found on all others."""

    texts: NDArray[np.bool_]
    rows: NDArray[np.bool_]
    tree: Tree
    calls: TextCalls
    first: Floats


def scored_parts(
    trace: Trace, rule: RankRule, wanted: BestTree, parts: int = PARTS, *, prefill_emits_token: bool = False
) -> Iterator[ScoredPart]:
    """Each part of the prompts with the tree that was found on the others; one prompt with its own."""
    law, search = _search(trace, rule, wanted)
    for texts, rows, tree in cross_fitted(law, trace.lengths, Prompts(trace.texts).folds(parts), search):
        yield ScoredPart(texts, rows, tree, *_scored(law[rows], trace.lengths[texts], tree, prefill_emits_token))


def _searched(trace: Trace, rule: RankRule, wanted: BestTree, prefill_emits_token: bool) -> ShapeCalls:
    """The tree found on all texts, scored by trees that were found on other prompts."""
    texts, parts = len(trace.texts), 0
    expected, full, variance, first = (np.empty(n) for n in (texts, texts, texts, len(trace)))
    for part in scored_parts(trace, rule, wanted, prefill_emits_token=prefill_emits_token):
        inside, calls, parts = part.texts, part.calls, parts + 1
        expected[inside], full[inside], variance[inside] = calls.expected, calls.full, calls.variance
        first[part.rows] = part.first
    law, search = _search(trace, rule, wanted)
    tree = search(law, trace.lengths)
    parallel = by_parallel_head(trace.provenance)
    shape = wanted.drafted_as(tree) if wanted.drafted_as else drafted(rule, tree, parallel=parallel)
    return ShapeCalls(wanted, shape, TextCalls(expected, full, variance), first, held_out=parts > 1)


def _search(trace: Trace, rule: RankRule, wanted: BestTree) -> tuple[Floats, Callable[..., Tree]]:
    """The rank laws along the texts, and the search for a tree from some of them."""
    law = searched_laws(rule, trace.columns, wanted.nodes)

    def search(law: Floats, lengths: NDArray[np.int64]) -> Tree:
        return text_tree(law, lengths, wanted.nodes, max_depth=wanted.max_depth, consecutive=rule.consecutive).tree

    return law, search


def _scored(law: Floats, lengths: NDArray[np.int64], tree: Tree, prefill: bool) -> tuple[TextCalls, Floats]:
    """The calls of each text with a tree, and P(tau >= 1) at each position."""
    survival, leaves = tree_survival(law, tree)
    return calls_of_tree(survival, leaves, lengths, prefill_emits_token=prefill), survival[:, 0]
