"""S1: what a draft tree gives is the sum of its nodes' weights, the root's included."""

from __future__ import annotations

from proofs_check.algorithms.rank_laws import rank_law, top_k
from proofs_check.algorithms.tree_enumeration import (
    REJECTION,
    Joint,
    children,
    drawn_tree,
    independent_list,
    nodes_of,
    poisson_list,
    race_list,
    tree_walk,
)
from proofs_check.evidence.simulated import RACED, RANKED
from proofs_check.prelude import *
from proofs_check.theorems.trees.rank_trees import *
from simulations.counts import Share
from simulations.verdicts.predictions import Predicted
from spectheory.drafting import Batch, Chain, KAry, Shape, Tree, expected_tokens, node_weights, survival


def by_reading(pi: Pmf, tree: Nodes) -> Iterator[Compared]:
    """S1 against every way down: tokens, survival, and the probability of each node."""
    weights = {node: weight(pi, node) for node in ((), *tree)}
    ends, depths = dict.fromkeys(weights, Fraction(0)), [Fraction(0)] * (deepest(tree) + 1)
    for ranks, share in read(pi, tree).items():
        ends[ranks[:-1]] += share
    for node, node_weight in weights.items():
        depths[len(node)] += node_weight
    yield equal(sum(share * (len(node) + 1) for node, share in ends.items()), tokens(pi, tree))
    alive = [sum(share for node, share in ends.items() if len(node) >= i) for i in range(len(depths))]
    yield equal(alive, depths)
    for node in reversed(tree):
        ends[node[:-1]] += ends[node]
    yield equal(ends, weights)


def by_depth_alone(pi: Pmf, tree: Nodes) -> Compared:
    """Wrong: each node weighs what its last rank does."""
    return equal(
        sum(share * len(ranks) for ranks, share in read(pi, tree).items()), 1 + sum(pi[v[-1] - 1] for v in tree)
    )


def by_last_rank(_: str, given: Parameters) -> Iterator[Predicted]:
    """The same of simulated calls."""
    for node, path in enumerate(Tree.from_paths(given["paths"]).paths):
        share = given["rank_pmf"][path[-1] - 1]
        yield Predicted(f"P(node {node + 1} accepted)", "S1", Share("reached", node), share)


# Whole algorithms, at one pair of pmfs all along the text

WALKED: dict[str, Joint] = {"race": race_list, "poisson": poisson_list, "top-k": top_k, "independent": independent_list}


def algorithms(tree: Nodes) -> Iterator[tuple[Joint, Rule]]:
    """Rules that take this tree: the joint law of rank and output at a position, and the whole call."""
    shape = frozenset(tree)
    yield from ((joint, tree_walk(joint, shape)) for joint in WALKED.values())
    if in_order(tree):
        yield from ((joint, drawn_tree(shape, replacement=again)) for again, joint in REJECTION.items())


def by_algorithms(
    p: Pmf, q: Pmf, tree: Nodes, formula: Callable[[RankPmf, Nodes], Real] = tokens
) -> Iterator[Compared]:
    """S1 with each rule's own rank law against the mean output of its enumerated call."""
    widest = max(rank for node in tree for rank in node)
    for joint, rule in algorithms(tree):
        law = rule(lambda _: p, lambda _: q, (), deepest(tree))
        mean = sum(share * len(output) for (output, _), share in law.items())
        yield equal(mean, formula(rank_law(joint(p, q, widest), widest), tree))


# The shapes that have a name


def expansion(pi: RankPmf, branching: Path) -> Real:
    """Tokens of a k-ary expansion: the chances P(R <= b) of every depth multiply."""
    within = [sum(pi[:b]) for b in branching]
    return 1 + sum(math.prod(within[: d + 1]) for d in range(len(branching)))


def library_numbers(pi: Pmf, tree: Nodes) -> Iterator[Compared]:
    """The library's numbers of any tree."""
    shape = Tree.from_paths(tree)
    yield from described(shape, tree)
    yield computed(expected_tokens(shape, floats(pi)), tokens(pi, tree))
    for i, alive in enumerate(survival(shape, floats(pi)).tolist(), 1):
        yield computed(alive, sum(weight(pi, node) for node in tree if len(node) == i))
    for node, computed_weight in zip(shape.paths, node_weights(shape, floats(pi)).tolist(), strict=True):
        yield computed(computed_weight, weight(pi, node))


def described(shape: Shape, tree: Nodes) -> Iterator[Compared]:
    """What a shape says of itself: nodes, depth, largest rank, and the tokens of each draft pass."""
    inner = [node for node in nodes_of(frozenset(tree)) if children(frozenset(tree), node)]
    yield equal(tuple(sorted(shape.tree().paths)), tuple(sorted(tree)))
    yield computed(shape.nodes, len(tree))
    yield computed(shape.depth, deepest(tree))
    yield computed(shape.max_rank, max(rank for node in tree for rank in node))
    yield equal(shape.passes, tuple(sum(len(node) == d for node in inner) for d in range(deepest(tree))))


