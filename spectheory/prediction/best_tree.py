"""S4: the best tree of a rule, found on some of the texts, scored on all, each on the tree of other prompts.

Along a text the rank law changes, so a tree is judged by the calls that the text takes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from hashlib import sha256
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spectheory import kernels
from spectheory.distributions import Floats
from spectheory.drafting import Shape, Tree
from spectheory.drafting.optimal import validate_rank_pmf
from spectheory.drafting.tree import at_least_one
from spectheory.errors import ShapeError
from spectheory.prediction.means import columns_of
from spectheory.prediction.over_prompts import PARTS, Prompts
from spectheory.prediction.paths import (
    PathLaws,
    TextCalls,
    _system_of,
    calls_and_visits,
    calls_of_laws,
    tokens_left,
    tree_survival,
)
from spectheory.trace import RECORDED_RANKS, Trace
from spectheory.trace.sample import of_texts, spread
from spectheory.verification import Columns, RankRule
from spectheory.verification.by_start import within


@dataclass(frozen=True)
class BestTree:
    """Asks for the best draft tree of a size that a local search finds, for each rule (S4).

    The tree is found on the texts of all prompts, of a large trace on a sample of them; its score comes from trees that
    were found on other prompts than those they are scored on. Ranks go up to 8, or to what is recorded. Optimality is
    not guaranteed. `max_depth` limits the draft passes of a call; `drafted_as` is the shape that an engine drafts for
    the tree, if its passes are not the tree's own.

    Examples
    --------
    >>> str(BestTree(8))
    'best tree of 8'
    """

    nodes: int
    max_depth: int | None = None
    drafted_as: Callable[[Tree], Shape] | None = None

    fixed: ClassVar[bool] = True
    is_chain: ClassVar[bool] = False
    stop: ClassVar[None] = None

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


ShapeRequest = Shape | BestTree
"""A shape, or one to be found."""


def _cross_fitted(
    law: Floats, lengths: NDArray[np.int64], part: NDArray[np.int64], search: Callable[..., Tree]
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_], Tree]]:
    """Each part of the texts, as masks ``[texts]`` and ``[N]``, with the tree that was found on all other texts.

    `law` ``[N, A]`` is P(R = r | text) at each position; `lengths` and `part` ``[texts]`` are the tokens of each text
    and the number of its part. A single part has its own tree. Scores are estimates: each tree was found on fewer texts
    than the one that is deployed.
    """
    for number in np.unique(part):
        inside = part == number
        rows = np.repeat(inside, lengths)
        yield inside, rows, search(law, lengths) if inside.all() else search(law[~rows], lengths[~inside])


Worth = Callable[[int], Floats]
"""What accepting a draft of a depth is worth at each start, ``[N]``."""

Path = tuple[int, ...]
Scored = tuple[float, Path]

_ROUNDS = 6
"""Rounds of growing anew from the last tree's starts; each costs about one first growth."""
_RIM = 6
"""Leaves and candidates that are considered for an exchange."""
_TRIALS = 60
"""Exchanges whose calls are worked out."""
_MOST_EXCHANGED = 64
"""Nodes up to which exchanges are tried: in a larger tree one node hardly matters."""
_MOST_FOUND = 4096
_FOUND: dict[tuple[object, ...], Tree] = {}
"""Trees by what they were searched from: a plan searches for the same ones for each engine."""


@dataclass(frozen=True)
class FoundTree:
    """A draft tree, the calls it takes, and those of the tree where the search began (exact for these texts, §7).

    `greedy_calls` are those of the tree that is best for a start drawn uniformly along the texts.
    """

    tree: Tree
    calls: float
    greedy_calls: float


