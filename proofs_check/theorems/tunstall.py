"""T1: a draft tree of k nodes has few exits, which bounds its tokens per call."""

from __future__ import annotations

from itertools import chain as joined

from proofs_check.evidence.simulated_settings import RACED, RANKED
from proofs_check.forms.divergences import entropy
from proofs_check.forms.exits import channel, exit_count, exits, log_exits
from proofs_check.prelude import *
from proofs_check.proofs.divergence_proofs import LOGARITHM
from proofs_check.statement import calculus
from proofs_check.twins.rank_trees import (
    LAWS,
    UNSORTED,
    Nodes,
    RankPmf,
    drawn_trees,
    expanded,
    law_space,
    tokens,
    trees_of,
)
from spectheory import entropy as library_entropy
from spectheory.limits import tunstall_bound
from spectheory.limits.channel import TunstallForm


def looser(pi: RankPmf, tree: Nodes) -> Iterator[Compared]:
    """Both forms of T1."""
    yield channel(pi, tree)
    yield at_most(log_exits(pi, tree), log((len(tree) + 1) * len(pi)))


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


def without_letters(given: Parameters, _: float) -> float:
    """Accepted drafts, one fewer than tokens, if a call had one outcome for each node."""
    return math.log(len(given["paths"]) + 1) / float(library_entropy(given["rank_pmf"])) - 1


ENTRIES = (
    Entry(
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
                lambda effort: joined(trees_of(effort.pick(3, 5)), trees_of(6, [UNSORTED], least=4)),
                over="every tree of up to 3 nodes on ranks 1 to 3 with 6 laws of 4 letters, of up to 6 with one of 3",
                wrong=Claim(
                    "it has (k+1) A exits", lambda pi, tree: equal(len(exits(pi, tree)), (len(tree) + 1) * len(pi))
                ),
            ),
            exact(
                Claim("equally likely ranks attain T1: d tokens from A^d exits", attained),
                lambda effort: (
                    {"letters": letters, "tokens_": d} for letters in (2, 3, 4, 8) for d in range(1, effort.pick(4, 6))
                ),
                over="2 to 8 ranks, complete trees of depth up to 2",
                wrong=Claim(
                    "they have A^d nodes",
                    lambda letters, tokens_: equal(len(expanded((letters,) * (tokens_ - 1))), letters**tokens_),
                ),
            ),
            certified(
                Claim("E[tokens] H(R) <= log((k+1)(A-1)+1) <= log((k+1) A)", looser),
                lambda effort: joined(trees_of(3, least=1), trees_of(effort.pick(5, 6), [UNSORTED], least=4)),
                over="every tree of 1 to 3 nodes on ranks 1 to 3 with 6 laws of 4 letters, of up to 5 with one of 3",
                wrong=Claim("E[tokens] H(R) <= log(k+1)", no_letters),
            ),
            agreement(
                Claim(
                    "tunstall_bound is the smaller of k+1 and log((k+1)(A-1)+1)/H(R), or of its second form",
                    library_bound,
                ),
                lambda _: (
                    {"pi": pi, "tree": tree} for pi in LAWS for tree in map(expanded, ((1,), (3,), (2, 2), (3, 3, 3)))
                ),
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
                over="trees of up to 6 nodes, laws of any spread",
                spaces=(law_space(3, ((1,), (1, 1))), law_space(3, ((1,), (2,), (1, 2), (1, 2, 3)))),
                wrong=Claim("E[tokens] H(R) <= log(k+1)", no_letters),
            ),
            simulated(
                "accepted drafts of calls down trees, one fewer than tokens",
                RANKED,
                stated("T1"),
                wrong=("E[tokens] H(R) <= log(k+1)", instead(stated("T1"), without_letters)),
            ),
            simulated(
                "the same with the ranks of races between two pmfs",
                RACED,
                stated("T1"),
                wrong=("half of it", instead(stated("T1"), lambda _, bound: bound / 2)),
            ),
        ),
    ),
)
