"""A draft tree: drawn, summed up by depth, and beside others of its size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectheory.drafting import Tree
from spectheory.intervals import Interval
from spectheory.reports.base import Report, number, table

if TYPE_CHECKING:
    from rich.table import Table
    from rich.tree import Tree as Drawing

MOST_DRAWN_NODES, MOST_DRAWN_DEPTH = 64, 14
"""A larger tree is summed up by depth: at four columns a depth these fit a terminal of 80."""

OTHER_TREES = {
    "same_texts": "this tree on the same texts",
    "greedy": "greedy tree",
    "iid_optimal": "i.i.d.-optimal tree",
    "chain": "chain",
}
"""Trees that a found one is compared with."""


@dataclass(frozen=True)
class TreeAnswer:
    """A draft tree and what it gives.

    Attributes
    ----------
    source : str
        ``ranks`` or ``trace``.
    tree : Tree
        The tree.
    weights : array ``[nodes]``
        Probability that each node is accepted: its marginal gain in tokens per call.
    tokens_per_call : Interval
        What the tree gives; of a search, what it gives on other prompts.
    channel : float or None
        T1 for as many nodes.
    others : mapping of str to Interval
        Tokens per call of other trees of that size, by the keys of :data:`OTHER_TREES`.
    facts : mapping
        What it was worked out from.
    notes : sequence of str
        Assumptions.
    """

    source: str
    tree: Tree
    weights: np.ndarray[Any, np.dtype[np.float64]]
    tokens_per_call: Interval
    channel: float | None
    others: Mapping[str, Interval]
    facts: Mapping[str, Any]
    notes: Sequence[str] = ()

    @property
    def survival(self) -> list[float]:
        """P(tau >= i), i = 1..depth: the weights of a depth, summed."""
        return np.bincount(self.tree.depths, self.weights)[1:].tolist()


def tree_report(answer: TreeAnswer) -> Report:
    """The tree drawn node by node, or summed up by depth if it is large, and what it gives."""
    tree = answer.tree
    claim = "T1 ≤" if answer.source == "ranks" else "T1 reads"
    limit = "" if answer.channel is None else f"; {claim} {answer.channel:.3f}"
    headline = f"Tree of {tree.nodes} nodes, depth {tree.depth}: {answer.tokens_per_call} tokens per call{limit}"
    content = {
        "source": answer.source,
        **answer.facts,
        "nodes": tree.nodes,
        "depth": tree.depth,
        "draft_pass_tokens": tree.passes,
        "tokens_per_call": answer.tokens_per_call,
        "iid_channel": answer.channel,
        "survival": answer.survival,
        "others": answer.others,
        "paths": tree.paths,
        "weights": answer.weights,
    }
    drawn = tree.nodes <= MOST_DRAWN_NODES and tree.depth <= MOST_DRAWN_DEPTH
    pieces: list[Table | Drawing] = [_drawing(answer)] if drawn else []
    pieces.append(_depths_table(answer))
    if answer.others:
        pieces.append(_others_table(answer))
    return Report(content, pieces, headline, answer.notes)


def _drawing(answer: TreeAnswer) -> Drawing:
    """Every node with its rank and its weight, siblings by rank."""
    from rich.tree import Tree as Drawing

    root = Drawing("the text so far  [dim]rank  weight[/]", guide_style="dim")
    branches: dict[tuple[int, ...], Drawing] = {(): root}
    for path, weight in sorted(zip(answer.tree.paths, answer.weights.tolist(), strict=True)):
        branches[path] = branches[path[:-1]].add(f"[bold]{path[-1]}[/]  {weight:.4f}")
    return root


def _depths_table(answer: TreeAnswer) -> Table:
    tree = answer.tree
    made = table("By depth", ["depth", "nodes", "largest rank", "draft pass tokens", "P(tau >= depth)"])
    survival, doubled = answer.survival, [2**i for i in range(3, tree.depth.bit_length())]
    for depth in sorted({*range(1, min(tree.depth, 8) + 1), *doubled, tree.depth}):
        here = tree.depths == depth
        cells = (depth, int(here.sum()), int(tree.ranks[here].max()), tree.passes[depth - 1])
        made.add_row(*map(str, cells), f"{survival[depth - 1]:.4f}")
    return made


def _others_table(answer: TreeAnswer) -> Table:
    made = table("Compared", ["tree", "tokens per call"], words=1)
    made.add_row("[bold]this tree[/]", f"[bold]{number(answer.tokens_per_call, 3)}[/]")
    for key, value in answer.others.items():
        made.add_row(OTHER_TREES[key], number(value, 3))
    return made
