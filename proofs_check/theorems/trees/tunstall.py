"""T1: a draft tree of k nodes has few exits, which bounds its tokens per call."""

from __future__ import annotations

from proofs_check.evidence.simulated import RACED, RANKED
from proofs_check.forms.divergences import entropy
from proofs_check.prelude import *
from proofs_check.proofs.divergence_proofs import LOGARITHM
from proofs_check.statement import calculus
from proofs_check.theorems.trees.rank_trees import *
from simulations.counts import Mean
from simulations.verdicts.predictions import Predicted
from spectheory import entropy as library_entropy
from spectheory.drafting import Tree, exit_law, expected_tokens
from spectheory.limits import tunstall_bound
from spectheory.limits.channel import TunstallForm


def no_letters(pi: RankPmf, tree: Nodes) -> Compared:
    """Wrong: E[tokens] H(R) <= log(k+1), the nodes for the exits."""
    return at_most(tokens(pi, tree) * entropy(pi), log(len(tree) + 1))


def counted(pi: Pmf, tree: Nodes) -> Iterator[Compared]:
    """The exits of a tree, each once, whose probabilities make one."""
    leaves = exits(pi, tree)
    yield equal(len(leaves), exit_count(len(pi), len(tree)))
    yield equal(sum(leaves.values()), 1)


def attained(letters: int, tokens_: int) -> Iterator[Compared]:
    """Equally likely letters, all sequences of one length less: d tokens, A^d exits, so T1 is d log A/log A."""
    pi, tree = (Fraction(1, letters),) * letters, expanded((letters,) * (tokens_ - 1))
    yield equal(tokens(pi, tree), tokens_)
    yield equal(exit_count(letters, len(tree)), letters**tokens_)


def library_bound(pi: RankPmf, tree: Nodes) -> Iterator[Compared]:
    """The library's bound in both forms, k + 1 at most, and that where the rank is certain."""
    uncertainty, k = entropy(pi), len(tree)
    forms: dict[TunstallForm, int] = {"leaves": exit_count(len(pi), k), "asymptotic": (k + 1) * len(pi)}
    for form, leaves in forms.items():
        most = k + 1 if is_zero(uncertainty) else smaller(k + 1, log(leaves) / uncertainty)
        yield computed(tunstall_bound(float(floats([uncertainty])[0]), len(pi), k, form=form), most)


GIBBS: tuple[Step, ...] = (
    same(
        "a tree without nodes has A exits, and a new node puts A in the place of one: (k+1)(A-1) + 1",
        lambda k, A: (((k + 1) * (A - 1) + 1) - 1 + A, (k + 2) * (A - 1) + 1),
    ),
    *LOGARITHM,
    same(
        "q = 1/L for each of L exits: e log(e/(1/L)) = e log e + e log L, so KL >= 0 is H(exit leaf) <= log L; and "
        "E[tokens] H(R) = H(exit leaf) by S3",
        lambda e, L: (e * calculus.log(e / (1 / L)), e * calculus.log(e) + e * calculus.log(L)),
    ),
    valid(
        "(k+1)(A-1) + 1 <= (k+1) A, the second form",
        lambda k, A: at_most((k + 1) * (A - 1) + 1, (k + 1) * A),
        lambda k, A: [k >= 0, A >= 1],
    ),
    valid(
        "no node weighs more than 1, so E[tokens] <= k + 1: the bound where H(R) = 0",
        lambda w, x: at_most(w * x, 1),
        lambda w, x: [w >= 0, w <= 1, x >= 0, x <= 1],
    ),
)


# T1/mixture: the channel limit fails with the marginal rank law of texts that differ.


def marginal(shares: RankPmf, laws: Sequence[RankPmf]) -> tuple[Real, ...]:
    """The rank law of a position of a text drawn at random."""
    return tuple(sum(s * pi[r] for s, pi in zip(shares, laws, strict=True)) for r in range(len(laws[0])))


def mixed(shares: RankPmf, laws: Sequence[RankPmf], tree: Nodes) -> Compared:
    """The false reading: T1 with the entropy of the marginal law, for texts each of which has its own law."""
    mean = sum(s * tokens(pi, tree) for s, pi in zip(shares, laws, strict=True))
    law = marginal(shares, laws)
    return at_most(mean * entropy(law), log_exits(law, tree))


def mixtures(most: int, letters: int, denominator: int) -> Iterator[Case]:
    """Two kinds of text: by nodes, then ranks, then the common denominator of shares and laws; every tree."""
    sizes = product(range(1, most + 1), range(2, letters + 1), range(1, denominator + 1))
    for nodes, ranks, d in sizes:
        laws = list(cases.grid(ranks, d))
        for part, (first, second), tree in product(range(1, d), combinations(laws, 2), all_trees(nodes, ranks)):
            if math.gcd(d, part, *(int(share * d) for share in (*first, *second))) == 1:
                yield {"shares": (Fraction(part, d), 1 - Fraction(part, d)), "laws": (first, second), "tree": tree}


