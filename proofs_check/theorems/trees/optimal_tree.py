"""S2: the best draft tree of k nodes is the k heaviest nodes; Tunstall's constant; siblings tried in order."""

from __future__ import annotations

from proofs_check.algorithms.rank_laws import rank_law
from proofs_check.algorithms.tree_enumeration import REJECTION
from proofs_check.forms.divergences import entropy
from proofs_check.prelude import *
from proofs_check.theorems.trees.rank_trees import *
from spectheory.drafting import expected_tokens, optimal_tree


def against_all_trees(pi: Pmf, nodes: int, depth: int | None, width: int | None) -> Iterator[Compared]:
    """The heap's tree against every tree, and against every set of nodes."""
    yield equal(tokens(pi, heaviest_tree(pi, nodes, depth, width)), most_tokens(pi, nodes, depth, width))
    if width is None:
        yield equal(tokens(pi, heaviest_tree(pi, nodes, depth)), heaviest_set(pi, nodes, depth))


def library_tree(pi: Pmf, nodes: int, depth: int | None, width: int | None) -> Iterator[Compared]:
    """The library's tree in fractions: within its limits, the best of its size and of every smaller one."""
    tree = optimal_tree(floats(pi), nodes, depth, max_width=width)
    paths = tuple(tree.paths)
    yield at_most(len(paths), nodes)
    yield at_most(tree.depth, depth or nodes)
    yield at_most(max(map([len(path) for path in paths].count, range(1, tree.depth + 1))), width or nodes)
    for size in range(1, len(paths) + 1):
        yield equal(tokens(pi, paths[:size]), most_tokens(pi, size, depth, width))
    yield equal(tokens(pi, paths), most_tokens(pi, nodes, depth, width))


def in_order_trees(pi: Pmf, nodes: int, depth: int | None, best: Callable[..., Real] = programme) -> Iterator[Compared]:
    """The dynamic programme, and the library's, against every tree whose siblings have ranks 1..m."""
    most = most_tokens(pi, nodes, depth, consecutive=True)
    yield equal(best(pi, nodes, depth), most)
    paths = tuple(optimal_tree(floats(pi), nodes, depth, consecutive=True).paths)
    yield equal(tokens(pi, paths), most)
    yield equal(int(in_order(paths) and deepest(paths) <= (depth or nodes) and len(paths) <= nodes), 1)


def falls(p: Pmf, q: Pmf, replacement: bool = True) -> Iterator[Compared]:
    """Recursive rejection's ranks grow no likelier."""
    law = rank_law(REJECTION[replacement](p, q, len(p)), len(p))
    yield from (at_most(after, before) for before, after in pairwise(law))


# Tunstall's constant


def within_tunstall(pi: RankPmf, tree: Nodes) -> Iterator[Compared]:
    """E[tokens] H(R) lies at most log(1/min pi) below the logarithm of the number of exits."""
    information, most = tokens(pi, tree) * entropy(pi), log_exits(pi, tree)
    least = pi[0]
    for share in pi[1:]:
        least = smaller(least, share)
    yield at_least(information, most + log(least))
    yield at_most(information, most)


def grown(effort_nodes: Sequence[int]) -> Iterator[Case]:
    """Optimal trees of growing size under laws all of whose letters can be drafted."""
    weights = ((1, 1), (3, 2), (19, 1), (2, 1, 1), (18, 1, 1), (4, 3, 2, 1), (1, 5, 2))
    for nodes, row in product(effort_nodes, weights):
        yield {"pi": pmf_of(row), "tree": heaviest_tree(pmf_of(row), nodes)}


ANY_RANK = Assumption("some rank that can be drafted has positive probability", lambda pi, **_: every([sum(pi) > 0]))


def limited(denominator: int, most: int) -> Iterator[Case]:
    """Every law, size and limit on depth and width."""
    for d in range(1, denominator + 1):
        laws = (law[:RANKS] for law in cases.grid(RANKS + 1, d))  # a letter for all later ranks, which no tree drafts
        yield from all_of(pi=laws, nodes=range(1, most + 1), depth=(None, 1, 2), width=(None, 1, 2))


LARGER: tuple[Pmf, ...] = tuple(pmf_of(row)[:RANKS] for row in ((5, 3, 2, 1), (2, 9, 1, 0), (1, 1, 1, 0)))


def larger_trees(most: int) -> Iterator[Case]:
    """A few laws with more nodes."""
    return all_of(pi=LARGER, nodes=range(4, most + 1), depth=(None, 3), width=(None,))


