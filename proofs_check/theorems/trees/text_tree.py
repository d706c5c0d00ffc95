"""S4: draft trees along a text whose rank law changes: what is best for a start drawn uniformly, and the calls."""

from __future__ import annotations

from proofs_check.algorithms.tree_enumeration import nodes_of, tree_walk
from proofs_check.library import strategies
from proofs_check.prelude import *
from proofs_check.theorems.trees.rank_trees import *
from proofs_check.twins import path_theorem
from proofs_check.twins.tree_theorem import tree_survival, visits
from spectheory.prediction.best_tree import FoundTree, text_tree

# The uniform start


def by_walking(text: Text, tree: Nodes, weight: Callable[[Text, Path], Real] = average) -> Compared:
    """Mean accepted drafts from the enumerated call of every start, against the sum of the nodes' weights."""
    shape = frozenset(tree)
    walk = tree_walk(lambda law, _, __: dict(zip(((r, r) for r in range(len(law))), law, strict=True)), shape)
    letters = [(1 - sum(row), *row) for row in text] + [(Fraction(1),) + (Fraction(0),) * WIDEST] * deepest(tree)
    mean = Fraction(0)
    for n in range(len(text)):
        law = walk(lambda prefix, n=n: letters[n + len(prefix)], lambda _: (), (), deepest(tree))  # type: ignore[misc]
        mean += Fraction(1, len(text)) * sum(share * (len(output) - 1) for (output, _), share in law.items())
    return equal(mean, sum(weight(text, node) for node in tree))


# Calls


def worth(text: Text, tree: Nodes, node: Path) -> Compared:
    """What one more node changes: where calls start, how often it is accepted, and what one token more is worth."""
    depth, more = len(node), (*tree, node)
    left = [calls(text[n:], more) for n in range(len(text))] + [Fraction(0)] * (depth + 1)
    starts = visits(tree_survival(text, frozenset(tree)), deepest(tree), len(text))
    gain = sum(f * at_start(text, node, n) * (left[n + depth] - left[n + depth + 1]) for n, f in enumerate(starts))
    return equal(calls(text, tree) - calls(text, more), gain)


def library_tree(texts: Sequence[Text], nodes: int, consecutive: bool) -> Iterator[Compared]:
    """text_tree: its calls are those of its tree, and no more than those of the tree where it begins."""
    law = np.array([floats(row) for text in texts for row in text])
    best_tree: FoundTree = text_tree(law, np.array([len(text) for text in texts]), nodes, consecutive=consecutive)
    tree = tuple(best_tree.tree.paths)
    needed = sum(calls(text, tree) for text in texts)
    yield computed(best_tree.calls, needed)
    yield at_most(len(tree), nodes)
    if consecutive:
        yield equal(int(in_order(tree)), 1)
        return
    weights = {t: sum(accepted(text, t) * len(text) for text in texts) for t in trees(nodes, WIDEST)}
    begun = [sum(calls(text, t) for text in texts) for t, w in weights.items() if w == max(weights.values())]
    nearest = min(begun, key=lambda exact: abs(best_tree.greedy_calls - exact))
    yield computed(best_tree.greedy_calls, nearest)
    yield at_most(needed, nearest)
    yield at_least(
        needed, min(sum(calls(text, t) for text in texts) for k in range(1, nodes + 1) for t in trees(k, WIDEST))
    )


BETTER: Nodes = ((2,), (2, 1), (2, 1, 2))
"""The tree for them: along the positions as they come."""


def extended(most: int) -> Iterator[Case]:
    """Texts with every tree of up to two nodes and every node it may get."""
    certain = (certain_text(ranks) for ranks in product((1, 2), repeat=5))
    for text in (*texts(2, most), *certain):
        for tree in (tree for k in range(3) for tree in trees(k, WIDEST)):
            for node in ((*parent, r) for parent in ((), *tree) for r in range(1, WIDEST + 1)):
                if node not in tree:
                    yield {"text": text, "tree": tree, "node": node}