def certain_or_uniform(ranks: int, k: int) -> Case:
    """Half the texts with R = 1 always, half with equally likely ranks, and a chain of k."""
    laws = ((Fraction(1), *(Fraction(0),) * (ranks - 1)), (Fraction(1, ranks),) * ranks)
    return {"shares": (Fraction(1, 2),) * 2, "laws": laws, "tree": tuple((1,) * i for i in range(1, k + 1))}


MIXED = Claim("E[tokens] H(marginal R) <= log((k+1)(A-1)+1) for a mixture of texts", mixed)

ONE_LAW = Claim(
    "T1 within each text and for i.i.d. ranks of the marginal law",
    lambda shares, laws, tree: [channel(pi, tree) for pi in (*laws, marginal(shares, laws))],
)

MIXTURES: tuple[tuple[str, Callable[[Effort], Iterable[Case]]], ...] = (
    (
        "first by nodes, ranks, and common denominator, among all mixtures of two laws and all trees; one node cannot "
        "fail, being linear in the law",
        lambda _: mixtures(2, 2, 3),
    ),
    (
        "half the texts certain, half uniform, a chain: the shortest chain, then the fewest ranks",
        lambda _: (certain_or_uniform(ranks, k) for k in range(1, 5) for ranks in range(2, 9)),
    ),
    ("the same with two ranks, the shortest chain", lambda _: (certain_or_uniform(2, k) for k in range(1, 5))),
    (
        "half certain, half uniform on 4 ranks, k = 16: 9.17 tokens where T1 would say 3.68",
        lambda _: [certain_or_uniform(4, 16)],
    ),
)
"""Mixtures at which it fails."""

T1 = Entry(
    id="T1",
    title="The channel limit on draft trees",
    kind="upper bound",
    plain="E[tokens] <= log((k+1)(A-1)+1)/H(R) <= (log A + log(k+1))/H(R), and E[tokens] <= k+1",
    latex=r"E[\text{tokens}] \le \frac{\log\big((k+1)(A-1)+1\big)}{H(R)} \le \frac{\log A+\log(k+1)}{H(R)}",
    source=("kobus2025", "tunstall1967"),
    number="Theorem 4.1",
    assumptions=(
        "the ranks along the text are i.i.d. on a finite alphabet of A letters; all later ranks are one letter, "
        "which no tree drafts (if its probability is s, also E[tokens] <= 1/s)",
    ),
    calculators=("spectheory.limits.tunstall_bound",),
    evidence=(
        proof("the entropy of the exit leaf is at most the logarithm of the number of exits", GIBBS),
        exact(
            Claim("a tree of k nodes has (k+1)(A-1)+1 exits, whose probabilities make one", counted),
            lambda effort: [*trees_of(effort.pick(3, 5)), *trees_of(6, [UNSORTED], least=4)],
            over="every tree of up to 3 nodes on ranks 1 to 3 with 6 laws of 4 letters, of up to 6 with one of 3",
            wrong=Claim(
                "it has (k+1) A exits", lambda pi, tree: equal(len(exits(pi, tree)), (len(tree) + 1) * len(pi))
            ),
        ),
        exact(
            Claim("equally likely ranks attain T1: d tokens from A^d exits", attained),
            lambda effort: all_of(letters=(2, 3, 4, 8), tokens_=range(1, effort.pick(4, 6))),
            over="2 to 8 ranks, complete trees of depth up to 2",
            wrong=Claim(
                "they have A^d nodes",
                lambda letters, tokens_: equal(len(expanded((letters,) * (tokens_ - 1))), letters**tokens_),
            ),
        ),
        certified(
            Claim(
                "E[tokens] H(R) <= log((k+1)(A-1)+1) <= log((k+1) A)",
                lambda pi, tree: (channel(pi, tree), at_most(log_exits(pi, tree), log((len(tree) + 1) * len(pi)))),
            ),
            lambda effort: [*trees_of(3, least=1), *trees_of(effort.pick(5, 6), [UNSORTED], least=4)],
            over="every tree of 1 to 3 nodes on ranks 1 to 3 with 6 laws of 4 letters, of up to 5 with one of 3",
            wrong=Claim("E[tokens] H(R) <= log(k+1)", no_letters),
        ),
        agreement(
            Claim(
                "tunstall_bound is the smaller of k+1 and log((k+1)(A-1)+1)/H(R), or of its second form", library_bound
            ),
            lambda _: all_of(pi=LAWS, tree=map(expanded, ((1,), (3,), (2, 2), (3, 3, 3)))),
            over="trees of 1, 3, 6 and 39 nodes, 6 laws",
            wrong=Claim(
                "tunstall_bound is log((k+1) A)/H(R)",
                lambda pi, tree: computed(
                    tunstall_bound(float(floats([entropy(pi)])[0]), len(pi), len(tree)),
                    log((len(tree) + 1) * len(pi)) / entropy(pi),
                ),
            ),
        ),
        searched(
            Claim("E[tokens] H(R) <= log((k+1)(A-1)+1)", channel),
            drawn_trees,
            spaces=(law_space(3, ((1,), (1, 1))), law_space(3, ((1,), (2,), (1, 2), (1, 2, 3)))),
            wrong=Claim("E[tokens] H(R) <= log(k+1)", no_letters),
        ),
        simulated(
            "accepted drafts of calls down trees, one fewer than tokens",
            RANKED,
            stated("T1"),
            wrong=(
                "E[tokens] H(R) <= log(k+1)",
                instead(stated("T1"), lambda g, _: math.log(len(g["paths"]) + 1) / library_entropy(g["rank_pmf"]) - 1),
            ),
        ),
        simulated(
            "the same with the ranks of races between two pmfs",
            RACED,
            stated("T1"),
            wrong=("half of it", instead(stated("T1"), lambda _, bound: bound / 2)),
        ),
    ),
)

