"""SGLang's ``--speculative-algorithm NGRAM``: trees from a trie of the last tokens of every call of the server."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from spectheory.errors import SettingError
from spectheory.ngrams.base import Ids, NgramDraft, Request

_PADDING = 0
"""The token id that fills a tree, below its root."""


@dataclass(eq=False, slots=True)
class _Node:
    """A path of tokens: how often calls inserted it, and which insertion was the latest."""

    children: dict[int, _Node] = field(default_factory=dict)
    count: int = 0
    latest: int = 0


@dataclass
class _Server:
    """The trie of a server, and of the request the nodes at which suffixes of 1, 2, ... tokens end (None: nowhere)."""

    root: _Node = field(default_factory=_Node)
    ends: list[_Node | None] | None = None
    known: int = 0
    window: tuple[int, ...] = ()


class _Tree:
    """A draft tree while it grows, of `room` nodes at most: tokens, and the place of the node above each."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.tokens: list[int] = []
        self.above: list[int] = []
        self._places: dict[tuple[int, int], int] = {}

    def full(self) -> bool:
        """Whether there is no room left."""
        return len(self.tokens) == self.room

    def add(self, above: int, token: int) -> int:
        """The place of a token below a node; it is added if it is not there."""
        if (above, token) not in self._places:
            self._places[above, token] = len(self.tokens)
            self.tokens.append(token)
            self.above.append(above)
        return self._places[above, token]


@dataclass(frozen=True)
class SglangNgram(NgramDraft):
    """A tree of ``tokens - 1`` drafts from a trie that holds the last `depth` tokens of every earlier call.

    After a call its window of `depth` tokens, and each of the window's ends, enter the trie: of a prompt no more than
    that is ever known. Suffixes of the text that stand in the trie give the tree, the longest first; level by level
    come the children that were inserted last, from `min` to `max` of them, more after shorter suffixes. A suffix counts
    only if the one before it stood in the trie when the call before looked. What is left of the tree is filled with
    token 0. The accepted path is the one that the output follows.

    `tokens` is ``--speculative-num-draft-tokens``, `depth` ``--speculative-ngram-max-trie-depth``, `min` and `max` are
    ``--speculative-ngram-min-bfs-breadth`` and ``...-max-bfs-breadth``. A trie that is full
    (``--speculative-ngram-capacity``) and other texts as a corpus are not replayed.

    Examples
    --------
    >>> import numpy as np
    >>> lookup, text = SglangNgram(tokens=5), np.array([5, 1, 2, 5, 1, 3, 5])
    >>> state = lookup.begin(Request(text))
    >>> lookup.branches(text, state)
    ([0, 0, 0, 0], [-1, -1, -1, -1])
    >>> lookup.accept(state, 0)
    >>> lookup.branches(np.append(text, 1), state)
    ([3, 2, 5, 5], [-1, -1, 0, 1])
    """

    tokens: int = field(default=12, metadata={"least": 2})
    depth: int = field(default=18, metadata={"least": 2})
    min: int = 1
    max: int = 10

    name: ClassVar[str] = "ngram-sglang"
    engine: ClassVar[str] = "sglang"
    source: ClassVar[str] = "kernels/jit/csrc/ngram_corpus/trie.cpp, srt/speculative/ngram_worker.py of SGLang 0.5.23"
    remembers: ClassVar[bool] = True
    trees: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min > self.max:
            raise SettingError(
                f"{self.name} has min {self.min} and max {self.max}", limit="needs min <= max", remedy="raise max"
            )

    @property
    def k(self) -> int:
        """Nodes of the tree, which every call fills."""
        return self.tokens - 1

    def begin(self, request: Request, before: _Server | None = None) -> _Server:
        """The trie of the server; the prompt does not enter it."""
        return _Server(before.root if before else _Node())

    def draft(self, text: Ids, state: _Server) -> list[int]:
        """The tokens of the tree."""
        return self.branches(text, state)[0]

    def branches(self, text: Ids, state: _Server) -> tuple[list[int], list[int]]:
        """The tree after a text."""
        state.window = tuple(text[-self.depth :].tolist())
        self._match(state, len(text))
        tree, ends = _Tree(self.k), reversed([*enumerate(state.ends or [], 1)])
        self._grow(tree, ((length, node) for length, node in ends if node is not None and node.children))
        left = self.k - len(tree.tokens)
        return tree.tokens + [_PADDING] * left, tree.above + [-1] * left

    def accept(self, state: _Server, accepted: int) -> None:
        """Insert what the call looked for."""
        for first in range(len(state.window)):
            node = state.root
            node.count += 1
            for token in state.window[first:]:
                node = node.children.setdefault(token, _Node())
                node.count += 1
                node.latest = state.root.count

    def _match(self, state: _Server, length: int) -> None:
        """Move to where suffixes of the text end: from those of the call before, at a first call from the root."""
        new = length - state.known
        if state.ends is None or new > len(state.window):
            state.ends = [_walk(state.root, state.window[-size:]) for size in range(1, len(state.window) + 1)]
        else:
            for token in state.window[len(state.window) - new :]:
                before = [state.root, *state.ends][: self.depth]
                state.ends = [node.children.get(token) if node else None for node in before]
        state.known = length

    def _grow(self, tree: _Tree, suffixes: Iterator[tuple[int, _Node]]) -> None:
        """Below each suffix level by level, the latest children first."""
        deepest = self.depth - 1
        slope = (self.max - self.min) / deepest
        for length, end in suffixes:
            level = deque([(-1, (deepest - length) * slope + self.min, end)])
            while level and not tree.full():
                above, breadth, node = level.popleft()
                children = sorted(node.children.items(), key=lambda child: -child[1].latest)
                for token, child in children[: max(1, int(breadth))]:
                    if tree.full():
                        return
                    level.append((tree.add(above, token), breadth - slope, child))