def searched_for(seeds: range) -> Iterator[Case]:
    """One or two random texts, trees of up to three nodes."""
    for seed in seeds:
        rng = random.Random(seed)
        lengths = [rng.randint(3, 8) for _ in range(1 + seed % 2)]
        random_texts = tuple(tuple(cases.random_pmf(rng, WIDEST + 1, 4)[:WIDEST] for _ in range(n)) for n in lengths)
        yield {"texts": random_texts, "nodes": 1 + seed % 3, "consecutive": seed % 5 == 4}


def drawn_texts() -> st.SearchStrategy[dict[str, Any]]:
    """Texts of up to 4 positions, trees of up to 4 nodes."""
    rows = st.lists(strategies.exact_pmfs(3), min_size=1, max_size=4).map(tuple)
    grown = strategies.draft_trees(4, WIDEST).map(lambda tree: tuple(nodes_of(tree)[1:]))
    return st.fixed_dictionaries({"text": rows, "tree": grown})


def example(text: Text, nodes: int, tree: Nodes = BETTER) -> Iterator[Compared]:
    """The alternating example: 20.0 calls by the greedy tree, 10.4 by the best of all trees, which text_tree finds."""
    best_tree = text_tree(np.array([floats(row) for row in text]), np.array([len(text)]), nodes)
    greedy, best = calls(text, greedy_tree(text, nodes)), calls(text, tree)
    yield equal((round(10 * greedy), round(10 * best)), (200, 104))
    yield equal(best, min(calls(text, tree) for tree in trees(nodes, WIDEST)))
    yield computed(best_tree.calls, best)
    yield computed(best_tree.greedy_calls, greedy)


UNIFORM: tuple[Step, ...] = (
    ADD_A_NODE,
    valid(
        "that holds at every start, with the start's own probabilities; summed over the starts, a node gains its "
        "average weight, and start by start a child adds w x <= w: on average it weighs no more than its parent",
        lambda child, parent, w, x: at_most(child + w * x, parent + w),
        lambda child, parent, w, x: [child <= parent, w >= 0, x >= 0, x <= 1],
    ),
    *EXCHANGE,
)

GAIN: tuple[Step, ...] = (
    same(
        "a node accepted with probability w at depth i moves w from tau = i-1 to tau = i; with a the sum of "
        "P(tau=j) C(n+j+1) before, b the same with the calls C' after, x = C'(n+i), y = C'(n+i+1): "
        "C(n) - C'(n) = (a - b) + w (x - y)",
        lambda a, b, w, x, y: ((1 + a) - (1 + b - w * x + w * y), (a - b) + w * (x - y)),
    ),
    same(
        "so D = C - C' has D(n) = sum P(n to m) D(m) + w (x - y); in sum f(n) D(n) - sum f(n) P(n to m) D(m), f(n) "
        "the calls that start at n, D(m) has f(m) - sum f(n) P(n to m): 1 at the first start, else 0; D(0) is left",
        lambda first, into, D: ((first + into) * D - into * D, first * D),
    ),
)
"""C(0) - C'(0) = sum of f(n) w(n) (C'(n+i) - C'(n+i+1))."""


# S4/greedy and S4/more: the tree that is best for a uniform start does not take the fewest calls, nor a larger one.


def per_call(text: Text, tree: Nodes) -> Fraction:
    """Tokens per call in the long run along an endless text of two alternating positions, from the first on."""
    endless = [text[n % 2] for n in range(deepest(tree) + 2)]
    survival, most = tree_survival(endless, frozenset(tree)), deepest(tree)
    laws = [path_theorem.accepted_law(survival, n, most, n + most) for n in (0, 1)]
    mean = [total(share * (i + 1) for i, share in enumerate(law)) for law in laws]
    other = [total(law[0::2]) for law in laws]
    shares = (other[1], other[0]) if other[0] else (Fraction(1), Fraction(0))
    return (shares[0] * mean[0] + shares[1] * mean[1]) / (shares[0] + shares[1])


def uniform_phase(text: Text, tree: Nodes) -> Fraction:
    """Tokens of a call that starts at either of two alternating positions alike."""
    endless = [text[n % 2] for n in range(deepest(tree) + 2)]
    return 1 + Fraction(1, 2) * sum(at_start(endless, node, n) for node in tree for n in (0, 1))