def text_tree(
    law: Floats, lengths: NDArray[np.int64], budget: int, *, max_depth: int | None = None, consecutive: bool = False
) -> FoundTree:
    r"""A draft tree of few target calls for the rank laws along a text, by local search (S4; ``kobus2025``).

    The tree of the heaviest average weights is best for a start drawn uniformly along the text, but calls start
    elsewhere. The search begins there. With C(n) the calls left and f(n) the calls that start at n under the last tree,
    one more node v of depth i changes the calls, to first order, by

    .. math:: -\sum_n f(n)\, w_v(n)\, \big(C(n+i) - C(n+i+1)\big), \qquad
        w_v(n) = \prod_{j\le i} P(R_{n+j} = r_j(v) \mid x_{n+j}),

    and the tree is grown again by these gains while the calls fall. Then single nodes are exchanged or dropped while
    they fall: a node too many can cost calls. The calls are exact for these texts. Optimality is not guaranteed, and a
    smaller budget may find a better tree.

    `law` ``[N, A]`` is P(R = r | text) at each position, r = 1..A, texts concatenated; of drafts by start it is
    ``[N, K, A]``, and no tree is deeper than K (§10). `lengths` ``[texts]`` are their tokens, N in all. `budget` is the
    most nodes, `max_depth` their largest depth. With `consecutive`, children have ranks 1..m, as recursive rejection
    tries them in order.

    Examples
    --------
    Two positions that alternate: what is best on average is not best where calls start.

    >>> law = np.array([[0.0002, 0.9997], [0.955, 0.026]] * 20)
    >>> search = text_tree(law, np.array([40]), 3)
    >>> str(search.tree), round(search.calls, 1), round(search.greedy_calls, 1)
    ('tree 2 2-1 2-1-2', 10.4, 20.0)
    """
    _validate(law, lengths, budget, max_depth)
    laws = PathLaws(law)
    depth = min(budget, max_depth or budget, laws.deepest or budget, int(lengths.max()))
    grower = _Grower(laws, depth, consecutive)
    left = tokens_left(lengths)
    best = grower.grow(budget, lambda depth: np.where(left >= depth, 1.0, 0.0))
    calls = greedy = _calls(laws, lengths, best)
    for _ in range(_ROUNDS):
        tree = grower.grow(budget, _worth(laws, lengths, best))
        needed = _calls(laws, lengths, tree)
        if not needed < calls:
            break
        best, calls = tree, needed
    if budget <= _MOST_EXCHANGED:
        best, calls = _exchanged(grower, laws, lengths, best, calls)
    return FoundTree(best, calls, greedy)


def _validate(law: Floats, lengths: NDArray[np.int64], budget: int, max_depth: int | None) -> None:
    if law.ndim not in (2, 3) or len(law) != int(np.sum(lengths)) or not len(law):
        raise ShapeError(
            f"the rank law is {law.shape}, the texts have {int(np.sum(lengths))} tokens",
            limit="needs [N, A], or [N, K, A] by start and depth, and texts of N tokens",
            remedy="pass one row per token",
        )
    if lengths.min() < 1:
        raise ShapeError(f"a text has {lengths.min()} tokens", limit="must be >= 1", remedy="leave it out")
    validate_rank_pmf(law)
    for name, value in (("budget", budget), ("max depth", max_depth)):
        if value is not None:
            at_least_one(name, value)


def _exchanged(
    grower: _Grower, laws: PathLaws, lengths: NDArray[np.int64], tree: Tree, calls: float
) -> tuple[Tree, float]:
    """Exchange a leaf for a candidate, or drop it, while that lowers the calls; only the most promising are tried."""
    trials = _TRIALS
    while trials > 0:
        weights = grower.weights(tree.paths)
        paths = [path for path in weights if path]
        leaves, candidates = grower.rim(weights, _worth(laws, lengths, tree))
        weights |= {path: grower.weight(weights, path) for _, path in candidates}
        moves: list[tuple[float, Path, tuple[Path, ...]]] = [
            (gain - loss, old, (new,)) for loss, old in leaves for gain, new in candidates if new[:-1] != old
        ]
        moves += [(-loss, old, ()) for loss, old in leaves if len(paths) > 1]
        for _, old, new in sorted(moves)[: -trials - 1 : -1]:
            trials -= 1
            other = [path for path in paths if path != old] + [*new]
            if not grower.allowed(other):
                continue
            needed = _calls_of_paths(laws, lengths, other, weights)
            if needed < calls:
                tree, calls = Tree.from_paths(other), needed
                break
        else:
            break
    return tree, calls


