"""Draft trees under i.i.d. ranks: every small one, what its nodes weigh, and the walk down it, in any arithmetic."""

from __future__ import annotations

import heapq

from proofs_check.algorithms.tree_enumeration import nodes_of, tree_walk
from proofs_check.forms.divergences import entropy
from proofs_check.library import strategies
from proofs_check.prelude import *
from proofs_check.twins import path_theorem
from proofs_check.twins.tree_theorem import tree_survival

Path = tuple[int, ...]
Nodes = tuple[Path, ...]
"""A draft tree in a case: its nodes but for the root, parents first."""

RankPmf = Sequence[Real]
"""P(R = r), r = 1, 2, ...; where it makes one in all, its last letter may stand for all later ranks."""


def all_trees(nodes: int, ranks: int) -> list[Nodes]:
    """Every tree of so many nodes whose ranks are at most `ranks`."""
    trees: set[frozenset[Path]] = {frozenset()}
    for _ in range(nodes):
        trees = {
            tree | {(*node, rank)}
            for tree in trees
            for node in [(), *tree]
            for rank in range(1, ranks + 1)
            if (*node, rank) not in tree
        }
    return sorted(tuple(nodes_of(tree)[1:]) for tree in trees)


def in_order(tree: Nodes) -> bool:
    """Whether siblings have ranks 1..m, as recursive rejection tries them."""
    return all(node[-1] == 1 or (*node[:-1], node[-1] - 1) in tree for node in tree)


def weight(pi: RankPmf, node: Path) -> Real:
    """The product of the ranks' probabilities on the way to a node."""
    return math.prod(pi[rank - 1] for rank in node)


def tokens(pi: RankPmf, tree: Nodes) -> Real:
    """S1: the weights of all nodes and of the root."""
    return 1 + sum(weight(pi, node) for node in tree)


def read(pi: Pmf, tree: Nodes) -> dict[Path, Fraction]:
    """The law of the ranks a call reads, the last of which leads out of the tree, by walking every way down."""
    walk = tree_walk(lambda law, _, __: {(r, r): share for r, share in enumerate(law, 1)}, frozenset(tree))
    law = walk(lambda _: pi, lambda _: pi, (), deepest(tree))
    return {ranks: share for (ranks, _), share in law.items()}


def deepest(tree: Nodes) -> int:
    """The most drafts a call can accept."""
    return max(map(len, tree), default=0)


def expanded(branching: Path) -> Nodes:
    """The nodes of a k-ary expansion."""
    levels = (product(*(range(1, b + 1) for b in branching[:d])) for d in range(1, len(branching) + 1))
    return tuple(node for level in levels for node in level)


# Cases

LAWS: tuple[Pmf, ...] = tuple(
    map(pmf_of, ((4, 2, 1, 1), (1, 3, 2, 1), (0, 1, 0, 0), (1, 0, 1, 1), (1, 1, 1, 0), (1, 1, 1, 97)))
)
"""Laws of four letters: falling and dyadic, not in order, certain, with gaps, uniform, and mostly out of reach."""

UNSORTED: Pmf = (Fraction(1, 7), Fraction(4, 7), Fraction(2, 7))
"""One law of three letters, for the many trees of four nodes and more."""


def trees_of(most: int, laws: Sequence[Pmf] = LAWS, *, least: int = 0) -> Iterator[Case]:
    """Every law with every tree on ranks 1 to 3 of up to `most` nodes, small trees first."""
    for nodes in range(least, most + 1):
        for tree, pi in product(all_trees(nodes, 3), laws):
            yield {"pi": pi, "tree": tree}


def drawn_trees() -> st.SearchStrategy[dict[str, Any]]:
    """Trees of up to 6 nodes, laws of any spread."""
    trees = strategies.draft_trees(6, 3).map(lambda tree: tuple(nodes_of(tree)[1:]))
    return st.fixed_dictionaries({"pi": st.integers(4, 5).flatmap(strategies.exact_pmfs), "tree": trees})


def law_space(letters: int, tree: Nodes) -> Space:
    """The laws of so many letters, as the softmax of a vector, with one tree."""
    return Space(letters, lambda x: {"pi": softmax(x), "tree": tree}, "pi")


# The exit leaf of a draft tree and the channel bound on tokens per call (T1).


def exits(pi: RankPmf, tree: Nodes) -> dict[Path, Real]:
    """The law of the exit leaf: a node, and the letter by which a call leaves it."""
    inside = {(), *tree}
    leaves = ((*node, r) for node in ((), *tree) for r in range(1, len(pi) + 1) if (*node, r) not in inside)
    return {leaf: weight(pi, leaf) for leaf in leaves}


def exit_count(letters: int, nodes: int) -> int:
    """The number of exits of a tree of so many nodes."""
    return (nodes + 1) * (letters - 1) + 1


def log_exits(pi: RankPmf, tree: Nodes) -> Real:
    """Its logarithm."""
    return log(exit_count(len(pi), len(tree)))


