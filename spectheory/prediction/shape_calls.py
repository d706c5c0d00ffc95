"""Calls of a rule with any shape along the texts of a trace (§7, §11), the shape given, measured or searched for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Floats
from spectheory.drafting import Copied, Grown, Parallel, Shape, StoppingRule
from spectheory.drafting.schedules import SEQUENTIAL, CopiedElse
from spectheory.errors import SettingError, TraceError, argument
from spectheory.prediction.best_tree import BestTree, SearchedTree, ShapeRequest, _searched_trees
from spectheory.prediction.means import columns_of
from spectheory.prediction.paths import (
    PathLaws,
    TextCalls,
    by_text,
    calls_of_chains,
    calls_of_laws,
    calls_of_tree,
    tree_survival,
)
from spectheory.prediction.stopped import Drafted, DraftedLengths, check_stops, lengths_of_calls, stopped_survival
from spectheory.trace import Trace
from spectheory.verification import Columns, CopiedFirst, GrownMatch, PathRule, RankRule, Rule
from spectheory.verification.registry import ranked_names

T = TypeVar("T")


@dataclass(frozen=True)
class _BlockCalls:
    """What one shape gives on each text of a block: :class:`~spectheory.prediction.shape_calls.ShapeCalls` has it of
    all texts.
    """

    calls: TextCalls
    first: Floats
    by_drafted: NDArray[np.int64] | None = None
    lengths: DraftedLengths | None = None


def _calls_of_block(block: Trace, rule: PathRule, shapes: Sequence[Shape], prefill: bool) -> list[_BlockCalls]:
    """The calls of each shape; chains share one survival, and drafts that decide their length their weights."""
    chains = [shape for shape in shapes if shape.is_chain and not shape.stop]
    stopped = {shape.nodes for shape in shapes if shape.stop}
    shared = {k: Drafted(block, rule, k, prefill_emits_token=prefill) for k in sorted(stopped)}
    by_shape: dict[Shape, _BlockCalls] = {}
    if chains:
        survival = rule.path_survival(block.columns, max(shape.nodes for shape in chains))
        first, ks = by_text(survival[:, 0], block.lengths), [shape.nodes for shape in chains]
        calls = calls_of_chains(survival, block.lengths, ks, prefill_emits_token=prefill)
        for shape in chains:
            counts = calls_by_drafted(block, rule, shape, prefill_emits_token=prefill)
            by_shape[shape] = _BlockCalls(calls[shape.nodes], first, by_drafted=counts)
    for other in shapes:
        if other.stop:
            by_shape[other] = _stopped(block, shared[other.nodes], other.stop, prefill)
        elif not other.is_chain:
            by_shape[other] = _of_tree(block, rule, other, prefill)
    return [by_shape[shape] for shape in shapes]


def _of_tree(block: Trace, rule: PathRule, shape: Shape, prefill: bool) -> _BlockCalls:
    """Those of a tree, or of what is matched with one."""
    if isinstance(rule, RankRule):
        law = rule.path_laws(block.columns, shape.max_rank, shape.depth)
        return _BlockCalls(*calls_of_laws(PathLaws(law), shape.tree(), block.lengths, prefill_emits_token=prefill))
    survival, leaves = survival_of(rule, shape, block.columns)
    calls = calls_of_tree(survival, leaves, block.lengths, prefill_emits_token=prefill)
    return _BlockCalls(calls, by_text(survival[:, 0], block.lengths))


def _stopped(block: Trace, shared: Drafted, stop: StoppingRule, prefill: bool) -> _BlockCalls:
    """Those of a draft that decides its length (§11)."""
    along, lengths = lengths_of_calls(shared, stop, block.columns)
    first = np.where(along > 0, shared.survival[:, 0], 0.0)
    return _BlockCalls(lengths.text_calls(prefill), by_text(first, block.lengths), lengths=lengths)


def calls_by_drafted(
    trace: Trace, rule: PathRule, shape: Shape, *, prefill_emits_token: bool = False
) -> NDArray[np.int64] | None:
    """Calls of each text by the tokens that they draft, ``[texts, k + 1]`` (exact); None where all draft the shape."""
    first = int(prefill_emits_token)
    return rule.calls_by_drafted(trace.columns, trace.lengths, trace.most_tokens, shape.nodes, first=first)


def survival_of(rule: PathRule, shape: Shape, columns: Columns) -> tuple[Floats, Floats]:
    """P(tau >= i) of a call that starts at each position, and how much of it ends at leaves, ``[N, depth]`` (§7, §10).

    A chain ends at one leaf: what survives to its last draft, or to the last that is drafted along the text (§11).
    """
    if isinstance(rule, RankRule) and not shape.is_chain:
        return tree_survival(rule.path_laws(columns, shape.max_rank, shape.depth), shape.tree())
    survival = (
        stopped_survival(rule, shape.stop, shape.depth, columns)
        if shape.stop
        else rule.path_survival(columns, shape.depth)
    )
    leaves = np.zeros_like(survival)
    leaves[:, -1] = survival[:, -1]
    return survival, leaves


def _concat_texts(parts: Sequence[T]) -> T:
    """One object of arrays from those of several blocks, texts along the first axis."""
    if len(parts) == 1:
        return parts[0]

    def one(values: Sequence[Any]) -> Any:
        if any(value is None for value in values):
            return None
        return np.concatenate(values) if isinstance(values[0], np.ndarray) else _concat_texts(values)

    first = parts[0]
    names = [field.name for field in fields(first)]  # type: ignore[arg-type]
    return type(first)(*(one([getattr(part, name) for part in parts]) for name in names))


def grown_rules(trace: Trace) -> list[GrownMatch]:
    """The rule of grown trees, where the trace has measured them."""
    return [] if GrownMatch().missing_columns(trace.columns) else [GrownMatch()]


def measured_shape(trace: Trace) -> Grown:
    """The size of the trees that were grown while the trace was measured.

    Raises a :class:`~spectheory.errors.TraceError` where none were.

    Examples
    --------
    >>> trace = Trace.from_log_probabilities([([-1.0, -1.0], [-1.0, -1.0])])
    >>> columns = {**trace.columns, "grown_match": trace.columns["log_target"].astype(int) + 1}
    >>> str(measured_shape(Trace(columns, trace.texts, {"settings": {"grown": "8x2x3"}})))
    'grown 8x2x3'
    """
    GrownMatch().require(trace.columns)
    settings = trace.provenance.get("settings")
    size = settings.get("grown") if isinstance(settings, dict) else None
    if not isinstance(size, str):
        raise TraceError(
            "the trace has grown_match, and no size of its trees",
            limit="settings.grown of its provenance says NODESxTOPxDEPTH",
            remedy=f"measure again with {argument('grown', '--grow')}",
        )
    return Grown.sized_as(size)


def _check_grown(trace: Trace, shape: object) -> None:
    """Refuse another shape than that of the measurement."""
    measured = measured_shape(trace)
    if not (isinstance(shape, Grown) and shape.size == measured.size):  # whether in one pass or in several
        raise SettingError(
            f"the rule grown is asked for {shape}",
            limit=f"the trace has measured trees of {measured.size}, and each size is measured by itself",
            remedy=f"use {measured.written}, or measure again with {argument('grown', '--grow')}",
        )


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

    wanted: ShapeRequest
    shape: Shape
    calls: TextCalls
    first: Floats
    held_out: bool = True
    by_drafted: NDArray[np.int64] | None = None
    starts: Shape | None = None
    lengths: Sequence[tuple[Shape, DraftedLengths]] = ()


def takes(rule: Rule, wanted: ShapeRequest) -> bool:
    """Whether the rule has a law for the shape: every rule for a chain, a rule with ranks for every fixed shape.

    A draft that decides its length is a model's. Grown trees have a rule of their own, which takes no other shape.
    """
    if rule.grows or not wanted.fixed:
        return rule.grows and not wanted.fixed
    if wanted.stop:
        return rule.can_stop
    if isinstance(rule, PathRule) and rule.length not in (None, wanted.nodes):
        return False
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
    if isinstance(rule, CopiedFirst) and counts is not None and counts.any():
        shares = tuple((counts.sum(axis=0) / counts.sum()).tolist())
        return shape.by(CopiedElse(shares, Parallel() if parallel else SEQUENTIAL))
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
    trace: Trace, rule: PathRule, wanted: Sequence[ShapeRequest], *, prefill_emits_token: bool = False
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
        parts = [_calls_of_block(block, rule, ordered, prefill_emits_token) for block in blocks]
        for shape, *of_blocks in zip(ordered, *parts, strict=True):
            yield _of_fixed(trace, rule, shape, _concat_texts(of_blocks))
    if searched:
        assert isinstance(rule, RankRule)
        trees = _searched_trees(trace, rule, searched, prefill_emits_token=prefill_emits_token)
        yield from (_of_searched(trace, rule, *pair) for pair in zip(searched, trees, strict=True))


def check_shapes(trace: Trace, rule: PathRule, wanted: Sequence[ShapeRequest]) -> None:
    """Refuse a trace that lacks what the rule and its shapes read, and shapes that the rule does not take."""
    rule.require(trace.columns)
    for shape in wanted:
        if rule.grows:
            _check_grown(trace, shape)
        if shape.stop:
            check_stops(rule, shape.stop, trace.columns, trace.sampling)
        elif not shape.is_chain:
            _check_ranks(rule, shape)


def _check_ranks(rule: PathRule, wanted: ShapeRequest) -> None:
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


def _of_fixed(trace: Trace, rule: PathRule, shape: Shape, block_calls: _BlockCalls) -> ShapeCalls:
    """The calls of a shape that was asked for."""
    starts = shape if "text" in rule.bound_by else None
    made = drafted(rule, shape, block_calls.by_drafted, parallel=by_parallel_head(trace.provenance))
    lengths = [(made, block_calls.lengths)] if block_calls.lengths else []
    return ShapeCalls(
        shape,
        made,
        block_calls.calls,
        block_calls.first,
        by_drafted=block_calls.by_drafted,
        starts=starts,
        lengths=lengths,
    )


def _of_searched(trace: Trace, rule: PathRule, wanted: BestTree, search: SearchedTree) -> ShapeCalls:
    """The tree found on all texts, scored by trees that were found on other prompts."""
    parallel = by_parallel_head(trace.provenance)
    shape = wanted.drafted_as(search.tree) if wanted.drafted_as else drafted(rule, search.tree, parallel=parallel)
    return ShapeCalls(wanted, shape, search.calls, search.first, held_out=search.held_out)
