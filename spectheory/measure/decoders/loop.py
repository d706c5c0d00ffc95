"""The decoding loop: draft, one pass of the target, verify; all texts of a batch in step."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spectheory.measure.decoders.drafted import ROOT, DraftTree, Floats
from spectheory.measure.decoders.drafters import Drafting
from spectheory.measure.decoders.events import Call, Last
from spectheory.measure.decoders.methods import Method
from spectheory.measure.decoders.randomness import Source
from spectheory.measure.decoders.readers import Reader, Rows
from spectheory.measure.decoders.verifiers import Verifier


@dataclass
class Running:
    """One text being decoded: `text` is prompt and output so far (shared with the readers), `to_go` the tokens left."""

    text: list[int]
    to_go: int
    source: Source
    calls: list[Call] = field(default_factory=list)

    def follow(self, tokens: Sequence[int]) -> None:
        """Append these tokens."""
        self.text += tokens
        self.to_go -= len(tokens)
        self.source.clocks.follow(tokens)

    def over(self, ends: frozenset[int], most: int | None) -> bool:
        """Whether its last call is made, and still to be listed."""
        return self.to_go == 0 or self.text[-1] in ends or len(self.calls) + 1 == most


def run(
    running: Sequence[Running],
    target: Reader,
    draft: Reader | None,
    method: Method,
    ends: frozenset[int],
    verifier: Verifier | None = None,
    *,
    greedy: bool = False,
    calls: int | None = None,
) -> None:
    """Decode texts to their ends, in step: each round makes one call of every text that has not ended.

    The readers know the texts in the same order; `draft` is None if the method drafts nothing from a model. A text ends
    with the first token of `ends`, or after so many `calls`. `verifier` replaces the method's own. At temperature 0 the
    drafts are `greedy`.
    """
    readers = [reader for reader in (target, draft) if reader is not None]
    going = {row: text for row, text in enumerate(running) if text.to_go > 0}
    while going:
        started = time.perf_counter()
        for reader in readers:
            reader.seconds = 0.0
        trees = {row: DraftTree() for row in going}
        _draft(going, trees, draft, method, ends, greedy)
        paths = _verify(going, trees, target, verifier or method.verifier, ends)
        ended = [row for row, text in going.items() if text.over(ends, calls)]
        for reader in readers:
            reader.settle({row: path for row, (path, _) in paths.items()})
            if ended:
                reader.drop(ended)
        took = draft.seconds if draft is not None else 0.0, target.seconds, time.perf_counter() - started
        for row, (path, last) in paths.items():
            going[row].calls.append(Call(len(trees[row].nodes), trees[row].depth, len(path), last, *took))
        for row in ended:
            del going[row]


def _draft(
    going: Mapping[int, Running],
    trees: Mapping[int, DraftTree],
    draft: Reader | None,
    method: Method,
    ends: frozenset[int],
    greedy: bool,
) -> None:
    """Grow the trees of all texts; they share the passes of the draft."""
    drafting = {
        row: method.drafting(trees[row], text.text, text.to_go - 1, text.source, ends, greedy)
        for row, text in going.items()
    }
    answers: Mapping[int, Rows] = {}
    while True:
        requests = {}
        for row, steps in drafting.items():
            rows = answers.get(row)
            nodes = next(steps, None) if rows is None else _sent(steps, [rows[i] for i in range(len(rows))])
            if nodes is not None:
                requests[row] = trees[row], nodes
        if draft is None or not requests:
            return
        answers = draft.read(requests)
        drafting = {row: drafting[row] for row in requests}


def _sent(steps: Drafting, pmfs: Sequence[Floats]) -> list[int] | None:
    try:
        return steps.send(pmfs)
    except StopIteration:
        return None


def _verify(
    going: Mapping[int, Running],
    trees: Mapping[int, DraftTree],
    target: Reader,
    verifier: Verifier,
    ends: frozenset[int],
) -> dict[int, tuple[list[int], Last]]:
    """One pass of the target; extend the texts by the result. Returns accepted nodes and what followed them."""
    wanted = {row: [ROOT, *tree.nodes] for row, tree in trees.items()}
    rows = target.read({row: (trees[row], nodes) for row, nodes in wanted.items()})
    paths: dict[int, tuple[list[int], Last]] = {}
    for row, tree in trees.items():
        path, token = verifier(tree, _ByNode(rows[row], wanted[row]), going[row].source)
        accepted = [tree.tokens[node] for node in path]
        last: Last = "recovered" if tree.children(path[-1] if path else ROOT) else "bonus" if path else "plain"
        if accepted and accepted[-1] in ends:
            last = "end"
        going[row].follow(accepted if last == "end" else [*accepted, token])
        paths[row] = path, last
    return paths


class _ByNode:
    """Pmfs by node."""

    def __init__(self, rows: Rows, nodes: Sequence[int]) -> None:
        self._rows, self._place = rows, {node: i for i, node in enumerate(nodes)}

    def __getitem__(self, node: int) -> Floats:
        return self._rows[self._place[node]]