def channel(pi: RankPmf, tree: Nodes) -> Compared:
    """T1 without a division: E[tokens] H(R) <= log((k+1)(A-1)+1)."""
    return at_most(tokens(pi, tree) * entropy(pi), log_exits(pi, tree))


# Steps about draft trees that several statements share.


ADD_A_NODE: Step = same(
    "the root alone gives one token, its weight; a node of weight w and depth d, whose children have probability c "
    "together, ends a call with probability w(1-c), at d+1 tokens; a new child of rank probability x takes wx of it, "
    "ends calls with wx, at d+2 tokens, and nothing else changes: E[tokens] grows by the new node's weight wx",
    lambda w, c, x, d: (w * (1 - c - x) * (d + 1) + w * x * (d + 2) - w * (1 - c) * (d + 1), w * x),
)

EXCHANGE: tuple[Step, ...] = (
    valid(
        "w <= (w - t)+ + t for every t, so k nodes weigh at most the sum of (w - t)+ over them, hence over all nodes, "
        "plus k t",
        lambda w, t: (at_most(w, positive_part(w - t) + t), at_least(positive_part(w - t), 0)),
    ),
    valid(
        "let t be the weight of the k-th node of the order: each of the first k has (w - t)+ + t = w ...",
        lambda w, t: equal(positive_part(w - t) + t, w),
        lambda w, t: [w >= t],
    ),
    valid(
        "... and every other one (w - t)+ = 0: the bound is the sum of the first k, and no k nodes weigh more",
        lambda w, t: equal(positive_part(w - t), 0),
        lambda w, t: [w <= t],
    ),
)
"""The first k of an order by weight weigh the most, whatever the weights."""


# The best draft tree of a size, three ways: by trying every tree, by a heap, and by a dynamic programme.


RANKS = 3
"""Largest rank of the trees that are tried one by one."""


def heaviest_tree(pi: RankPmf, nodes: int, depth: int | None = None, width: int | None = None) -> Nodes:
    """The heaviest nodes of positive weight from a heap, of equal ones the shallowest, within the tree's limits."""
    nodes_so_far: list[Path] = []
    heap: list[tuple[Real, int, Path]] = [(-1, 0, ())]
    while heap and len(nodes_so_far) <= nodes:
        negative, deep, node = heapq.heappop(heap)
        if width is not None and sum(len(other) == deep for other in nodes_so_far) == width:
            continue
        nodes_so_far.append(node)
        if depth is None or deep < depth:
            below = ((negative * share, deep + 1, (*node, rank)) for rank, share in enumerate(pi, 1) if share > 0)
            for child in below:
                heapq.heappush(heap, child)
    return tuple(nodes_so_far[1:])


def heaviest_set(pi: RankPmf, nodes: int, depth: int | None = None) -> Real:
    """The most that any set of so many nodes weighs, tree or not, with the root's 1."""
    depths = range(1, 1 + (depth or nodes))
    paths = (path for d in depths for path in product(range(1, len(pi) + 1), repeat=d))
    return 1 + sum(sorted((weight(pi, path) for path in paths), reverse=True)[:nodes])


Limits = tuple[int, int, int, bool]
"""Nodes, depth, width of a tree, and whether its siblings have ranks 1..m."""


@cache
def described_trees(nodes: int) -> list[tuple[Nodes, Limits]]:
    """Every tree of so many nodes on ranks 1 to 3, and what limits may speak of."""

    def limits(tree: Nodes) -> Limits:
        depths = [len(node) for node in tree]
        return len(tree), deepest(tree), max(map(depths.count, depths)), in_order(tree)

    return [(tree, limits(tree)) for tree in all_trees(nodes, RANKS)]


@cache
def bests(pi: Pmf, nodes: int) -> dict[Limits, Fraction]:
    """The most tokens of the trees of so many nodes that are alike in all that limits may speak of."""
    weigh = cache(partial(weight, pi))
    best: dict[Limits, Fraction] = {}
    for tree, limits in described_trees(nodes):
        best[limits] = max(best.get(limits, Fraction(0)), 1 + total(map(weigh, tree)))
    return best


def most_tokens(
    pi: Pmf, nodes: int, depth: int | None = None, width: int | None = None, consecutive: bool = False
) -> Fraction:
    """The most tokens of any tree of up to so many nodes within the limits, by trying every tree."""
    return max(
        value
        for size in range(1, nodes + 1)
        for (_, deep, wide, ordered), value in bests(pi, size).items()
        if deep <= (depth or nodes) and wide <= (width or nodes) and ordered >= consecutive
    )


def programme(pi: RankPmf, nodes: int, depth: int | None = None) -> Real:
    """The most tokens of a tree of up to so many nodes whose siblings have ranks 1..m, subtree by subtree."""

    @cache
    def from_rank(rank: int, below: int, deep: int) -> Real:
        """The most of up to `below` nodes under a node of weight 1: children of this rank and later ones."""
        options = [0]
        if rank < len(pi) and deep:
            for size in range(1, below + 1):
                subtree = 1 + from_rank(0, size - 1, deep - 1)
                options.append(pi[rank] * subtree + from_rank(rank + 1, below - size, deep))
        return max(options)

    return 1 + from_rank(0, nodes, depth or nodes)


