"""A draft tree: drawn, summed up by depth, and compared with others of its size."""

from __future__ import annotations

from spectheory.answers.theory import TreeJson
from spectheory.limits.claims import IID_CHANNEL, RANK_TREES
from spectheory.prediction.tree_answer import TreeAnswer
from spectheory.reports.base import Report
from spectheory.reports.table import Cell, Column, Drawing, Row, Table, number

_MOST_DRAWN_NODES, _MOST_DRAWN_DEPTH = 64, 14
"""A larger tree is summed up by depth: at four columns a depth these fit a terminal of 80."""

OTHER_TREES = {
    "same_texts": "this tree on the same texts",
    "greedy": "greedy tree",
    "iid_optimal": "i.i.d.-optimal tree",
    "chain": "chain",
}
"""Trees that a found one is compared with."""


def tree_report(answer: TreeAnswer) -> Report:
    """The tree drawn node by node, or summed up by depth if it is large, and what it gives."""
    tree = answer.tree
    channel = RANK_TREES["channel"] if answer.source == "ranks" else IID_CHANNEL
    words = channel.words if channel.scope.side == "limit" else f"idealised value for {channel.words}"
    limit = "" if answer.channel is None else f"; {words}: {answer.channel:.2f}"
    tokens = number(answer.tokens_per_call)
    headline = f"Tree of {tree.nodes} nodes, depth {tree.depth}: {tokens} tokens per call{limit}"
    content = TreeJson.view(
        answer, **answer.facts, nodes=tree.nodes, depth=tree.depth, draft_pass_tokens=tree.passes, paths=tree.paths
    )
    pieces: list[Table | Drawing] = [_depths_table(answer)]
    if tree.nodes <= _MOST_DRAWN_NODES and tree.depth <= _MOST_DRAWN_DEPTH:
        nodes = zip(tree.paths, answer.weights.tolist(), strict=True)
        shown = {path: (str(path[-1]), f"{weight:.4f}") for path, weight in nodes}
        pieces.insert(0, Drawing("the text so far", "rank  weight", shown))
    if answer.others:
        this = [Cell("this tree", best=True), Cell(answer.tokens_per_call, best=True)]
        columns = [Column("tree", kind="words"), Column("tokens per call", digits=3)]
        others: list[Row] = [[OTHER_TREES[key], value] for key, value in answer.others.items()]
        pieces.append(Table("Compared", columns, [this, *others]))
    return Report(content, pieces, headline, answer.notes)


def _depths_table(answer: TreeAnswer) -> Table:
    """Some depths: all of a shallow tree, then powers of two and the last."""
    tree, survival, rows = answer.tree, answer.survival, []
    doubled = [2**i for i in range(3, tree.depth.bit_length())]
    for depth in sorted({*range(1, min(tree.depth, 8) + 1), *doubled, tree.depth}):
        here = tree.depths == depth
        rows.append([depth, int(here.sum()), int(tree.ranks[here].max()), tree.passes[depth - 1], survival[depth - 1]])
    counts = [Column(heading) for heading in ("depth", "nodes", "largest rank", "draft pass tokens")]
    return Table("By depth", [*counts, Column("P(tau >= depth)", digits=4)], rows)
