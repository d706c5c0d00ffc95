"""Calls of a rule with given shapes along the texts of one block, which has the columns that they read (§7, §11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from spectheory.drafting import Shape, StoppingRule
from spectheory.prediction.call_system import TextCalls
from spectheory.prediction.drafted_lengths import Drafted, DraftedLengths
from spectheory.prediction.path_laws import PathLaws
from spectheory.prediction.paths import (
    by_text,
    calls_of_chains,
    calls_of_laws,
    calls_of_tree,
    tree_survival,
)
from spectheory.prediction.stopped import lengths_of_calls, stopped_survival
from spectheory.trace import Trace
from spectheory.verification import Columns, PathRule, RankRule
from spectheory.verification.by_start import read_as

Floats = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True)
class BlockCalls:
    """What one shape gives on each text of a block: :class:`~spectheory.prediction.shape_calls.ShapeCalls` has it of
    all texts.
    """

    calls: TextCalls
    first: Floats
    by_drafted: NDArray[np.int64] | None = None
    lengths: DraftedLengths | None = None


def columns_of(rule: PathRule, shapes: Sequence[Shape], columns: Columns) -> list[str] | None:
    """The columns that a rule reads for these shapes; None where a stopping rule may read others."""
    if any(shape.stop for shape in shapes):
        return None
    ranked = [rule.recorded_in] if isinstance(rule, RankRule) else []
    return [found for name in (*rule.needs, *ranked) for found in (name, read_as(columns, name))]


def calls_of_block(block: Trace, rule: PathRule, shapes: Sequence[Shape], prefill: bool) -> list[BlockCalls]:
    """The calls of each shape; chains share one survival, and drafts that decide their length their weights."""
    chains = [shape for shape in shapes if shape.is_chain and not shape.stop]
    stopped = {shape.nodes for shape in shapes if shape.stop}
    shared = {k: Drafted(block, rule, k, prefill_emits_token=prefill) for k in sorted(stopped)}
    found: dict[Shape, BlockCalls] = {}
    if chains:
        survival = rule.path_survival(block.columns, max(shape.nodes for shape in chains))
        first, ks = by_text(survival[:, 0], block.lengths), [shape.nodes for shape in chains]
        calls = calls_of_chains(survival, block.lengths, ks, prefill_emits_token=prefill)
        for shape in chains:
            counts = calls_by_drafted(block, rule, shape, prefill_emits_token=prefill)
            found[shape] = BlockCalls(calls[shape.nodes], first, by_drafted=counts)
    for other in shapes:
        if other.stop:
            found[other] = _stopped(block, shared[other.nodes], other.stop, prefill)
        elif not other.is_chain:
            found[other] = _of_tree(block, rule, other, prefill)
    return [found[shape] for shape in shapes]


def _of_tree(block: Trace, rule: PathRule, shape: Shape, prefill: bool) -> BlockCalls:
    """Those of a tree, or of what is matched with one."""
    if isinstance(rule, RankRule):
        law = rule.path_laws(block.columns, shape.max_rank, shape.depth)
        return BlockCalls(*calls_of_laws(PathLaws(law), shape.tree(), block.lengths, prefill_emits_token=prefill))
    survival, leaves = survival_of(rule, shape, block.columns)
    calls = calls_of_tree(survival, leaves, block.lengths, prefill_emits_token=prefill)
    return BlockCalls(calls, by_text(survival[:, 0], block.lengths))


def _stopped(block: Trace, shared: Drafted, stop: StoppingRule, prefill: bool) -> BlockCalls:
    """Those of a draft that decides its length (§11)."""
    along, lengths = lengths_of_calls(shared, stop, block.columns)
    first = np.where(along > 0, shared.survival[:, 0], 0.0)
    return BlockCalls(lengths.text_calls(prefill), by_text(first, block.lengths), lengths=lengths)


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


def joined(parts: Sequence[T]) -> T:
    """One object of arrays from those of several blocks, texts along the first axis."""
    if len(parts) == 1:
        return parts[0]

    def one(values: Sequence[Any]) -> Any:
        if any(value is None for value in values):
            return None
        return np.concatenate(values) if isinstance(values[0], np.ndarray) else joined(values)

    first = parts[0]
    names = [field.name for field in fields(first)]  # type: ignore[arg-type]
    return type(first)(*(one([getattr(part, name) for part in parts]) for name in names))