def one_by_one(pi: RankPmf, nodes: int, depth: int | None) -> Real:
    """Wrong: always the heaviest node that may come next."""
    tree: list[Path] = []
    for _ in range(nodes):
        inside = [(), *tree]
        ranks = {node: 1 + sum(other[:-1] == node for other in tree) for node in inside}
        following = [(*node, r) for node, r in ranks.items() if r <= len(pi) and len(node) < (depth or nodes)]
        tree += [max(following, key=lambda node: weight(pi, node))] if following else []
    return tokens(pi, tuple(tree))


# Draft trees along a text whose rank law changes: weights on average, the calls, and small texts as cases.


Text = Sequence[RankPmf]
"""The rank law at each position: P(R = r | text), r = 1, 2, ...; what is missing to one is no draft's."""

WIDEST = 2
"""Largest rank of the trees that are tried one by one."""


def at_start(text: Text, node: Path, n: int) -> Real:
    """The probability that a call which starts at n accepts a node; none past the end of the text."""
    return math.prod(text[n + j][rank - 1] for j, rank in enumerate(node)) if n + len(node) <= len(text) else 0


def average(text: Text, node: Path) -> Real:
    """S4's weight of a node: the mean over the starts."""
    return sum(at_start(text, node, n) for n in range(len(text))) * Fraction(1, len(text))


def accepted(text: Text, tree: Nodes) -> Real:
    """Accepted drafts of a call whose start is drawn uniformly: the sum of the weights."""
    return sum(average(text, node) for node in tree)


def greedy_tree(text: Text, nodes: int) -> Nodes:
    """The heaviest nodes by their averages, from a heap."""
    nodes_so_far: list[Path] = []
    heap: list[tuple[Real, int, Path]] = [(-1, 0, ())]
    while len(nodes_so_far) <= nodes:
        _, deep, node = heapq.heappop(heap)
        nodes_so_far.append(node)
        for rank in range(1, len(text[0]) + 1):
            heapq.heappush(heap, (-average(text, (*node, rank)), deep + 1, (*node, rank)))
    return tuple(nodes_so_far[1:])


def calls(text: Text, tree: Nodes) -> Fraction:
    """C(0) of the path theorem: the expected calls the text takes."""
    shape = frozenset(tree)
    return path_theorem.calls(tree_survival(text, shape), deepest(tree), len(text))[0]


trees = cache(all_trees)


def heaviest_trees(text: Text, nodes: int) -> list[Nodes]:
    """All trees with the most average weight: there may be ties."""
    weights = {tree: accepted(text, tree) for tree in trees(nodes, WIDEST)}
    return [tree for tree, tree_weight in weights.items() if tree_weight == max(weights.values())]


# Cases

ALTERNATING: Text = ((Fraction(2, 10000), Fraction(9997, 10000)), (Fraction(955, 1000), Fraction(26, 1000))) * 20
"""Two positions that alternate, forty in all."""


def texts(length: int, denominator: int) -> Iterator[Text]:
    """Every text of so many positions, each with a law of ranks 1, 2 and later in multiples of 1/denominator."""
    return product([law[:WIDEST] for law in cases.grid(WIDEST + 1, denominator)], repeat=length)


def short_texts(length: int, nodes: int, denominator: int) -> Iterator[Case]:
    """By length, then nodes, then denominator."""
    sizes = product(range(1, length + 1), range(1, nodes + 1), range(1, denominator + 1))
    return ({"text": text, "nodes": k} for n, k, d in sizes for text in texts(n, d))


def best_on_average(text: Text, nodes: int) -> Compared:
    """The greedy tree against every tree of as many nodes."""
    return equal(accepted(text, greedy_tree(text, nodes)), max(accepted(text, tree) for tree in trees(nodes, WIDEST)))


def fewest_calls(text: Text, nodes: int) -> Compared:
    """The false reading: some tree with the most average weight takes as few calls as any tree."""
    return at_most(
        min(calls(text, tree) for tree in heaviest_trees(text, nodes)),
        min(calls(text, tree) for tree in trees(nodes, WIDEST)),
    )


def certain_text(ranks: Sequence[int]) -> Text:
    """A text whose ranks are what they are."""
    return tuple(tuple(Fraction(int(rank == r)) for r in range(1, WIDEST + 1)) for rank in ranks)


AVERAGE = Claim("the heaviest nodes by average weight are the best tree for a uniform start", best_on_average)

FEWEST = Claim("a tree of the k heaviest average weights takes as few calls as any tree of k nodes", fewest_calls)

NEVER_COSTS = Claim(
    "one more node never adds calls", lambda text, tree, node: at_most(calls(text, (*tree, node)), calls(text, tree))
)