def unlimited_width(given: Iterable[Case]) -> Iterator[Case]:
    """The cases without a limit on width, which is left out."""
    for case in given:
        if case["width"] is None:
            yield {name: value for name, value in case.items() if name != "width"}


PARENTS_FIRST: Step = valid(
    "a child weighs w x <= w, no more than its parent: in the order of weight, the shallowest of equal ones first, "
    "parents come first, so the first k nodes of the order are a tree; of the nodes within a depth as well",
    lambda w, x: at_most(w * x, w),
    lambda w, x: [w >= 0, x >= 0, x <= 1],
)

LIMITED: tuple[Step, ...] = (
    valid(
        "of two nodes of one depth the heavier has, rank by rank, the heavier children: the heaviest of the next depth "
        "can be taken below the heaviest of this one, so the W heaviest of each depth are a tree, and the k heaviest "
        "of them weigh the most of all trees of width W",
        lambda w, v, x: at_most(v * x, w * x),
        lambda w, v, x: [v >= 0, w >= v, x >= 0],
    ),
    valid(
        "where pi falls, a sibling of lower rank weighs no less: with ties by rank the tree has siblings 1..m",
        lambda w, x, y: at_most(w * y, w * x),
        lambda w, x, y: [w >= 0, y >= 0, x >= y],
    ),
    valid(
        "recursive rejection with i.i.d. candidates has such a pi: P(R=r) is the sum of min(z, a), z the residual and "
        "a = P(R>=r) q; at the next rank z' = (z - a)+ and a' <= a",
        lambda z, a, b: at_most(smaller(positive_part(z - a), b), smaller(z, a)),
        lambda z, a, b: [z >= 0, b >= 0, a >= b],
    ),
    valid(
        "where pi grows, a tree of siblings 1..m is the root and, for each child, pi_r times its subtree: putting the "
        "best subtree of the same size and depth in its place loses nothing, so a programme over sizes finds the most",
        lambda rest, x, tree, best: at_most(rest + x * tree, rest + x * best),
        lambda rest, x, tree, best: [x >= 0, best >= tree],
    ),
)

TUNSTALL: tuple[Step, ...] = (
    valid(
        "an exit by a rank of probability x >= m from a node of weight w >= t, t the last one taken, weighs at least "
        "t m; the L exits make one, so t m L <= 1",
        lambda w, x, t, m: at_least(w * x, t * m),
        lambda w, x, t, m: [m >= 0, t >= 0, w >= t, x >= m],
    ),
    valid(
        "no exit was taken, so it weighs e <= t, and with c = m L: e c <= 1",
        lambda e, t, c: at_most(e * c, 1),
        lambda e, t, c: [e >= 0, c >= 0, e <= t, t * c <= 1],
    ),
    valid(
        "so s = log 1/e is at least log c, and e s >= e log c; summed over the exits, which make one, "
        "H(exit) >= log L + log m, and E[tokens] H(R) = H(exit) by S3",
        lambda e, s, logc: at_least(e * s, e * logc),
        lambda e, s, logc: [e >= 0, s >= logc],
    ),
)

