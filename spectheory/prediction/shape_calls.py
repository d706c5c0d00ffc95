"""Calls of a rule with any shape along the texts of a trace (§7), the shape given or searched for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from spectheory.drafting import Copied, Parallel, Shape
from spectheory.errors import SettingError
from spectheory.prediction.best_tree import BestTree as BestTree
from spectheory.prediction.best_tree import Wanted as Wanted
from spectheory.prediction.block_calls import BlockCalls, calls_of_block, columns_of, joined
from spectheory.prediction.block_calls import calls_by_drafted as calls_by_drafted
from spectheory.prediction.block_calls import survival_of as survival_of
from spectheory.prediction.call_system import TextCalls
from spectheory.prediction.drafted_lengths import DraftedLengths
from spectheory.prediction.grown_trees import check_grown
from spectheory.prediction.searched_trees import SearchedTree, searched_trees
from spectheory.prediction.stopped import check_stops
from spectheory.trace import Trace
from spectheory.verification import GrownMatch, PathRule, RankRule, Rule
from spectheory.verification.registry import ranked_names

Floats = NDArray[np.float64]
S = TypeVar("S", bound=Shape)


@dataclass(frozen=True)
class ShapeCalls:
    """What one shape gives on the texts of a trace.

    `shape` is what `wanted` became; of a copied chain also how often it is short. `calls` are exact, or unbiased
    estimates if the rule's ranks are `estimated`; with a searched tree each text has those of the tree found on other
    prompts, which `held_out` says. `first` ``[texts]`` is the sum of P(tau >= 1) over a call from each position,
    `by_drafted` ``[texts, k + 1]`` the calls by the tokens that they draft, where that varies. `starts` is the shape at
    the starts of whose calls a limit is taken, for rules whose drafts do not sample. `lengths` are those of a draft
    that decides itself, of groups of texts by the shape that they have (§11).
    """

    wanted: Wanted
    shape: Shape
    calls: TextCalls
    first: Floats
    held_out: bool = True
    by_drafted: NDArray[np.int64] | None = None
    starts: Shape | None = None
    lengths: Sequence[tuple[Shape, DraftedLengths]] = ()


def takes(rule: Rule, wanted: Wanted) -> bool:
    """Whether the rule has a law for the shape: every rule for a chain, a rule with ranks for every fixed shape.

    A draft that decides its length is a model's. Grown trees have a rule of their own, which takes no other shape.
    """
    if rule.grows or not wanted.fixed:
        return rule.grows and not wanted.fixed
    if wanted.stop:
        return rule.uses_draft
    return wanted.is_chain or isinstance(rule, RankRule)


def drafted(rule: PathRule, shape: S, counts: NDArray[np.int64] | None = None, *, parallel: bool = False) -> S:
    """The shape as the rule drafts it: a chain that is copied from the text costs no draft pass, all of a parallel head
    one.

    `counts` ``[texts, k + 1]`` are the calls by the tokens that they draft, where that varies. `parallel` says whether
    the draft is a parallel head.

    Examples
    --------
    >>> from spectheory.drafting import Chain
    >>> from spectheory.verification import PATH_RULES
    >>> [drafted(PATH_RULES[name], Chain(2)).passes for name in ("token", "lookup")]
    [(1, 1), ()]
    >>> drafted(PATH_RULES["token"], Chain(2), parallel=True).passes
    (2,)
    """
    if rule.uses_draft:
        return shape.by(Parallel()) if parallel else shape
    if not shape.is_chain:
        return shape
    if counts is None or not counts.any():
        return shape.by(Copied())
    return shape.by(Copied(tuple((counts.sum(axis=0) / counts.sum()).tolist())))


def by_parallel_head(provenance: Mapping[str, Any]) -> bool:
    """Whether one pass of a trace's draft gives all drafts of a call (§10)."""
    draft = provenance.get("draft")
    return isinstance(draft, Mapping) and draft.get("parallel") is True


def calls_by_shape(
    trace: Trace, rule: PathRule, wanted: Sequence[Wanted], *, prefill_emits_token: bool = False
) -> Iterator[ShapeCalls]:
    """The calls of each shape, searched trees last; the texts are read in blocks, which all shapes share.

    Raises :class:`~spectheory.errors.TraceError` if the trace lacks what the rule reads, and
    :class:`~spectheory.errors.SettingError` if a rule without ranks is asked for another shape than a chain.
    """
    check_shapes(trace, rule, wanted)
    searched = [shape for shape in wanted if isinstance(shape, BestTree)]
    fixed = [shape for shape in wanted if not isinstance(shape, BestTree)]
    ordered = sorted(fixed, key=lambda shape: not shape.is_chain)
    if ordered:
        blocks = trace.blocks(columns_of(rule, ordered, trace.columns))
        parts = [calls_of_block(block, rule, ordered, prefill_emits_token) for block in blocks]
        for shape, *of_blocks in zip(ordered, *parts, strict=True):
            yield _of_fixed(trace, rule, shape, joined(of_blocks))
    if searched:
        assert isinstance(rule, RankRule)
        found = searched_trees(trace, rule, searched, prefill_emits_token=prefill_emits_token)
        yield from (_of_searched(trace, rule, *pair) for pair in zip(searched, found, strict=True))


def check_shapes(trace: Trace, rule: PathRule, wanted: Sequence[Wanted]) -> None:
    """Refuse a trace that lacks what the rule and its shapes read, and shapes that the rule does not take."""
    rule.require(trace.columns)
    for shape in wanted:
        if rule.grows:
            check_grown(trace, shape)
        if shape.stop:
            check_stops(rule, shape.stop, trace.columns, trace.sampling)
        elif not shape.is_chain:
            _check_ranks(rule, shape)


def _check_ranks(rule: PathRule, wanted: Wanted) -> None:
    if not wanted.fixed and not rule.grows:
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


def _of_fixed(trace: Trace, rule: PathRule, shape: Shape, found: BlockCalls) -> ShapeCalls:
    """The calls of a shape that was asked for."""
    starts = shape if "text" in rule.bound_by else None
    made = drafted(rule, shape, found.by_drafted, parallel=by_parallel_head(trace.provenance))
    lengths = [(made, found.lengths)] if found.lengths else []
    return ShapeCalls(
        shape, made, found.calls, found.first, by_drafted=found.by_drafted, starts=starts, lengths=lengths
    )


def _of_searched(trace: Trace, rule: PathRule, wanted: BestTree, found: SearchedTree) -> ShapeCalls:
    """The tree found on all texts, scored by trees that were found on other prompts."""
    parallel = by_parallel_head(trace.provenance)
    shape = wanted.drafted_as(found.tree) if wanted.drafted_as else drafted(rule, found.tree, parallel=parallel)
    return ShapeCalls(wanted, shape, found.calls, found.first, held_out=found.held_out)