T1_MIXTURE = Entry(
    id="T1/mixture",
    title="T1 with the marginal entropy of a mixture of texts",
    kind="refuted",
    plain="E[tokens] <= log((k+1)(A-1)+1)/H(marginal R) where each text has a rank law of its own",
    latex=r"\sum_i s_i E_i[\text{tokens}] \le \frac{\log\big((k+1)(A-1)+1\big)}{H(\sum_i s_i\pi_i)}",
    assumptions=("within a text the ranks are i.i.d., but texts differ",),
    evidence=tuple(counterexample(MIXED, made, over=over, true=ONE_LAW, kind="certified") for over, made in MIXTURES),
    without={"exact": "logarithms enter"},
)


# S3: reading ranks down a tree loses nothing: tokens times H(R) is the entropy of the exit leaf.


def by_letter(pi: Pmf, tree: Nodes) -> Iterator[Compared]:
    """S3 before logarithms: each letter r is read E[tokens] pi_r times on average; the letters read are the exits."""
    ways, mean = read(pi, tree), tokens(pi, tree)
    counts = law((r, share) for ranks, share in ways.items() for r in ranks)
    yield equal(counts, law((r, mean * share) for r, share in enumerate(pi, 1)))
    yield equal(ways, law(exits(pi, tree).items()))
    if not any(len(pi) in node for node in tree):
        yield at_most(mean * pi[-1], 1)


def accepted_by_letter(pi: Pmf, tree: Nodes) -> Compared:
    """Wrong: the letters of the accepted drafts alone, without the one that leads out."""
    counts = law((r, share) for ranks, share in read(pi, tree).items() for r in ranks[:-1])
    return equal(counts, law((r, (tokens(pi, tree) - 1) * share) for r, share in enumerate(pi, 1)))


def lossless(pi: RankPmf, tree: Nodes) -> Compared:
    """E[tokens] H(R) = H(exit leaf)."""
    return equal(tokens(pi, tree) * entropy(pi), entropy(tuple(exits(pi, tree).values())))


def last_node(pi: RankPmf, tree: Nodes) -> Compared:
    """Wrong: the node at which the call ends, without the rank that leads out."""
    ends = law((leaf[:-1], share) for leaf, share in exits(pi, tree).items())
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
        lambda m, s: (-m * s * calculus.log(m * s), s * (-m * calculus.log(m)) + m * (-s * calculus.log(s))),
    ),
    same(
        "letter by letter, with S the letters so far and h their part of H(R), the new exits have S (-m log m) + m h; "
        "all letters make one: -m log m + m H(R), so H(exit leaf) grows by m H(R); what has probability 0 adds 0",
        lambda m, S, h, s: (
            (S * (-m * calculus.log(m)) + m * h) + s * (-m * calculus.log(m)) + m * (-s * calculus.log(s)),
            (S + s) * (-m * calculus.log(m)) + m * (h - s * calculus.log(s)),
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
            lambda effort: [*trees_of(effort.pick(3, 5)), *trees_of(6, [UNSORTED], least=4)],
            over="every tree of up to 3 nodes on ranks 1 to 3 with 6 laws of 4 letters, of up to 6 with one of 3",
            wrong=Claim("so are the accepted letters, E[accepted] pi_r times", accepted_by_letter),
        ),
        certified(
            Claim("E[tokens] H(R) = H(exit leaf)", lossless),
            lambda effort: [*trees_of(3), *trees_of(effort.pick(5, 6), [UNSORTED], least=4)],
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