def named(pi: Pmf, branching: Path, formula: Callable[[RankPmf, Path], Real] = expansion) -> Iterator[Compared]:
    """The library's k-ary expansion, and the chain or batch that it is."""
    shapes: list[Shape] = [KAry(branching)]
    shapes += [Chain(len(branching))] if max(branching) == 1 else []
    shapes += [Batch(*branching)] if len(branching) == 1 else []
    for shape in shapes:
        yield from described(shape, expanded(branching))
        yield computed(expected_tokens(shape, floats(pi)), formula(pi, branching))


BRANCHINGS: tuple[Path, ...] = (*((1,) * k for k in range(1, 7)), (2,), (3,), (2, 2), (3, 1, 2), (1, 1, 3, 1))


# The proof: a tree is grown node by node, parents first


GROWN: tuple[Step, ...] = (
    ADD_A_NODE,
    same(
        "the calls that end at the node or at its new child are those that ended at the node, so P(tau >= i) changes "
        "at i = d+1 alone, by wx: it is the sum of the weights of depth i",
        lambda w, c, x: (w * (1 - c - x) + w * x, w * (1 - c)),
    ),
    same(
        "a chain of one node more: the sum of a^i to k, (1 - a^(k+1))/(1 - a), grows by the new node's a^(k+1)",
        lambda a, k: ((1 - a ** (k + 2)) / (1 - a) - (1 - a ** (k + 1)) / (1 - a), a ** (k + 1)),
        integers=("k",),
    ),
)

READING = Claim("tokens per call, P(tau >= i) and the probability of each node are sums and products of pi", by_reading)

S1 = Entry(
    id="S1",
    title="What a draft tree gives",
    kind="identity",
    plain="E[tokens per call] = sum of pi(v) over the tree, root included; P(tau >= i) = the sum over depth i; "
    "adding a node gains its pi(v)",
    latex=r"E[\text{tokens}] = \sum_{v\in T\cup\{\text{root}\}} \pi(v),\quad \pi(v)=\prod_j P(R=r_j(v)),\quad "
    r"P(\tau\ge i)=\sum_{v:\,\text{depth } i}\pi(v)",
    source=("kobus2025", "miao2024specinfer"),
    assumptions=(
        "the ranks along the text are i.i.d. with one law pi whatever the tree (not so for k-SEQ and Gumbel lists)",
    ),
    calculators=public("drafting", "expected_tokens node_weights survival Shape Tree Chain Batch KAry"),
    evidence=(
        proof("by induction over the nodes of any tree, any number of ranks", GROWN),
        exact(
            READING,
            lambda effort: [*trees_of(effort.pick(3, 5)), *trees_of(6, [UNSORTED], least=4)],
            over="every tree of up to 3 nodes on ranks 1 to 3 with 6 laws of 4 letters, of up to 6 with one of 3",
            wrong=Claim("a node weighs what its last rank does", by_depth_alone),
        ),
        exact(
            Claim("the mean output of SpecInfer's, Sequoia's, top-k and race trees is S1's sum", by_algorithms),
            lambda effort: with_each(
                cases.pairs(2, effort.pick(3, 5)), tree=(tree for nodes in (1, 2, 3) for tree in all_trees(nodes, 2))
            ),
            over="whole calls enumerated, every pair on 2 tokens of denominator up to 3, trees of up to 3 nodes",
            wrong=Claim(
                "the root does not count",
                lambda p, q, tree: by_algorithms(p, q, tree, lambda pi, tree: tokens(pi, tree) - 1),
            ),
        ),
        agreement(
            Claim("expected_tokens, survival and node_weights are S1's, and a tree's size is its own", library_numbers),
            lambda _: trees_of(3, least=1),
            over="every tree of up to 3 nodes on ranks 1 to 3, 6 laws",
            wrong=Claim(
                "expected_tokens leaves the recovered or bonus token out",
                lambda pi, tree: computed(
                    expected_tokens(Tree.from_paths(tree), floats(pi)), sum(weight(pi, node) for node in tree)
                ),
            ),
        ),
        agreement(
            Claim("expansions give 1 + P(R<=b1) + P(R<=b1) P(R<=b2) + ...; chains and batches are such", named),
            lambda _: all_of(pi=LAWS, branching=BRANCHINGS),
            over="chains of up to 6, batches of up to 3, and mixed ones, 6 laws",
            wrong=Claim(
                "the chances of the depths add up",
                lambda pi, branching: named(pi, branching, lambda pi, bs: 1 + sum(sum(pi[:b]) for b in bs)),
            ),
        ),
        searched(READING, drawn_trees, wrong=Claim("a node weighs what its last rank does", by_depth_alone)),
        simulated(
            "accepted drafts and nodes of calls down trees, ranks from laws",
            RANKED,
            stated("S1"),
            wrong=("a node weighs what its last rank does", by_last_rank),
        ),
        simulated(
            "the same with the ranks of races between two pmfs",
            RACED,
            stated("S1"),
            wrong=("with the target as the draft", stated("S1", draft=RACED[0][1]["target"])),
        ),
    ),
)
