"""S4/greedy and S4/more: the tree that is best for a uniform start does not take the fewest calls, nor a larger one."""

from __future__ import annotations

from proofs_check.prelude import *
from proofs_check.twins import path_theorem
from proofs_check.twins.rank_trees import Nodes, Path, deepest
from proofs_check.twins.text_trees import (
    ALTERNATING,
    AVERAGE,
    FEWEST,
    NEVER_COSTS,
    RANKS,
    Text,
    accepted,
    at_start,
    calls,
    certain_text,
    short_texts,
    texts,
    trees,
)
from proofs_check.twins.tree_theorem import tree_survival


def per_call(text: Text, tree: Nodes) -> Fraction:
    """Tokens per call in the long run along an endless text of two alternating positions, from the first on."""
    endless = [text[n % 2] for n in range(deepest(tree) + 2)]
    survival, most = tree_survival(endless, frozenset(tree)), deepest(tree)
    laws = [path_theorem.accepted_law(survival, n, most, n + most) for n in (0, 1)]
    mean = [sum((share * (i + 1) for i, share in enumerate(law)), Fraction(0)) for law in laws]
    other = [sum(law[0::2], Fraction(0)) for law in laws]
    shares = (other[1], other[0]) if other[0] else (Fraction(1), Fraction(0))
    return (shares[0] * mean[0] + shares[1] * mean[1]) / (shares[0] + shares[1])


def uniform_phase(text: Text, tree: Nodes) -> Fraction:
    """Tokens of a call that starts at either of two alternating positions alike."""
    endless = [text[n % 2] for n in range(deepest(tree) + 2)]
    return 1 + Fraction(1, 2) * sum(at_start(endless, node, n) for node in tree for n in (0, 1))


def endless_reading(text: Text, nodes: int) -> Compared:
    """The false reading without end effects: a tree best for a uniform phase gives as many tokens as any."""
    weights = {tree: uniform_phase(text, tree) for tree in trees(nodes, RANKS)}
    heaviest = [tree for tree, own in weights.items() if own == max(weights.values())]
    return at_least(max(per_call(text, tree) for tree in heaviest), max(per_call(text, tree) for tree in weights))


def endless_truth(text: Text, nodes: int) -> Compared:
    """The true neighbour: node by node, the heaviest for a uniform phase are the best tree for one."""
    tree: list[Path] = []
    for _ in range(nodes):
        following = [(*node, r) for node in ((), *tree) for r in range(1, RANKS + 1) if (*node, r) not in tree]
        tree.append(max(following, key=lambda node: uniform_phase(text, (node,))))
    return equal(uniform_phase(text, tuple(tree)), max(uniform_phase(text, other) for other in trees(nodes, RANKS)))


@cache
def known_calls(text: Text, tree: Nodes) -> Fraction:
    """The calls of a text, kept: a tree is met as one grown and as one to grow."""
    return calls(text, tree)


def grown_by_one(text: Text, tree: Nodes, node: Path) -> Compared:
    """False: one more node never adds calls."""
    return at_most(known_calls(text, tuple(sorted((*tree, node)))), known_calls(text, tree))


def by_length(most: int) -> Iterator[Case]:
    """By length, then nodes: texts of certain ranks 1, 2 or none, the first not 2, trees of up to 2 nodes, one more."""
    for length, nodes in product(range(1, most + 1), range(3)):
        for ranks in product((0, 1, 2), repeat=length):
            if [rank for rank in ranks if rank][:1] != [2]:  # else exchange ranks 1 and 2
                for tree in trees(nodes, RANKS):
                    following = ((*node, r) for node in ((), *tree) for r in range(1, RANKS + 1))
                    for node in (node for node in following if node not in tree):
                        yield {"text": certain_text(ranks), "tree": tree, "node": node}


ENTRIES = (
    Entry(
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
                    "along an endless text of two alternating positions it gives the most tokens per call",
                    endless_reading,
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
    ),
    Entry(
        id="S4/more",
        title="One more node for the calls of a text",
        kind="refuted",
        plain="one more node in the draft tree never adds calls (it may: it changes where later calls start)",
        latex=r"T \subset T' \;\Rightarrow\; C_{T'}(0) \le C_T(0)",
        assumptions=("given the text, ranks at different positions are independent (§7)",),
        evidence=(
            counterexample(
                Claim(NEVER_COSTS.says, grown_by_one),
                lambda _: by_length(5),
                over="first by length and nodes among texts of certain ranks, 1, 2 or none, trees of up to 2 nodes",
                true=Claim(
                    "it never lowers the accepted drafts of a start drawn uniformly",
                    lambda text, tree, node: at_least(accepted(text, (*tree, node)), accepted(text, tree)),
                ),
            ),
        ),
    ),
)