def _calls(laws: PathLaws, lengths: NDArray[np.int64], tree: Tree) -> float:
    return float(np.sum(calls_of_laws(laws, tree, lengths)[0].expected))


def _calls_of_paths(
    laws: PathLaws, lengths: NDArray[np.int64], paths: list[Path], weights: Mapping[Path, Floats]
) -> float:
    """:func:`_calls` of the tree of these paths, whose weights are known; the same sums in the same order."""
    if kernels.pays(laws.starts):
        return _calls(laws, lengths, Tree.from_paths(paths))
    by_depth: list[list[Floats]] = [[] for _ in range(max(map(len, paths)))]
    for path in sorted(paths):
        by_depth[len(path) - 1].append(weights[path])
    system = _system_of(np.array([reduce(np.add, of_depth) for of_depth in by_depth]).T, lengths, False)
    return float(np.sum(system.at_start(system.values())))


def _worth(laws: PathLaws, lengths: NDArray[np.int64], tree: Tree) -> Worth:
    """First-order gain of accepting one draft more at each depth, where this tree's calls start."""
    calls, visits = calls_and_visits(tree_survival(laws, tree)[0], lengths)
    left = tokens_left(lengths)

    def worth(depth: int) -> Floats:
        after, beyond = (_ahead(calls, left, depth + step) for step in (0, 1))
        return visits * (after - beyond)

    return worth


def _ahead(calls: Floats, left: NDArray[np.int64], steps: int) -> Floats:
    """C(n + steps), 0 from the end of the text on."""
    ahead = np.zeros_like(calls)
    ahead[: max(len(calls) - steps, 0)] = calls[steps:]
    return np.where(left > steps, ahead, 0.0)


class _Grower:
    """Grows trees node by node, the candidate of the largest gain first."""

    def __init__(self, laws: PathLaws, depth: int, consecutive: bool) -> None:
        self.laws, self.depth, self.consecutive = laws, depth, consecutive

    def grow(self, budget: int, worth: Worth) -> Tree:
        """The first `budget` nodes."""
        worths = cache(worth)
        waiting: list[tuple[float, int, Path]] = []
        siblings: dict[Path, Floats] = {}

        def offer(path: Path) -> None:
            """Put the children of a node among the candidates."""
            depth = len(path) + 1
            if depth > self.depth:
                return
            gains = self.laws.sums(self._weight(path) * worths(depth), depth)
            if self.consecutive:
                siblings[path] = gains
                gains = gains[:1]
            for rank, gain in enumerate(gains, start=1):
                heapq.heappush(waiting, (-float(gain), depth, (*path, rank)))

        offer(())
        paths: list[tuple[int, ...]] = []
        while waiting and len(paths) < budget:
            _, depth, path = heapq.heappop(waiting)
            paths.append(path)
            if self.consecutive and path[-1] < self.laws.ranks:
                gain = siblings[path[:-1]][path[-1]]
                heapq.heappush(waiting, (-float(gain), depth, _next_sibling(path)))
            offer(path)
        return Tree.from_paths(paths)

    def rim(self, weights: Mapping[Path, Floats], worth: Worth) -> tuple[list[Scored], list[Scored]]:
        """The leaves with the least to lose and the candidates with the most to gain, by first-order gain."""
        inside = set(weights)
        inner = {path[:-1] for path in inside if path}
        worths = cache(worth)
        leaves: list[Scored] = []
        candidates: list[Scored] = []
        for path in inside:
            depth = len(path) + 1
            if path and path not in inner and not (self.consecutive and _next_sibling(path) in inside):
                leaves.append((float(weights[path] @ worths(depth - 1)), path))
            if depth <= self.depth:
                gains = self.laws.sums(weights[path] * worths(depth), depth)
                missing = [(float(g), (*path, r)) for r, g in enumerate(gains, 1) if (*path, r) not in inside]
                candidates += missing[:1] if self.consecutive else missing
        return sorted(leaves)[:_RIM], sorted(candidates)[: -_RIM - 1 : -1]

    def weights(self, paths: list[Path]) -> dict[Path, Floats]:
        """Probability that a call from each position accepts a node, for the root and all nodes of a tree."""
        weights: dict[Path, Floats] = {(): np.ones(self.laws.starts)}
        for path in sorted(paths, key=len):
            weights[path] = self.weight(weights, path)
        return weights

    def weight(self, weights: Mapping[Path, Floats], path: Path) -> Floats:
        """The same for a node whose parent's is known."""
        return self.laws.times(weights[path[:-1]], len(path), path[-1])

    def allowed(self, paths: list[Path]) -> bool:
        """Whether the siblings have the ranks they must have."""
        inside = set(paths)
        return not self.consecutive or all(p[-1] == 1 or (*p[:-1], p[-1] - 1) in inside for p in inside)

    def _weight(self, path: Path) -> Floats:
        """Probability that a node is accepted by a call that starts at each position."""
        weight = np.ones(self.laws.starts)
        for depth, rank in enumerate(path, start=1):
            weight = self.laws.times(weight, depth, rank)
        return weight


