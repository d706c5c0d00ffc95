"""S3: reading ranks down a tree loses nothing: tokens times H(R) is the entropy of the exit leaf."""

from __future__ import annotations

from collections import Counter
from itertools import chain as joined

from proofs_check.evidence.simulated_settings import RANKED
from proofs_check.forms.divergences import entropy
from proofs_check.prelude import *
from proofs_check.statement.calculus import log
from proofs_check.theorems.trees.exits import ADD_A_NODE, exits
from proofs_check.twins.rank_trees import UNSORTED, Nodes, Path, RankPmf, drawn_trees, read, tokens, trees_of
from simulations.counts.quantities import Mean
from simulations.verdicts.predictions import Predicted
from spectheory import entropy as library_entropy
from spectheory.drafting import Tree, exit_law, expected_tokens


def by_letter(pi: Pmf, tree: Nodes) -> Iterator[Compared]:
    """S3 before logarithms: each letter r is read E[tokens] pi_r times on average; the letters read are the exits."""
    law = read(pi, tree)
    counts = {r: Fraction(0) for r in range(1, len(pi) + 1)}
    for ranks, share in law.items():
        for r, times in Counter(ranks).items():
            counts[r] += times * share
    mean = tokens(pi, tree)
    yield equal(counts, {r: mean * share for r, share in enumerate(pi, 1)})
    yield equal(law, {leaf: share for leaf, share in exits(pi, tree).items() if share})
    if not any(len(pi) in node for node in tree):
        yield at_most(mean * pi[-1], 1)


def accepted_by_letter(pi: Pmf, tree: Nodes) -> Compared:
    """Wrong: the letters of the accepted drafts alone, without the one that leads out."""
    counts = {r: Fraction(0) for r in range(1, len(pi) + 1)}
    for ranks, share in read(pi, tree).items():
        for r in ranks[:-1]:
            counts[r] += share
    return equal(counts, {r: (tokens(pi, tree) - 1) * share for r, share in enumerate(pi, 1)})


def lossless(pi: RankPmf, tree: Nodes) -> Compared:
    """E[tokens] H(R) = H(exit leaf)."""
    return equal(tokens(pi, tree) * entropy(pi), entropy(tuple(exits(pi, tree).values())))


def last_node(pi: RankPmf, tree: Nodes) -> Compared:
    """Wrong: the node at which the call ends, without the rank that leads out."""
    ends: dict[Path, Real] = {}
    for leaf, share in exits(pi, tree).items():
        ends[leaf[:-1]] = ends.get(leaf[:-1], 0) + share
    return equal(tokens(pi, tree) * entropy(pi), entropy(tuple(ends.values())))


def library_exits(pi: RankPmf, tree: Nodes) -> Iterator[Compared]:
    """The library's exit law and entropies, the last letter given as such or left to be what is missing to one."""
    shape = Tree.from_paths(tree)
    exact_law = exits(pi, tree)
    for given in (floats(pi), floats(pi)[:-1]):
        leaves = exit_law(shape, given)
        letters = len(given) + 1
        for (v, node), r in product(enumerate(((), *shape.paths)), range(1, len(pi) + 1)):
            yield computed(leaves[v * letters + r - 1], exact_law.get((*node, r), 0))
        yield computed(library_entropy(leaves), entropy(tuple(exact_law.values())))
        yield computed(expected_tokens(shape, given) * library_entropy(floats(pi)), tokens(pi, tree) * entropy(pi))