def endless_reading(text: Text, nodes: int) -> Compared:
    """The false reading without end effects: a tree best for a uniform phase gives as many tokens as any."""
    weights = {tree: uniform_phase(text, tree) for tree in trees(nodes, WIDEST)}
    heaviest = [tree for tree, weight in weights.items() if weight == max(weights.values())]
    return at_least(max(per_call(text, tree) for tree in heaviest), max(per_call(text, tree) for tree in weights))


def endless_truth(text: Text, nodes: int) -> Compared:
    """The true neighbour: node by node, the heaviest for a uniform phase are the best tree for one."""
    tree: list[Path] = []
    for _ in range(nodes):
        following = [(*node, r) for node in ((), *tree) for r in range(1, WIDEST + 1) if (*node, r) not in tree]
        tree.append(max(following, key=lambda node: uniform_phase(text, (node,))))
    return equal(uniform_phase(text, tuple(tree)), max(uniform_phase(text, other) for other in trees(nodes, WIDEST)))


@cache
def known_calls(text: Text, tree: Nodes) -> Fraction:
    """The calls of a text, kept: a tree is met as one grown and as one to grow."""
    return calls(text, tree)


def by_length(most: int) -> Iterator[Case]:
    """By length, then nodes: texts of certain ranks 1, 2 or none, the first not 2, trees of up to 2 nodes, one more."""
    for length, nodes in product(range(1, most + 1), range(3)):
        for ranks in product((0, 1, 2), repeat=length):
            if [rank for rank in ranks if rank][:1] != [2]:  # else exchange ranks 1 and 2
                for tree in trees(nodes, WIDEST):
                    following = ((*node, r) for node in ((), *tree) for r in range(1, WIDEST + 1))
                    for node in (node for node in following if node not in tree):
                        yield {"text": certain_text(ranks), "tree": tree, "node": node}


S4 = Entry(
    id="S4",
    title="Draft trees along a text",
    kind="optimality",
    plain="with P(R=r|x) along a text, the weight of a node is the mean over the starts of the product of its "
    "ranks' probabilities; the k heaviest are the best tree for a start drawn uniformly; one more node, of depth "
    "i, changes the calls by -sum f(n) w(n) (C'(n+i) - C'(n+i+1)), and may add calls",
    latex=r"\bar w_v = \frac1N\sum_n \prod_{j\le i} P(R_{n+j}=r_j(v)\mid x_{n+j}),\qquad "
    r"C(0)-C'(0) = \sum_n f(n)\,w_v(n)\,\big(C'(n+i)-C'(n+i+1)\big)",
    source=("kobus2025",),
    assumptions=(
        "given the text, ranks at different positions are independent (§7)",
        "optimal for a start drawn uniformly along the text; calls start elsewhere",
    ),
    calculators=("spectheory.prediction.best_tree.text_tree", "spectheory.prediction.best_tree.FoundTree"),
    evidence=(
        proof("S1 at every start, and the exchange of S2 on the averages", UNIFORM),
        proof("what one more node changes, from the recursion of the calls", GAIN),
        exact(
            Claim("mean accepted drafts from a uniform start are the sum of the average weights", by_walking),
            lambda effort: all_of(
                text=(*texts(2, 2), *texts(3, effort.pick(1, 2))),
                tree=(tree for k in range(1, 4) for tree in trees(k, WIDEST)),
            ),
            over="the call of every start enumerated, 2 positions of denominator 2, 3 of certain ranks, trees of "
            "up to 3 nodes",
            wrong=Claim(
                "they are the sum of products of average laws",
                partial(by_walking, weight=lambda text, node: math.prod(average(text, (rank,)) for rank in node)),
            ),
        ),
        exact(
            AVERAGE,
            lambda effort: short_texts(3, 3, effort.pick(2, 3)),
            over="against every tree of up to 3 nodes, every text of up to 3 positions, denominators up to 2",
            wrong=FEWEST,
        ),
        exact(
            Claim("one more node changes the calls by f(n) w(n) (C'(n+i) - C'(n+i+1)), summed over starts", worth),
            lambda effort: extended(effort.pick(2, 3)),
            over="every tree of up to 2 nodes and one more, texts of 2 positions of denominator 2, and of 5 with "
            "certain ranks",
            wrong=NEVER_COSTS,
        ),
        agreement(
            Claim(
                "text_tree's calls are those of its tree, between the best tree's and the greedy one's", library_tree
            ),
            lambda effort: searched_for(range(effort.pick(30, 200))),
            over="one or two random texts of 3 to 8 positions, trees of up to 3 nodes tried one by one",
            wrong=Claim(
                "text_tree's calls are the tokens over the mean tokens of a uniform start",
                lambda texts, nodes, consecutive: computed(
                    text_tree(
                        np.array([floats(row) for text in texts for row in text]),
                        np.array([len(text) for text in texts]),
                        nodes,
                    ).calls,
                    sum(len(text) / (1 + accepted(text, greedy_tree(text, nodes))) for text in texts),
                ),
            ),
        ),
        exact(
            Claim("two alternating positions, N = 40, k = 3: greedy 20.0 calls, 2, 2-1, 2-1-2 the best, 10.4", example),
            lambda _: [{"text": ALTERNATING, "nodes": 3}],
            over="every tree of 3 nodes",
            wrong=Claim("so is the chain of rank 2", partial(example, tree=((2,), (2, 2), (2, 2, 2)))),
        ),
        searched(
            Claim(
                "no tree accepts more from a uniform start than the heaviest nodes by average weight",
                lambda text, tree: at_most(accepted(text, tree), accepted(text, greedy_tree(text, len(tree)))),
            ),
            drawn_texts,
            spaces=(
                Space(
                    3 * (WIDEST + 1),
                    lambda x: {"text": tuple(map(softmax, x.reshape(3, WIDEST + 1))), "tree": ((1,), (1, 2))},
                    "text",
                ),
            ),
            wrong=Claim(
                "no tree takes fewer calls than those nodes",
                lambda text, tree: at_most(calls(text, greedy_tree(text, len(tree))), calls(text, tree)),
            ),
        ),
    ),
)