S2 = Entry(
    id="S2",
    title="The optimal draft tree",
    kind="optimality",
    plain="of all trees of k nodes, the k heaviest nodes give the most tokens, also under limits on depth and width; "
    "log L + log(min pi) <= E[tokens] H(R) <= log L with L = (k+1)(A-1)+1 exits if all A ranks can be drafted; where "
    "siblings must have ranks 1..m a dynamic programme finds the best, and so does the heap if pi is nonincreasing",
    latex=r"\max_{|T|=k}\; \sum_{v\in T}\pi(v) = \sum_{j\le k}\pi(v_{(j)}),\qquad "
    r"E[\text{tokens}]\,H(R) \ge \log\big((k+1)(A-1)+1\big) + \log\min_r\pi_r",
    source=("kobus2025", "tunstall1967", "chen2024sequoia"),
    assumptions=(
        "the ranks along the text are i.i.d. with one law pi, in any order of size",
        "for growth as log k / H(R): all ranks can be drafted (with a letter of probability s out of reach, "
        "E[tokens] <= 1/s for every k)",
    ),
    calculators=("spectheory.drafting.optimal_tree",),
    evidence=(
        proved_in_coq(
            "the tokens of a tree, and no tree of as many nodes gives more than the greedy one, without limits",
            ("S2_tokens", "S2_frontier", "S2_heaviest", "S2_optimal"),
            wrong=("with siblings of ranks 1..m", "not_with_siblings_in_order"),
        ),
        proof(
            "the first nodes in the order of weight are a tree, and no k nodes weigh more",
            (PARENTS_FIRST, *EXCHANGE, *LIMITED),
        ),
        proof("Tunstall's constant: the exits of the optimal tree weigh alike but for a factor min pi", TUNSTALL),
        exact(
            Claim("the heaviest nodes are the best tree within the limits, and the best set", against_all_trees),
            lambda effort: [*limited(effort.pick(3, 5), 4), *larger_trees(6)],
            over="every tree of up to 4 nodes on ranks 1 to 3, every law of denominator up to 3, limits on depth "
            "and width; of up to 6 nodes for three laws",
            wrong=Claim(
                "siblings of ranks 1..m lose nothing",
                lambda pi, nodes, depth, width: equal(
                    tokens(pi, heaviest_tree(pi, nodes, depth, width)),
                    most_tokens(pi, nodes, depth, width, consecutive=True),
                ),
            ),
        ),
        exact(
            Claim("recursive rejection with i.i.d. candidates has falling rank probabilities", falls),
            lambda effort: cases.all_pairs(3, effort.pick(4, 6)),
            over="every pair on 2 and 3 tokens of denominator up to 4, candidates drawn and tried",
            wrong=Claim("without replacement too", lambda p, q: falls(p, q, replacement=False)),
        ),
        agreement(
            Claim(
                "optimal_tree keeps its limits, and its first nodes are the best tree of each size",
                library_tree,
                (ANY_RANK,),
            ),
            lambda effort: [*limited(effort.pick(3, 5), 4), *larger_trees(6)],
            over="in fractions against every tree, the same cases",
            wrong=Claim(
                "it is so with siblings of ranks 1..m",
                lambda pi, nodes, depth, width: equal(
                    tokens(pi, tuple(optimal_tree(floats(pi), nodes, depth, consecutive=True).paths)),
                    most_tokens(pi, nodes, depth),
                ),
                (ANY_RANK,),
            ),
        ),
        agreement(
            Claim(
                "the dynamic programme, and optimal_tree's, finds the best tree of siblings 1..m",
                in_order_trees,
                (ANY_RANK,),
            ),
            lambda effort: unlimited_width([*limited(effort.pick(3, 5), 4), *larger_trees(6)]),
            over="against every tree, the same laws",
            wrong=Claim(
                "the heaviest node that may come next, one by one, finds it too",
                lambda pi, nodes, depth: in_order_trees(pi, nodes, depth, one_by_one),
                (ANY_RANK,),
            ),
        ),
        certified(
            Claim("log L + log(min pi) <= E[tokens] H(R) <= log L for the optimal tree", within_tunstall),
            lambda effort: grown(effort.pick((1, 10, 100, 1000), (1, 10, 100, 1000, 10**4))),
            over="1 to 1000 nodes, seven laws",
            wrong=Claim(
                "E[tokens] H(R) >= log L",
                lambda pi, tree: at_least(tokens(pi, tree) * entropy(pi), log_exits(pi, tree)),
            ),
        ),
        agreement(
            Claim(
                "optimal_tree gives the tokens of the heap's tree",
                lambda pi, tree: computed(
                    expected_tokens(optimal_tree(floats(pi), len(tree)), floats(pi)), tokens(pi, tree)
                ),
            ),
            lambda effort: grown(effort.pick((1, 10, 100), (1, 10, 100, 1000))),
            over="1 to 100 nodes, seven laws",
            wrong=Claim(
                "a tree of one node less does",
                lambda pi, tree: computed(
                    expected_tokens(optimal_tree(floats(pi), max(1, len(tree) - 1)), floats(pi)), tokens(pi, tree)
                ),
            ),
        ),
        searched(
            Claim(
                "no tree gives more than the heaviest nodes",
                lambda pi, tree: at_most(tokens(pi, tree), tokens(pi, heaviest_tree(pi, len(tree)))),
            ),
            drawn_trees,
            spaces=(law_space(3, ((1,), (2,), (1, 1), (2, 1))), law_space(3, ((3,), (3, 3), (3, 3, 1)))),
            wrong=Claim(
                "no tree gives more than the chain of the likeliest rank",
                lambda pi, tree: at_most(tokens(pi, tree), 1 + sum(max(pi) ** i for i in range(1, len(tree) + 1))),
            ),
        ),
    ),
)