class SglangFrequentNgram(SglangNgram):
    """The same tree by frequency (``--speculative-ngram-match-type PROB``): the most probable path is next.

    A node brings its `max` most frequent children, each with its share among these times the node's own probability.
    """

    name: ClassVar[str] = "ngram-sglang-prob"

    def _grow(self, tree: _Tree, suffixes: Iterator[tuple[int, _Node]]) -> None:
        """One heap for all suffixes; what is left of a longer one competes with the shorter ones."""
        heap = _Heap()
        for _, node in suffixes:
            self._push(heap, -1, node, 1.0)
            while heap.rows and not tree.full():
                probability, above, token, child = heap.pop()
                self._push(heap, tree.add(above, token), child, probability)

    def _push(self, heap: _Heap, place: int, node: _Node, probability: float) -> None:
        """The children of a node at a place of the tree."""
        most = sorted(node.children.items(), key=lambda child: (-child[1].count, child[0]))[: self.max]
        total = float(sum(child.count for _, child in most))
        for token, child in most:
            heap.push((child.count / total * probability, place, token, child))


class _Heap:
    """Rows by their first number, the largest on top, where equal ones move as in libstdc++'s ``priority_queue``."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, int, int, _Node]] = []

    def push(self, row: tuple[float, int, int, _Node]) -> None:
        """Add a row."""
        self.rows.append(row)
        self._rise(len(self.rows) - 1, row)

    def pop(self) -> tuple[float, int, int, _Node]:
        """Take the top row: the larger child fills its place down to a leaf, and the last row rises from there."""
        top, last = self.rows[0], self.rows.pop()
        size, hole = len(self.rows), 0
        if not size:
            return top
        while 2 * hole + 2 < size:
            right = 2 * hole + 2
            child = right - 1 if self.rows[right][0] < self.rows[right - 1][0] else right
            self.rows[hole], hole = self.rows[child], child
        if 2 * hole + 2 == size:
            self.rows[hole], hole = self.rows[2 * hole + 1], 2 * hole + 1
        self._rise(hole, last)
        return top

    def _rise(self, hole: int, row: tuple[float, int, int, _Node]) -> None:
        """Put a row where the one above is not smaller."""
        while hole and self.rows[(hole - 1) // 2][0] < row[0]:
            self.rows[hole], hole = self.rows[(hole - 1) // 2], (hole - 1) // 2
        self.rows[hole] = row


def _walk(root: _Node, tokens: tuple[int, ...]) -> _Node | None:
    """The node of a path, if the trie has it."""
    node: _Node | None = root
    for token in tokens:
        node = node.children.get(token) if node else None
    return node