S4_GREEDY = Entry(
    id="S4/greedy",
    title="The heaviest average nodes for the calls of a text",
    kind="refuted",
    plain="the tree of the k heaviest average weights takes the fewest calls C(0) of all trees of k nodes",
    latex=r"T \in \operatorname{argmax}_{|T|=k} \sum_{v\in T}\bar w_v \Rightarrow C_T(0) = \min_{|T'|=k} C_{T'}(0)",
    assumptions=("given the text, ranks at different positions are independent (§7)",),
    evidence=(
        counterexample(
            FEWEST,
            lambda _: short_texts(2, 2, 2),
            over="first by length, nodes and denominator: no start at the last position is ever worth a draft",
            true=AVERAGE,
        ),
        counterexample(
            Claim(
                "along an endless text of two alternating positions it gives the most tokens per call", endless_reading
            ),
            lambda _: ({"text": text, "nodes": 1} for d in range(1, 6) for text in texts(2, d)),
            over="an endless text, one node, first by denominator: an accepted draft keeps the phase",
            true=Claim("it gives the most tokens for a call at both positions", endless_truth),
        ),
        counterexample(
            FEWEST,
            lambda _: [{"text": ALTERNATING, "nodes": 3}],
            over="two alternating positions, N = 40, k = 3: 20.0 calls where 10.4 would do",
            true=AVERAGE,
        ),
    ),
)

S4_MORE = Entry(
    id="S4/more",
    title="One more node for the calls of a text",
    kind="refuted",
    plain="one more node in the draft tree never adds calls (it may: it changes where later calls start)",
    latex=r"T \subset T' \;\Rightarrow\; C_{T'}(0) \le C_T(0)",
    assumptions=("given the text, ranks at different positions are independent (§7)",),
    evidence=(
        counterexample(
            Claim(
                NEVER_COSTS.says,
                lambda text, tree, node: at_most(
                    known_calls(text, tuple(sorted((*tree, node)))), known_calls(text, tree)
                ),
            ),
            lambda _: by_length(5),
            over="first by length and nodes among texts of certain ranks, 1, 2 or none, trees of up to 2 nodes",
            true=Claim(
                "it never lowers the accepted drafts of a start drawn uniformly",
                lambda text, tree, node: at_least(accepted(text, (*tree, node)), accepted(text, tree)),
            ),
        ),
    ),
)