def _next_sibling(path: Path) -> Path:
    return (*path[:-1], path[-1] + 1)


def _searched_laws(rule: RankRule, columns: Columns, nodes: int) -> Floats:
    """The rank laws from which a tree of so many nodes is searched: all ranks and depths that are known."""
    return rule.path_laws(columns, min(nodes, rule.known_ranks(columns, RECORDED_RANKS)), within(columns, nodes))


def scored_parts(
    trace: Trace, rule: RankRule, wanted: BestTree, parts: int = PARTS
) -> Iterator[tuple[Tree, TextCalls]]:
    """The tree that was found without a part of the prompts, and the calls of their texts; one prompt with its own."""
    law, search = _search(trace, rule, wanted)
    for texts, rows, tree in _cross_fitted(law, trace.lengths, Prompts(trace.texts).folds(parts), search):
        yield tree, calls_of_laws(PathLaws(law[rows]), tree, trace.lengths[texts])[0]


@dataclass(frozen=True)
class SearchedTree:
    """The tree found on all prompts, and the calls of each text with a tree that was found on other prompts.

    `first` ``[texts]`` is the sum of P(tau >= 1) over positions. With one prompt nothing is `held_out`.
    """

    tree: Tree
    calls: TextCalls
    first: Floats
    held_out: bool


def _searched_trees(
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
    of_parts = [tree for _, _, tree in _cross_fitted(law, sample.lengths, part, search)]
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
    sums, done = np.zeros((len(trees), 3, len(part))), 0
    sizes = [each.nodes for each in wanted]
    for block in trace.blocks(columns_of(rule, [], trace.columns)):
        here = slice(done, done := done + len(block.texts))
        laws = [_searched_laws(rule, block.columns, nodes) for nodes in (min(sizes), max(sizes))]
        for number in np.unique(part[here]):
            texts = part[here] == number
            rows, lengths = np.repeat(texts, block.lengths), block.lengths[texts]
            of_part = [PathLaws(law[rows]) for law in laws]
            for scores, of_parts, nodes in zip(sums, trees, sizes, strict=True):
                law = of_part[0 if nodes == 1 else 1]  # one rank may be known better than several
                calls, first = calls_of_laws(law, of_parts[number], lengths, prefill_emits_token=prefill)
                scores[:, here][:, texts] = calls.expected, calls.full, first
    return sums


def _search(trace: Trace, rule: RankRule, wanted: BestTree) -> tuple[Floats, Callable[..., Tree]]:
    """The rank laws along the texts, and the search for a tree from some of them."""
    law = _searched_laws(rule, trace.columns, wanted.nodes)

    def search(law: Floats, lengths: NDArray[np.int64]) -> Tree:
        asked = (wanted.nodes, wanted.max_depth, rule.consecutive)
        key = (sha256(law.tobytes()).digest(), law.shape, lengths.tobytes(), *asked)
        if key not in _FOUND:
            if len(_FOUND) == _MOST_FOUND:
                _FOUND.clear()
            _FOUND[key] = text_tree(law, lengths, asked[0], max_depth=asked[1], consecutive=asked[2]).tree
        return _FOUND[key]

    return law, search