CHAIN_RULE: tuple[Step, ...] = (
    same(
        "-m s log(m s) = s (-m log m) + m (-s log s): the exit of probability m by which a call left a node, once it "
        "is a node itself, becomes an exit m s for every letter s, also for a letter that no tree expands (R > B)",
        lambda m, s: (-m * s * log(m * s), s * (-m * log(m)) + m * (-s * log(s))),
    ),
    same(
        "letter by letter, with S the letters so far and h their part of H(R), the new exits have S (-m log m) + m h; "
        "all letters make one: -m log m + m H(R), so H(exit leaf) grows by m H(R); what has probability 0 adds 0",
        lambda m, S, h, s: (
            (S * (-m * log(m)) + m * h) + s * (-m * log(m)) + m * (-s * log(s)),
            (S + s) * (-m * log(m)) + m * (h - s * log(s)),
        ),
    ),
    ADD_A_NODE,
    same(
        "so E[tokens] H(R) - H(exit leaf) stays as it is, w x = m: it is 0 for the root alone, whose exits are the "
        "letters, and 0 for every tree",
        lambda E, X, m, H: ((E + m) * H - (X + m * H), E * H - X),
    ),
)


def by_entropy(_: str, given: Parameters) -> Iterator[Predicted]:
    """Accepted drafts of simulated calls, one fewer than tokens, from the two entropies."""
    tree, law = Tree.from_paths(given["paths"]), given["rank_pmf"]
    tokens_per_call = float(library_entropy(exit_law(tree, law)) / library_entropy(law))
    yield Predicted("H(exit leaf)/H(R) - 1", "S3", Mean("accepted", 0, tree.depth), tokens_per_call - 1)


S3 = Entry(
    id="S3",
    title="Reading ranks down a tree is lossless",
    kind="identity",
    plain="E[tokens] H(R) = H(exit leaf), the exit leaf being the node and the letter that leads out of it; R > B, "
    "which no tree drafts, is one letter",
    latex=r"E[\text{tokens}]\cdot H(R) = H(\text{exit leaf})",
    source=("tunstall1967", "kobus2025"),
    assumptions=(
        "the ranks along the text are i.i.d. on a finite alphabet",
        "H(R) and the exit leaf speak of the same letters, all later ranks being one",
    ),
    calculators=("spectheory.drafting.exit_law",),
    evidence=(
        proof("the chain rule, node by node", CHAIN_RULE),
        exact(
            Claim(
                "a letter is read E[tokens] pi_r times on average, one that no tree drafts at most once, and the "
                "exits are the letters read",
                by_letter,
            ),
            lambda effort: joined(trees_of(effort.pick(3, 5)), trees_of(6, [UNSORTED], least=4)),
            over="every tree of up to 3 nodes on ranks 1 to 3 with 6 laws of 4 letters, of up to 6 with one of 3",
            wrong=Claim("so are the accepted letters, E[accepted] pi_r times", accepted_by_letter),
        ),
        certified(
            Claim("E[tokens] H(R) = H(exit leaf)", lossless),
            lambda effort: joined(trees_of(3), trees_of(effort.pick(5, 6), [UNSORTED], least=4)),
            over="every tree of up to 3 nodes on ranks 1 to 3 with 6 laws of 4 letters, of up to 5 with one of 3",
            wrong=Claim("E[tokens] H(R) = H(last node)", last_node),
        ),
        agreement(
            Claim("exit_law is the law of the exit leaf; its entropy is expected_tokens times H(R)", library_exits),
            lambda _: trees_of(2, least=1),
            over="every tree of 1 and 2 nodes on ranks 1 to 3, 6 laws, the last letter given or left out",
            wrong=Claim(
                "the entropy of exit_law is that of the accepted drafts",
                lambda pi, tree: computed(
                    library_entropy(exit_law(Tree.from_paths(tree), floats(pi))), (tokens(pi, tree) - 1) * entropy(pi)
                ),
            ),
        ),
        searched(
            Claim("E[tokens] H(R) = H(exit leaf)", lossless),
            drawn_trees,
            over="trees of up to 6 nodes, laws of any spread",
            wrong=Claim("E[tokens] H(R) = H(last node)", last_node),
        ),
        simulated(
            "accepted drafts of calls down trees, one fewer than tokens",
            RANKED,
            by_entropy,
            wrong=("H(exit leaf)/H(R) drafts are accepted", instead(by_entropy, lambda _, said: said + 1)),
        ),
    ),
)
